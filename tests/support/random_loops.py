"""Random programs with loops, evaluated in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np

import halocline as hc

SHAPE = (9, 8)
FIELDS = "abcd"


# --- random programs ---


Statement = tuple[Any, ...]


def statements(rng: Random, depth: int = 0) -> list[Statement]:
    """Return random statements: assignments, loops and conditional statements."""
    drawn: list[Statement] = []
    for _ in range(rng.randint(1, 3)):
        kind = rng.choice(["set", "set", "loop", "when"] if depth < 3 else ["set"])
        if kind == "set":
            source, other = rng.choice(FIELDS), rng.choice(FIELDS)
            offset = rng.randint(-2, 2), rng.randint(-1, 1)
            drawn.append(("set", rng.choice(FIELDS), source, offset, other))
        else:
            drawn.append((kind, rng.randint(0, 2), statements(rng, depth + 1)))
    return drawn


def record_statements(todo: list[Statement], fields: dict[str, hc.Field], flags: Sequence[Any]) -> None:
    """Record statements in the traced program.

    All factors are powers of two, so that NumPy computes the same bits.
    """
    for kind, *rest in todo:
        if kind == "set":
            target, source, offset, other = rest
            fields[target].set(0.5 * fields[source][offset] + 0.25 * fields[other])
        elif kind == "loop":
            with hc.loop(limit=rest[0]):
                record_statements(rest[1], fields, flags)
        else:
            with hc.when(flags[rest[0] % 2] > 0.5):
                record_statements(rest[1], fields, flags)


def compute_statements(todo: list[Statement], arrays: dict[str, Any]) -> None:
    """Execute statements in NumPy."""
    for kind, *rest in todo:
        if kind == "set":
            target, source, offset, other = rest
            shifted = np.roll(arrays[source], [-o for o in offset], (0, 1))
            arrays[target] = 0.5 * shifted + 0.25 * arrays[other]
        else:
            for _ in range(rest[0] if kind == "loop" else rest[0] % 2):
                compute_statements(rest[1], arrays)


def traced(todo: list[Statement], fields: dict[str, hc.Field]) -> Any:
    """Return the program of these statements."""

    def program(no: Any, yes: Any) -> None:
        record_statements(todo, fields, (no, yes))

    return hc.program(program)


def check_random_programs(seeds: range, **execution: Any) -> None:
    """Compare random programs with NumPy, bit by bit."""
    for seed in seeds:
        rng = Random(seed)
        grid = hc.Grid(SHAPE, periodic=True)
        fields = {name: grid.field(name) for name in FIELDS}
        todo: list[Statement] = [("loop", 3, [*statements(rng), ("set", "a", "b", (1, 1), "c")])]
        sim = hc.Simulation(
            grid, traced(todo, fields), parameters={"no": 0.0, "yes": 1.0}, threads=1, **execution
        )
        start = np.random.default_rng(seed)
        arrays = {name: start.uniform(1.0, 2.0, SHAPE) for name in FIELDS}
        for name in FIELDS:
            sim[name] = arrays[name]
        sim.run(steps=2)
        for _ in range(2):
            compute_statements(todo, arrays)
        for name in FIELDS:
            gathered = sim.gather(name)
            assert gathered is None or np.array_equal(gathered, arrays[name]), f"seed {seed}, field {name}"
