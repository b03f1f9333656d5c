"""The share of the exchange that computation hides."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from halocline.run.engine.prepared import PassTimer
from halocline.run.tuning.patches import run_in_turn
from suites import cases


@pytest.mark.ranks(2)
@cases("case", ["heat", "poisson"], default=["heat"])
def test_steps_and_their_parts_are_timed(case: str) -> None:
    from functools import partial

    from halocline.problems.problem import Problem
    from halocline.study.measuring import overlap

    make = {
        "heat": partial(overlap.heat, (24, 20, 16), radius=2, fields=2, dtype="float32"),
        "poisson": Problem("poisson", [63]).bench,
    }[case]
    done: list[int] = []
    result = overlap.measure(make, repeats=2, threads=1, on_progress=done.append)
    assert done == [1, 2]
    assert [row["name"] for row in result] == ["colocated", "mpi", "rma"]
    for row in result:
        assert row["name"] in row["bytes_by_method"]
        assert (row["ranks"], row["threads"], row["parts"][0] * row["parts"][1]) == (2, 1, 2)
        assert min(row["step"], row["waiting"], row["compute"], row["exchange"], row["neither"]) > 0
    text = overlap.table(result).text()
    assert all(f"\n{row['name']} " in text for row in result)
    assert [line.partition(":")[0] for line in overlap.verdict(result)] == [row["name"] for row in result]


def test_selected_parts_of_a_step_are_skipped() -> None:
    """A run without kernels does not change the fields, and one without messages not the halos."""
    from halocline.study.measuring import overlap

    bench = overlap.heat((8, 6), threads=1, decomposition=(2, 1), subdomains_per_rank=2)
    bench.passes = 3

    def after(**kind: bool) -> tuple[float, float]:
        """Return the differences of the halos and of the cells from their initial values."""
        for storage in bench.prepared.store.storages["T"] + bench.prepared.store.storages["T'"]:
            storage.whole()[...] = 7.0
        bench.run(**kind)
        storage = bench.prepared.store.storages["T"][0]
        inside = float(abs(storage.view() - 1).max())
        return float(abs(storage.whole()[0, 0, 1:-1] - 7).max()), inside

    assert after() == (pytest.approx(6.0), pytest.approx(0.0, abs=1e-12))
    halo, inside = after(messages=False)
    assert halo == 0.0
    assert inside > 0.1
    assert after(kernels=False) == (6.0, 0.0)
    assert after(messages=False, kernels=False) == (0.0, 0.0)


def test_measurements_alternate_in_both_orders() -> None:
    order: list[str] = []
    done: list[int] = []

    def timer(name: str) -> Callable[[], float]:
        return lambda: order.append(name) or float(len(order))

    times = run_in_turn({name: timer(name) for name in "abc"}, 3, done.append)
    assert "".join(order) == "abc" + "cba" + "abc"
    assert times == {"a": [1.0, 6.0, 7.0], "b": [2.0, 5.0, 8.0], "c": [3.0, 4.0, 9.0]}
    assert done == [1, 2, 3]


@pytest.mark.parametrize("pace", [1e-6, 1e-3, 10.0])
def test_the_duration_determines_the_passes_of_a_measurement(pace: float) -> None:
    """The constant cost of a run does not shorten the measurement."""

    class Timer(PassTimer):
        def __init__(self) -> None:
            self.passes = 1

        def seconds(self, passes: int, **kind: bool) -> float:
            return 1e-5 + passes * pace

    timer = Timer()
    timer.calibrate(0.04)
    assert timer.passes >= 3
    assert timer.passes == 3 or 0.035 < timer.seconds(timer.passes) < 0.045


def test_a_program_that_would_end_is_repeated() -> None:
    """A solve that has converged is repeated, so that its time can be measured."""
    from halocline.problems.problem import Problem

    bench = Problem("poisson", [15]).bench(threads=1)
    bench.passes = 500
    bench.run()
    assert bench.prepared.engine.progress() == 500
