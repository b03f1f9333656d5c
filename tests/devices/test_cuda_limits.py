"""Limits of CUDA devices, on the stand-in for the driver: threads, memory, peers and time.

The tests run under mpiexec, so that the stand-in does not affect the processes of other tests.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

import cuda_standin
import halocline as hc
from halocline import _native as native
from halocline.compile.driver import compile_library
from halocline.compile.nvrtc import compile_cuda
from halocline.compile.strategy import SHARED_BYTES, Strategy, block_splits
from halocline.compile.targets.source import device_text
from halocline.errors import RunError
from halocline.explanation import explain
from halocline.plan import patches
from halocline.run.engine import prepare, prepared
from halocline.run.memory import contents
from halocline.run.ranks.mpi import world
from halocline.run.tuning import kernels
from halocline.run.tuning.patches import Tuned
from wide_stencil import star

pytestmark = pytest.mark.ranks(1, alone="file")

SHARED = 16 << 10


@pytest.fixture(scope="module")
def standin() -> ctypes.CDLL:
    if cuda_standin.real_devices():
        pytest.skip("real devices have limits of their own")
    return cuda_standin.load(2, shared=SHARED, delay=2000)


# -- threads of a thread block -----------------------------------------------------------------------


def test_kernels_run_with_their_compiled_number_of_threads(
    standin: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Resident thread blocks exceed the launch bounds of CUDA, and the run still has the bits of the CPU."""
    shape = (7, 11, 13)
    expected = star(shape, 2)
    monkeypatch.setattr(
        prepare,
        "Strategy",
        lambda *_: Strategy("queue", block_splits(3, (8, 8), planes=5), resident_blocks=2),
    )
    assert star(shape, 2, device="cuda:0") == expected


@pytest.mark.parametrize("kernel", ["hc_find_nonfinite", "sweep_0_0", "hc_finish", "hc_move_pieces"])
def test_too_few_threads_are_one_clear_error(
    standin: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch, kernel: str
) -> None:
    monkeypatch.setenv("HALOCLINE_TEST_CUDA_THREADS", "128")
    grid = hc.Grid((600 if kernel == "sweep_0_0" else 40,), periodic=kernel == "hc_move_pieces")
    grid.field("u", boundary=None if kernel == "hc_move_pieces" else hc.Value(0.0))

    def step(u: Any) -> None:
        u.set(u + hc.laplacian(u))
        if kernel == "hc_finish":
            hc.scalar("total").set(hc.sum(u))

    sim = hc.Simulation(grid, hc.program(step), device="cuda:0")
    if kernel != "hc_find_nonfinite":  # this kernel runs first
        monkeypatch.setattr(contents, "check_finite", lambda *_: None)
    with pytest.raises(
        RunError,
        match=rf"^[\w ']+: kernel {kernel} needs 256 threads per block, but cuda:0 \(.*\) supports "
        r"at most 128: use another device or the CPU$",
    ):
        sim.run(steps=1)


def test_unsupported_kernels_are_not_tuned(standin: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    results: list[Tuned[Strategy]] = []
    monkeypatch.setattr(prepare, "remember", lambda place, tuned, program: results.append(tuned))
    strategies = (
        Strategy("planes", block_splits(2, (32, 4), planes=16)),
        Strategy("direct", block_splits(2, (32, 4), planes=8)),
    )
    monkeypatch.setattr(kernels, "strategies", lambda ndim, staged: strategies)
    monkeypatch.setattr("halocline.run.tuning.patches.TURN", 1e-4)
    monkeypatch.setattr("halocline.run.tuning.patches.ROUNDS", 1)
    compile_for = prepared.compile_for

    def refusing(device: Any, source: str) -> Any:
        if "u_field_tile" in source:
            raise RunError("no planes here")
        return compile_for(device, source)

    monkeypatch.setattr(prepared, "compile_for", refusing)
    assert star((12, 20), 2, device="cuda:0", kernels="tune") == star((12, 20), 2)
    assert [tuned.measured_count for tuned in results] == [2]


# -- memory ------------------------------------------------------------------------------------------


def test_kernels_fit_into_shared_memory(standin: ctypes.CDLL) -> None:
    """Stages that exceed the shared memory of a thread block are stored in device memory, also in explain."""

    @hc.program
    def step(u: Any, v: Any) -> None:
        slopes = [hc.stage(u * u[0, 1] + n, f"s{n}", storage="patch") for n in range(3)]
        v.set(sum(s[1, 0] - s[-1, 0] for s in slopes))

    def simulation(**options: Any) -> hc.Simulation:
        grid = hc.Grid((20, 24), periodic=True)
        u = grid.field("u")
        grid.field("v")
        sim = hc.Simulation(grid, step, **options)
        sim[u] = lambda x, y: hc.sin(x) * hc.cos(y)
        sim.run(steps=1)
        return sim

    sim = simulation(device="cuda:0,1")
    assert sim.checksum("v") == simulation().checksum("v")
    assert sim.domain.shared_bytes == SHARED < SHARED_BYTES
    (group_kernels,) = [
        group_kernels for group_kernels in sim.schedule.device.kernels.values() if len(group_kernels) > 1
    ]
    assert all(not any(split.kind == "block" for split in kernel.splits) for kernel in group_kernels)
    assert hc.explain(sim).schedule == sim.schedule


def test_slabs_limit_the_scratch_memory(standin: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    """The predicted memory, the memory of devices and the explanation are those of the slabs."""

    @hc.program
    def step(u: Any, v: Any) -> None:
        slope = hc.stage(u * u[0, 1], "slope", storage="patch")
        v.set(slope[1, 0] - slope[-2, 0])
        u.set(u + 1e-3 * v)

    def simulation(**options: Any) -> hc.Simulation:
        grid = hc.Grid((256, 24), periodic=True)
        u = grid.field("u")
        grid.field("v")
        sim = hc.Simulation(grid, step, **options)
        sim[u] = lambda x, y: hc.sin(x) * hc.cos(y)
        sim.run(steps=5)
        return sim

    monkeypatch.setattr(prepare, "Strategy", lambda *_: Strategy(stages="memory"))
    monkeypatch.setattr(explain, "_strategy", lambda _: Strategy(stages="memory"))
    expected, memory = simulation().checksum("v"), []
    for limit in (2**30, 2**12):
        monkeypatch.setattr(patches, "SCRATCH_BYTES", limit)
        sim = simulation(device="cuda:0")
        assert sim.checksum("v") == expected
        explanation = hc.explain(sim)
        memory.append(explanation.on.memory)
        slabs = explanation.plan.subdomains[0].patches.slabs
        assert slabs == (1 if limit == 2**30 else 10)
        assert ("in slabs to limit scratch memory" in str(explanation)) == (slabs > 1)
    rows = 256 - 26  # of scratch memory
    assert memory[0] - memory[1] >= rows * 24 * 8


def test_out_of_memory_errors_advise_on_devices(standin: ctypes.CDLL) -> None:
    device = native.devices("cuda")[0]
    with pytest.raises(native.OutOfMemory, match=r"available: use more devices, a smaller grid or float32$"):
        device.allocate(2**40)


# -- peers -------------------------------------------------------------------------------------------


def test_devices_beyond_the_peer_limit_give_the_same_bits(standin: ctypes.CDLL) -> None:
    expected = star((12, 20), 2)
    standin.halocline_standin_fail(b"cuCtxEnablePeerAccess", 711)
    assert star((12, 20), 2, device="cuda:0,1") == expected


# -- time --------------------------------------------------------------------------------------------

SHIFT = """
HC_KERNEL shift(HC_GLOBAL double *a, const hc_layout where, HC_GLOBAL const double *scalars,
                HC_GLOBAL const hc_control *control, const hc_frame f) {
  a[where.at + f.hi[2]] = a[where.at + f.lo[2]] + (double)f.block_cells[0];
}
"""


def test_all_messages_arrive_before_the_next_sweep(standin: ctypes.CDLL) -> None:
    """A message to the same rank fills halo cell 8 from cell 0 before the next sweep computes there."""
    device = native.devices("cuda")[0]
    module = device.load(compile_cuda(device_text([SHIFT], 1), device.architecture).read_bytes())
    storage = native.DeviceStorage(device, (1, 1, 8), (0, 0, 0), (0, 0, 1), 8)
    engine = native.Engine.on_devices(
        str(compile_library('#include "halocline/abi.h"\n')),
        [native.DeviceSubdomain(device, module, [storage], 1)],
        np.zeros(1),
        (1, 1, 8),
        100,
        world().handle,
    )

    def sweep(source: int, target: int, plus: int, sends: Any = (), receives: Any = ()) -> None:
        frame = [0, 0, source, 0, 0, target, *[0] * 17, plus, 0, 0]
        launch = native.Launch("shift", [0], frame, (1, 1, 1), (1, 1, 1), False, False, False, ("", 0))
        item = native.Item(0, False, [launch])
        share = native.DeviceShare(sends, receives, [], [], [], [], [item], [])
        engine.device_sweep("shift", [share], [], [], 0)

    first, halo = ([(0, (0, 0, n), (1, 1, n + 1))] for n in (0, 8))
    sweep(2, 0, 5)
    sweep(0, 3, 0, [native.Message(0, 0, first)], [native.Message(0, 0, halo)])
    sweep(8, 8, 100)
    sweep(8, 1, 0)
    for _ in range(30):
        engine.run(asynchronous=False)
        assert storage.fetch().view()[0, 0, :4].tolist() == [5, 105, 0, 5]
