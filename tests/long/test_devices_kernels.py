"""Device kernels give the CPU's bits with every strategy, and measured strategies are stored."""

from __future__ import annotations

from typing import Any

import pytest

import bitwise_programs
import halocline as hc
from halocline.compile.strategy import Strategy
from halocline.plan import launches, patches
from halocline.plan.patches import slab_count
from halocline.run.engine import prepare
from kernels_of_devices import WAYS, sources, use_splits
from many_invariants import weighted_steps
from runs_on_devices import check_equal_bits
from wide_stencil import star

__all__ = ["sources"]  # a fixture


@pytest.mark.parametrize("order", [2, 8])
def test_the_streaming_depth_does_not_change_bits(
    order: int, opencl: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The length of 2.5D streaming, such as eight cells per plane read in advance, changes no bit."""
    shape = (70, 12, 12)
    expected = star(shape, order)
    lengths = set()

    def launch(*arguments: Any) -> Any:
        launch_plan = launched(*arguments)
        lengths.add(launch_plan.planes)
        return launch_plan

    launched = launches._launch
    monkeypatch.setattr(launches, "_launch", launch)
    for many_blocks, length in ((2, 4), (2**20, 4), (2, 16)):
        monkeypatch.setattr(launches, "MANY_BLOCKS", many_blocks)
        monkeypatch.setattr(launches, "DEFAULT_CELLS_PER_THREAD", length)
        assert star(shape, order, device="opencl:0") == expected, (many_blocks, length)
    assert {4, 16} <= lengths if order == 2 else {4, 64} <= lengths


@pytest.mark.parametrize("rows", [2, 3])
@pytest.mark.parametrize("reads", ["planes", "queue"])
def test_rows_of_a_thread_may_have_queues_of_different_length(
    reads: str, rows: int, opencl: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows read other planes, and rows beyond the box feed cells inside it."""
    updates = [
        lambda u: u + u[1, 0, 0] * u[0, 1, 0] + u[2, -1, 0],
        lambda u: u + u[1, 0, 0] * u[0, 1, 0] + u[2, 1, 0],
        lambda u: u - u[-1, 0, 0] + u[0, 1, 0] * u[1, 1, 0],
        lambda u: u + u[0, 0, 1] + u[1, 1, 0] + u[1, 0, 0],
    ]

    def checksums(**options: Any) -> list[str]:
        result = []
        for update in updates:
            grid = hc.Grid((7, 9, 11), periodic=True)
            u = grid.field("u")
            sim = hc.Simulation(grid, hc.program(lambda u, update=update: u.set(0.3 * update(u))), **options)
            sim[u] = lambda x, y, z: 1.0 + 0.3 * x * y - 0.2 * z
            sim.run(steps=2)
            result.append(sim.checksum(u))
        return result

    expected = checksums()
    use_splits(monkeypatch, reads, rows, 2)
    assert checksums(device="opencl:0") == expected


@pytest.mark.parametrize("subdomains", [1, 2])
def test_values_in_constant_memory_change_with_time(subdomains: int, opencl: Any, sources: list[str]) -> None:
    checksums = weighted_steps("opencl:0", subdomains_per_rank=subdomains)
    assert checksums == weighted_steps("cpu")
    assert any("HC_INVARIANTS(hc_sweep_0_invariants, 64)" in source for source in sources)


@pytest.mark.parametrize(
    "problem",
    [p for p in bitwise_programs.PROBLEMS if p.__name__ in ("fluxes", "holes")],
    ids=lambda problem: problem.__name__,
)
def test_slabs_do_not_change_bits(
    problem: bitwise_programs.Problem, opencl: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slabs of a device share scratch memory, and recompute stages at their boundaries."""
    counts = set[int]()

    def counted(*arguments: Any) -> int:
        counts.add(count := slab_count(*arguments))
        return count

    monkeypatch.setattr(patches, "SCRATCH_BYTES", 1)
    monkeypatch.setattr(patches, "SLAB_OVERLAP", 1)
    monkeypatch.setattr(patches, "slab_count", counted)
    monkeypatch.setattr(prepare, "Strategy", lambda *_: Strategy(stages="memory"))
    assert check_equal_bits(problem, "float64", WAYS) == len(WAYS)
    if problem.__name__ == "fluxes":  # the others have no stages
        assert max(counts) > 2
