"""Runs on OpenCL devices have the bits of one rank of the CPU: problems, random programs and user actions.

The devices are those of PoCL, which compiles a kernel for each shape of a thread block. This takes most of
the time. The default test suite cuts a grid such that the same shapes occur.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bitwise_programs as bitwise
import halocline as hc
import random_blocks as holes
import random_programs as programs
from actions_on_devices import ALONE, on_both, smoothed
from example_runs import BITWISE, EXAMPLES
from example_runs import CASES as EXAMPLE_ARGUMENTS
from halocline.compile.strategy import READS
from halocline.plan import launches
from halocline.run.ranks.mpi import world
from hang import HANG
from kernels_of_devices import use_splits
from runs_on_devices import BOTH, check_equal_bits, random_holes, same_bits
from started_scripts import start

__all__ = ["start"]  # a fixture

pytestmark = pytest.mark.usefixtures("opencl")

WAYS: list[dict[str, Any]] = [
    {"device": "opencl:0"},
    {"device": "opencl:1,0", "overlap": True},
    {"device": BOTH, "overlap": False, "patch": 5},
    {"device": "opencl", "subdomains_per_rank": 2},
    {"device": "opencl:0", "patch": 7, "methods": "self,mpi"},
    {"device": "opencl:0", "methods": "mpi", "subdomains_per_rank": 3},
    {"device": BOTH, "halo": "uniform", "decomposition": "1d-y"},
    {"device": BOTH, "subdomains_per_rank": 2, "methods": "peer,mpi", "decomposition": "1d-x"},
]


@pytest.mark.parametrize("dtype", bitwise.DTYPES)
@pytest.mark.parametrize("problem", bitwise.PROBLEMS, ids=lambda problem: problem.__name__)
@pytest.mark.ranks(1, 2, 3)
def test_every_layout_on_devices_gives_the_bits_of_the_cpu(problem: bitwise.Problem, dtype: str) -> None:
    assert check_equal_bits(problem, dtype, WAYS) >= (4 if world().size < 3 else 2)


# -- random programs ---------------------------------------------------------------------------------


@settings(max_examples=100, **programs.ANY_SPEED)
@given(
    programs.recipes(),
    programs.shapes_to_cut,
    st.none() | st.integers(3, 9),
    st.booleans(),
    st.none() | st.tuples(st.sampled_from(READS), st.integers(1, 3), st.sampled_from([1, 2])),
)
def test_many_random_programs_have_the_bits_of_the_cpu(
    recipe: programs.Recipe,
    shape: tuple[int, ...],
    patch: int | None,
    literal: bool,
    splits: tuple[str, int, int] | None,
) -> None:
    """Subdomains, patches, literal layouts and several cells per thread change no bit."""
    ways = [{"device": BOTH, "patch": patch}, {"device": "opencl:0", "overlap": False}]
    with pytest.MonkeyPatch.context() as changes:
        changes.setattr(launches, "LITERAL_CELLS", 1 if literal else launches.LITERAL_CELLS)
        if splits is not None:
            use_splits(changes, *splits)
        same_bits(recipe, shape, [*ways, {"device": BOTH, "subdomains_per_rank": 2}])


@settings(max_examples=60, **programs.ANY_SPEED)
@given(holes.cases())
def test_many_random_holes_have_the_bits_of_the_cpu(case: dict[str, Any]) -> None:
    subdomains = case["subdomains"]
    random_holes(
        case, [{"device": BOTH}, {"device": "opencl:0", "subdomains_per_rank": subdomains, "patch": 3}]
    )


# -- examples and actions of users -------------------------------------------------------------------


@pytest.mark.parametrize("name", BITWISE)
def test_examples_have_the_bits_of_the_cpu(name: str, tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), *EXAMPLE_ARGUMENTS[name][0]]
    environment = os.environ | {"HALOCLINE_OUT": str(tmp_path), "OMP_NUM_THREADS": "1"}
    printed = []
    for device in ("cpu", BOTH):
        chosen = environment | {"HALOCLINE_DEVICE": device}
        done = subprocess.run(command, capture_output=True, text=True, env=chosen, timeout=HANG)
        assert done.returncode == 0, done.stdout + done.stderr
        lines = dict(line.split("  ", 1) for line in done.stdout.splitlines())
        printed.append(lines["checksum"])
    assert printed[0] == printed[1]


@pytest.mark.parametrize("time_step", ["exact", "delayed"])
def test_reduced_time_steps_have_the_bits_of_the_cpu(time_step: str) -> None:
    def act(**options: Any) -> Any:
        grid = hc.Grid((20, 24), periodic=True)
        u = grid.field("u")
        sim = hc.Simulation(
            grid, lambda u: {u: -u * hc.derivative(u, 0)}, scheme=hc.RK2(), time_step=time_step,
            dt=lambda u, cfl: cfl * grid.h(0) / hc.max(abs(u)), parameters={"cfl": 0.3}, **options,
        )  # fmt: skip
        sim[u] = np.random.default_rng(3).uniform(0.5, 1.5, grid.shape)
        results = []
        sim.run(steps=3)
        results.append(sim.time)
        sim.parameters["cfl"] = 0.1
        sim.run(steps=2)
        sim[u] = np.random.default_rng(4).uniform(0.5, 1.5, grid.shape)
        sim.run(until=sim.time + 0.02)
        return [*results, sim.time, sim.steps, sim.checksum(u)]

    on_both(act, ALONE, BOTH)


def test_a_condition_stops_a_run() -> None:
    def act(**options: Any) -> Any:
        grid = hc.Grid((16,), periodic=True)
        u = grid.field("u")

        def after(u: Any) -> None:
            hc.stop(hc.max(u) > 20.0, "too hot")

        sim = hc.Simulation(grid, hc.program(lambda u: u.set(1.5 * u)), after_step=after, **options)
        sim[u] = np.arange(16.0) / 8
        outcome = sim.run(steps=100)
        return outcome.reason, sim.steps, sim.checksum(u)

    reason, steps, _ = on_both(act, ALONE, BOTH)
    assert (reason, steps) == ("too hot", 6)


def test_callbacks_read_and_change_fields() -> None:
    def act(**options: Any) -> Any:
        sim, records = smoothed(**options), []

        def callback(sim: hc.Simulation) -> None:
            records.append((sim.time, sim.checksum("u"), sim.evaluate(hc.sum(sim.grid.fields["u"]))))
            if len(records) == 2:
                sim["u"] = 0.5 * sim["u"]

        sim.run(until=3.0, every=1.0, callback=callback)
        assert len(records) == 3
        return records

    on_both(act, ALONE, BOTH)


def test_blocks_become_active_and_inactive() -> None:
    def act(**options: Any) -> Any:
        sim = smoothed(active=np.array([[1, 1], [1, 0]], dtype=bool), **options)
        results = []
        for mask in ([[0, 1, 1]], [[1, 1], [0, 1], [1, 1]]):
            sim.run(steps=2)
            results.append(
                (sim.checksum("u"), sim["u"].sum(), sim.evaluate(hc.count(sim.grid.fields["u"] > 0)))
            )
            sim.activate(np.array(mask, dtype=bool))
            results.append(sim.checksum("u"))
            sim["u"] = np.random.default_rng(2).uniform(0.5, 1.5, (18, 21))
        sim.run(steps=2)
        return [*results, sim.checksum("u")]

    on_both(act)


def test_a_killed_rank_is_reported(start: Any) -> None:
    text = f"""
DYING = 1
simulation(device={BOTH!r}).run(steps=FOR_EVER, on_progress=progress_callback(DYING, kill_this_process))
print('went on')
"""
    process = start(text, 2)
    out, err = process.communicate(timeout=HANG)
    died = re.fullmatch(r"dies at (\S+)", out.strip())
    assert died, out + err
    assert re.findall(r"error: rank (\d+) \(process \d+\) (?:was killed by SIGKILL|died);", err) == ["1"], err


def test_a_missing_message_is_reported(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALOCLINE_TIMEOUT", "1")
    text = f"""
import faults
faults.PAUSE = 20  # rank 0 computes its step with what other processes leave it
stop = progress_callback(1, stop_until_continued)
simulation(device={BOTH!r}, overlap=True).run(steps=FOR_EVER, on_progress=stop)
"""
    for _ in range(4):  # a rank may also stop during the agreement of all ranks on the next pass
        process = start(text, 2, through_command=False)
        out, err = process.communicate(timeout=HANG)
        assert process.returncode != 0, out + err
        match = re.search(r"rank 0: waited 1 s in vain for (.*), since rank 1 does not answer", err)
        assert match, out + err
        if match[1] != "a reduction over all ranks":
            break
    assert re.match(r"message \d+ from rank 1", match[1]), out + err
