"""Forked children of processes that have run: threads start again, and lost resources give a clear error."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hang import HANG
from suites import cases

SIMULATION = """
import multiprocessing, os, sys
import halocline as hc

def simulation(**how):
    grid = hc.Grid((64, 64), periodic=True)
    u = grid.field("u")
    sim = hc.Simulation(grid, lambda u: {u: hc.laplacian(u)}, scheme=hc.Euler(), dt=1e-5, **how)
    sim[u] = lambda x, y: x * y
    return sim

def bits(sim, steps=4, **how):
    sim.run(steps=steps, **how)
    return sim.checksum("u")
"""

THREADS = f"""{SIMULATION}
def child(threads):
    return bits(simulation(threads=threads))

expected = child(2)
shared = simulation(threads=2)
bits(shared)
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(child, [1, 2, 2, 3]) == [expected] * 4
process = os.fork()
if process == 0:  # the simulation of the parent still runs, and a child may fork again
    grandchild = os.fork()
    if grandchild == 0:
        os._exit(child(2) != expected)
    failed = os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1])
    os._exit(failed or bits(shared) == expected)
assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
assert shared.checksum("u") == expected  # the child writes its own copy of the memory
assert child(2) == expected
print("ended")
"""

RESOURCES = f"""{SIMULATION}
from mpi4py import MPI

kind, folder = sys.argv[1:]

def use(name):
    if kind == "MPI":
        bits(simulation(threads=2, communicator=MPI.COMM_WORLD))
    elif kind == "a device":
        bits(simulation(device="opencl:0"))
    elif kind == "TensorStore":
        bits(simulation(threads=2), output=hc.Output(f"{{folder}}/{{name}}.zarr", ["u"], every=hc.steps(2)))

process = os.fork()
if process == 0:  # the parent has not used the resource
    use("before")
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
use("parent")
process = os.fork()
if process == 0:
    try:
        use("child")
    except hc.RunError as error:
        print(error, flush=True)
        if kind == "TensorStore":
            assert not os.path.exists(f"{{folder}}/child.zarr")
            try:
                bits(simulation(threads=2), checkpoint=hc.Checkpoint(f"{{folder}}/checkpoints"))
            except hc.RunError as again:
                assert str(again) == str(error)
            assert not os.path.exists(f"{{folder}}/checkpoints")
        os._exit(7)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 7
use("again")
print("ended")
"""


def ended(script: str, *words: str | Path) -> str:
    """Return the output of a script, which must end in time."""
    command = [sys.executable, "-c", script, *map(str, words)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            out, error = process.communicate(timeout=HANG)
        finally:  # a child that hangs survives its parent
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, error
    assert out.endswith("ended\n")
    return out


def test_a_forked_child_starts_its_own_threads() -> None:
    ended(THREADS)


@cases("kind", ["TensorStore", "MPI", "a device"], default=["MPI"])
def test_lost_resources_of_a_forked_child_are_an_error(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if kind == "a device":
        request.getfixturevalue("opencl")
    output = ended(RESOURCES, kind, tmp_path)
    assert f"{kind} " in output
    assert "cannot be used in process" in output
    assert 'set_start_method("spawn")' in output
