"""Runs on two devices, compared with runs on the CPU."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

import bitwise_programs as bitwise
import halocline as hc
import random_programs as programs
from halocline.errors import InputError

BOTH = "opencl:0,1"


def check_equal_bits(problem: bitwise.Problem, dtype: str, ways: list[dict[str, Any]]) -> int:
    """Check that all ways of execution that fit have the same bits, and return their number."""
    from mpi4py import MPI

    results = {}
    for options in ways:
        try:
            results[f"{problem.__name__} {dtype} {options}"] = problem(dtype, **options)
        except InputError as error:
            if re.search(r"decomposition|subdomain|shared out", str(error)):
                continue
            raise
    reference = problem(dtype, communicator=MPI.COMM_SELF, threads=1)
    for label, result in results.items():
        assert result == reference, label
    return len(results)


# -- programs drawn at random ------------------------------------------------------------------------


def same_bits(recipe: programs.Recipe, shape: tuple[int, ...], ways: list[dict[str, Any]]) -> None:
    """Check that a random program has the same bits for all ways of execution."""
    results = []
    for options in ({"threads": 1}, *ways):
        case = programs.Case(recipe, shape[: recipe.ndim], (1.5, 0.75, 1.0)[: recipe.ndim])
        try:
            sim = case.simulate(**options)
        except InputError as error:
            if results and programs.too_small(error):
                continue
            raise
        names = [f.name for f in case.declared_fields if f.name in sim.store.storages]
        scalars = {name: np.float64(value).tobytes() for name, value in sim.values.items()}
        results.append(({name: sim.checksum(name) for name in names}, scalars))
        assert results[-1] == results[0], options


def random_holes(case: dict[str, Any], ways: list[dict[str, Any]]) -> None:
    """Check random grids with inactive blocks on a device and on the CPU, as lang/test_blocks.py does."""
    (a, b, c), results = case["offsets"], []
    for options in ({"patch": 3}, *ways):
        grid = hc.Grid(case["shape"], periodic=case["periodic"], active=case["mask"])
        walls = not all(grid.periodic)
        interior = hc.BoundaryKernel(lambda q: 0.5 * q[0] + q[case["depth"]] + 0.25)
        u = grid.field("u", boundary=interior if walls else None)
        linked = hc.BoundaryKernel(lambda q: q.of(u)[0] - 0.5)  # noqa: B023
        v = grid.field("v", boundary=linked if walls else None)

        def step(u: Any, v: Any) -> None:
            v.set(0.5 * v[a] + u[b] + 1.0)
            u.set(0.25 * u + 0.5 * v[c] - 0.125 * u[a])
            hc.scalar("total").set(hc.sum(u * v) + hc.max(v))

        try:
            sim = hc.Simulation(grid, hc.program(step), **options)
        except InputError as error:
            if "cells along axis" in str(error) or "subdomain" in str(error):
                continue  # the subdomains are too thin for the reads
            raise
        values = np.random.default_rng(5).uniform(1, 2, case["shape"])
        sim[u], sim[v] = values, 0.5 * values
        sim.run(steps=3)
        results.append((sim.checksum(u), sim.checksum(v), sim.values["total"]))
        assert results[-1] == results[0], options
