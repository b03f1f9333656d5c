"""Programs with loops that seldom run, on a device that runs ahead of the host.

As a command, this module compares random programs on a device with the CPU. Another form prints the host's
waits and launches on the stand-in for CUDA:

    python seldom_loops.py compare cuda:0 20
    python seldom_loops.py count
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import halocline as hc
from halocline.lang.grid import Field
from halocline.run.domain.domain import Domain
from halocline.run.domain.execution import Execution
from halocline.run.engine.prepare import prepare
from halocline.run.engine.prepared import Prepared
from halocline.run.memory.contents import checksum
from halocline.run.memory.store import FieldStore
from random_programs import ANY_SPEED

Statement = tuple[Any, ...]

SHAPE = (6, 9)
FIELDS = "abc"
# levels of a sine above which conditions hold: from nearly always to nearly never
LEVELS = (-0.9, 0.0, 0.7, 0.95)
FACTORS = (0.5, 0.25, 1.5, 3.0)  # halvings, and factors that make the sine jump

_read = st.tuples(st.sampled_from(FIELDS), st.tuples(st.integers(-1, 1), st.integers(-1, 1)))
_set = st.tuples(st.just("set"), st.sampled_from(FIELDS), _read, _read)
_sum = st.tuples(st.just("sum"), st.sampled_from(FIELDS))
_stop = st.tuples(st.just("stop"), st.integers(2, 40))
_count = st.tuples(st.just("count"))
_wave = st.tuples(st.sampled_from(FACTORS), st.sampled_from(LEVELS))
_plain = st.one_of(_set, _set, _set, _sum, _count, _stop)


def _loops(body: st.SearchStrategy[list[Statement]]) -> st.SearchStrategy[Statement]:
    """Return the loops with a given body."""
    return st.one_of(
        st.tuples(st.just("every"), st.integers(1, 5), body),
        st.tuples(st.just("when"), _wave, body),
        st.tuples(st.just("limit"), st.integers(0, 2), st.booleans(), body),
        st.tuples(st.just("varying limit"), st.sampled_from(FACTORS), st.booleans(), body),
        st.tuples(st.just("until"), _wave, st.integers(0, 3), st.booleans(), body),
    )


_inner = st.lists(_plain, min_size=1, max_size=2)
_middle = st.lists(st.one_of(_plain, _loops(_inner)), min_size=1, max_size=2)


@dataclass(frozen=True)
class Recipe:
    """Random program: statements of a pass, and the ends of the loop of passes."""

    statements: list[Statement]
    before: list[Statement]
    passes: tuple[int, int]
    until: tuple[float, float] | None
    records: bool


recipes = st.builds(
    Recipe,
    st.lists(st.one_of(_set, _loops(_middle)), min_size=2, max_size=4).filter(
        lambda statements: any(kind != "set" for kind, *_ in statements)
    ),
    st.lists(_plain, max_size=1),
    st.tuples(st.integers(0, 14), st.integers(0, 30)),
    st.none() | st.tuples(st.sampled_from(FACTORS), st.just(0.99)),
    st.booleans(),
)


class _Writer:
    """Statements of a recipe, written into the traced program."""

    def __init__(self, fields: dict[str, hc.Field]) -> None:
        self.fields = fields
        self.total, self.passes, self.counted = hc.scalars("total passes counted")

    def holds(self, wave: tuple[float, float]) -> Any:
        """Return a condition that depends on the pass and on the count of the program."""
        factor, level = wave
        return hc.sin(factor * self.passes + 0.75 * self.counted) > level

    def program(self, recipe: Recipe, limit: Any) -> None:
        step = hc.scalar("step")
        for scalar in (self.total, self.counted):
            scalar.set(0.0)
        self.statements(recipe.before)
        ends = {} if recipe.until is None else {"until": self.holds(recipe.until)}
        with hc.loop(limit=limit, record=(self.total, step) if recipe.records else (), **ends):
            self.statements(recipe.statements)
            self.passes.set(self.passes + 1.0)
            step.set(step + 1.0)

    def statements(self, statements: list[Statement]) -> None:
        for kind, *rest in statements:
            if kind == "set":
                target, (one, near_offset), (other, far_offset) = rest
                fields = self.fields
                fields[target].set(0.5 * fields[one][near_offset] + 0.25 * fields[other][far_offset] + 0.125)
            elif kind == "sum":
                self.total.set(0.5 * self.total + hc.sum(self.fields[rest[0]]))
            elif kind == "count":
                self.counted.set(self.counted + 1.0)
            elif kind == "stop":
                hc.stop(self.counted + self.passes >= float(rest[0]), f"counted to {rest[0]}")
            else:
                *_, body = rest
                with self.loop(kind, *rest[:-1]):
                    self.statements(body)

    def loop(self, kind: str, first: Any, *rest: Any) -> Any:
        """Return the context of a loop."""
        record = (self.total, self.counted) if rest and rest[-1] else ()
        if kind == "every":
            return hc.every(first)
        if kind == "when":
            return hc.when(self.holds(first))
        if kind == "limit":
            return hc.loop(limit=first, record=record)
        if kind == "varying limit":
            return hc.loop(limit=2.0 * hc.sin(first * self.passes), record=record)
        return hc.loop(until=self.holds(first), limit=rest[0], record=record)


def prepared(recipe: Recipe, **options: Any) -> Prepared:
    """Return the program of a recipe, bound to the engine."""
    grid = hc.Grid(SHAPE, periodic=(True, False))
    fields = {name: grid.field(name, boundary=hc.Extrapolate(2)) for name in FIELDS}

    @hc.program
    def program(limit: Any) -> None:
        _Writer(fields).program(recipe, limit)

    store = FieldStore(Domain(grid, None, Execution(**options)))
    program_on_engine = prepare(store, program.trace(hc.parameter("limit")), ["limit", "step", "passes"])
    for number, name in enumerate(FIELDS):
        values = np.random.default_rng(number).uniform(0.5, 1.5, SHAPE)
        if name not in store.storages:
            continue
        with store.writable(fields[name]) as pieces:
            for _, view in pieces:
                view[...] = values
    return program_on_engine


def results(recipe: Recipe, **options: Any) -> list[Any]:
    """Return the results and reports of two runs of a program, as bits."""
    program = prepared(recipe, **options)
    outcomes: list[Any] = []
    for passes in recipe.passes:
        program.set_scalars({"limit": float(passes)})
        report = program.engine.run()
        scalars = {name: np.float64(value).tobytes() for name, value in program.scalars().items()}
        sums = {
            f.name: checksum(program.store, f)
            for f in program.store.fields
            if f.name in program.store.storages
        }
        summary = [report[name] for name in ("reason", "loops", "sweep_counts")]
        outcomes.append((*summary, report["history"].tobytes(), scalars, sums))
    return outcomes


def check(recipe: Recipe, device: str) -> None:
    """Compare a program on a device with the CPU."""
    for n, (on_device, on_cpu) in enumerate(
        zip(results(recipe, device=device), results(recipe, threads=1), strict=True)
    ):
        assert on_device == on_cpu, f"run {n}"


def check_random_programs(device: str, examples: int) -> None:
    """Compare random programs on a device with the CPU."""

    @settings(max_examples=examples, database=None, **ANY_SPEED)
    @given(recipes)
    def example(recipe: Recipe) -> None:
        check(recipe, device)

    example()


# -- counts of waits and launches --------------------------------------------------------------------


COUNTED = ("cuStreamSynchronize", "cuEventSynchronize", "cuGraphLaunch", "cuLaunchKernel")


def counting(seldom: Callable[[Any], Any], **options: Any) -> tuple[Prepared, Field]:
    """Return a program of passes that sums its field in a loop that seldom runs, and the field.

    Parameters
    ----------
    seldom : callable
        Returns the context of that loop, from the number of the pass.
    """
    grid = hc.Grid((16, 16), periodic=True)
    u = grid.field("u")

    @hc.program
    def program(limit: Any) -> None:
        total, step = hc.scalars("total step")
        with hc.loop(limit=limit):
            u.set(0.5 * u + 0.25 * u[1, 0])
            with seldom(step):
                total.set(hc.sum(u))
            step.set(step + 1.0)

    store = FieldStore(Domain(grid, None, Execution(**options)))
    program_on_engine = prepare(store, program.trace(hc.parameter("limit")), ["limit", "step", "total"])
    store.fill(1.0)
    return program_on_engine, u


def counts() -> list[dict[str, Any]]:
    """Return the counts of runs of 40 and 400 passes, with a loop that runs every 10 passes and never."""
    driver = ctypes.CDLL("libcuda.so.1")
    driver.halocline_standin_calls.restype = ctypes.c_size_t

    def calls() -> dict[str, int]:
        return {name: driver.halocline_standin_calls(name.encode()) for name in COUNTED}

    kinds = {"every": lambda step: hc.every(10), "when": lambda step: hc.when(step < 0.0)}
    records = []
    for kind, seldom in kinds.items():
        program, _ = counting(seldom, device="cuda:0")
        for passes in (40, 40, 40, 400):  # the first two record graphs, for two orders of the buffers
            program.set_scalars({"limit": float(passes), "step": 0.0})
            before = calls()
            report = program.engine.run()
            called = {name: count - before[name] for name, count in calls().items()}
            assert called["cuGraphLaunch"] == report["graph_launches"]
            records.append({"kind": kind, "passes": passes, "sweeps": report["sweep_counts"], **called})
        program.set_scalars({"limit": 40.0, "step": 0.0})
        traced = program.engine.run(traced=True)
        assert traced["graph_launches"] == 0, "graphs in a trace"
        assert traced["sweep_counts"] == records[-2]["sweeps"]
    return records


if __name__ == "__main__":
    if sys.argv[1] == "compare":
        check_random_programs(sys.argv[2], int(sys.argv[3]))
    else:
        print(json.dumps(counts()))
