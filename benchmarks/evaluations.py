"""Costs of setting and gathering fields, compared with those of an array.

    python benchmarks/evaluations.py [--n 64] [--repeats 7]

Fields have n^2 cells of float64, on one thread. The program assigns a number, an expression and a function of
the coordinates to a field, gathers an expression, and evaluates a maximum. Each of these operations runs in
turn with the assignment of an array. The first call includes compilation with an empty cache; the others
reuse the compiled program. Then a field is set to sums of increasing numbers of cosines, each for the first
time. Finally, each case runs twice for one step in a process of its own, with kernels in the cache. The
second simulation has the same equations as the first.

The program prints the time of each operation, divided by the time of the array assignment, as a median over
measurements in turn. It also prints the time of the second simulation, divided by the time of the first.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from measure import arguments, in_turn, median, ratio, save

import halocline as hc

CALLS = 50  # of one measurement
COSINES = (20, 50, 100)
CASES = {"heat": (64, 64), "cavity-2d": (32, 32), "orszag-tang": (32, 32), "mhd-benchmark": (16, 16, 16)}
TWICE = """
import json, sys
from time import perf_counter
from halocline.problems.problem import Problem
Problem("wave", (16,)).run(steps=1, threads=1)  # imports
name, shape = json.loads(sys.argv[1])
times = [perf_counter()]
for _ in range(2):
    Problem(name, shape).run(steps=1, threads=1)
    times.append(perf_counter())
print(json.dumps([times[1] - times[0], times[2] - times[1]]))
"""


def timed(call: Callable[[], object], calls: int) -> float:
    """Return the seconds of a call."""
    began = perf_counter()
    for _ in range(calls):
        call()
    return (perf_counter() - began) / calls


def simulation(n: int) -> hc.Simulation:
    """Return a simulation of two fields with values."""
    grid = hc.Grid((n, n), periodic=True)
    u, v = grid.field("u"), grid.field("v")
    sim = hc.Simulation(grid, lambda u, v: {u: hc.laplacian(u), v: -v}, scheme=hc.Euler(), dt=1e-6, threads=1)
    sim[u], sim[v] = np.zeros((n, n)), np.ones((n, n))
    return sim


def sum_of_cosines(count: int) -> Callable[..., Any]:
    """Return a function of the coordinates: plane waves of all directions."""
    numbers = np.random.default_rng(1).integers(1, 9, (count, 2)).tolist()
    return lambda x, y: sum(np.cos(kx * x + ky * y + n) for n, (kx, ky) in enumerate(numbers))


def costs(n: int, repeats: int) -> list[dict[str, Any]]:
    """Measure the first and the later calls of each kind of evaluation."""
    sim, zeros = simulation(n), np.zeros((n, n))
    u, v = sim.grid.fields["u"], sim.grid.fields["v"]
    function = lambda x, y: np.sin(x) * y  # noqa: E731

    def assign(value: Any) -> Callable[[], None]:
        def call() -> None:
            sim[u] = value
            sim.settle()

        return call

    calls: dict[str, Callable[[], object]] = {
        "array": assign(zeros),
        "number": assign(0.0),
        "expression": assign(0.5 * v),
        "function": assign(function),
        "gather of an expression": lambda: sim.gather(0.5 * u * v),
        "maximum": lambda: sim.evaluate(hc.max(u)),
    }
    first = {name: timed(call, 1) for name, call in calls.items()}
    times = in_turn({name: partial(timed, call, CALLS) for name, call in calls.items()}, repeats)
    array = median(times["array"])
    rows = []
    for name in calls:
        later = 1.0 / ratio(times, name, "array")
        print(
            f"{name}: {later:.1f} times as long as an array, "
            f"{first[name] / array:.0f} times at the first call"
        )
        rows.append(
            {"what": name, "n": n, "ratio": later, "first": first[name] / array,
             "seconds": median(times[name])}
        )  # fmt: skip
    for count in COSINES:
        spent = timed(assign(sum_of_cosines(count)), 1)
        print(f"{count} cosines: {spent / array:.0f} times at the first call, {spent / count:.3f} s each")
        rows.append(
            {
                "what": f"{count} cosines",
                "n": n,
                "first": spent / array,
                "seconds_per_term": spent / count,
            }
        )
    return rows


def simulations(repeats: int) -> list[dict[str, Any]]:
    """Measure the first and the second simulation of the same equations in a process."""
    rows = []
    for name, shape in CASES.items():
        command = [sys.executable, "-c", TWICE, json.dumps([name, shape])]
        pairs = [
            json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            for _ in range(repeats + 1)
        ][1:]  # the first one compiles the kernels
        first, second = (median(times) for times in zip(*pairs, strict=True))
        print(f"{name}: a second simulation takes {second / first:.2f} of the first, {first:.3f} s")
        rows.append({"what": f"second {name}", "ratio": second / first, "seconds": first})
    return rows


def main() -> None:
    """Measure, print and record."""
    options = arguments((__doc__ or "").splitlines()[0], n=64)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["HALOCLINE_CACHE"] = cache
        rows = costs(options.n, options.repeats) + simulations(options.repeats)
    save(options.json, rows)


if __name__ == "__main__":
    main()
