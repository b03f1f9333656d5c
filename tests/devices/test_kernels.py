"""Device kernels give the CPU's bits with every strategy, and measured strategies are stored."""

from __future__ import annotations

import re
from typing import Any

import pytest

import bitwise_programs
import halocline as hc
from halocline.compile.compiler import compile_program
from halocline.compile.schedule import Schedule
from halocline.compile.strategy import READS, SHARED_BYTES, TILE_BYTES, Strategy, block_splits
from halocline.lang.program import Program
from halocline.lang.trace import tracing
from halocline.plan import launches
from halocline.run.engine import prepare
from kernels_of_devices import WAYS, sources, use_splits
from many_fields import sum_of_fields
from many_invariants import constant_steps
from runs_on_devices import BOTH, check_equal_bits
from suites import cases
from wide_stencil import star

__all__ = ["sources"]  # a fixture


def strategies(ndim: int) -> list[Strategy]:
    """Return strategies of each kind, with several cells per thread and without."""
    return [
        Strategy("direct", block_splits(ndim, (16, 4), planes=1)),
        Strategy("direct", block_splits(ndim, (8, 4), planes=4, rows=2, cells=2)),
        Strategy("queue", block_splits(ndim, (8, 8), planes=5), resident_blocks=2),
        Strategy("queue", block_splits(ndim, (4, 4), planes=5, cells=2)),
        Strategy("queue", block_splits(ndim, (8, 2), planes=5, rows=3)),
        Strategy("planes", block_splits(ndim, (8, 4), planes=3)),
        Strategy("planes", block_splits(ndim, (8, 4), planes=3, rows=2, cells=2)),
    ]


@cases("number", range(len(strategies(1))), default=[3])
@cases("shape", [(19, 37), (11, 13, 21)], default=[(11, 13, 21)])
def test_every_strategy_gives_the_same_bits(
    shape: tuple[int, ...], number: int, opencl: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = 6 if len(shape) < 3 else 4
    expected = star(shape, order)
    strategy = strategies(len(shape))[number]
    monkeypatch.setattr(prepare, "Strategy", lambda *_: strategy)
    assert star(shape, order, device="opencl:0") == expected


@pytest.mark.parametrize("device", ["opencl:0", pytest.param(BOTH, marks=pytest.mark.long)])
def test_literal_layouts_do_not_change_bits(
    device: str, opencl: Any, sources: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernels have the new layout of a field that has moved to memory with a wider halo."""
    results = []
    for place, cells in (("cpu", 1), (device, 1), (device, 10**9)):
        monkeypatch.setattr(launches, "LITERAL_CELLS", cells)
        sim = sum_of_fields(26, place)  # without literals, these layouts are in memory
        sim.run(steps=2)
        u = sim.grid.fields["u0"]
        norm = sim.evaluate(hc.norm(u[3, 4] - u))
        sim.run(steps=1)
        results.append((norm, sim.checksum("u0")))
    assert results[0] == results[1] == results[2]
    literals = {re.search(r"HC_LAYOUT_0 .*", source) for source in sources}
    layouts = {literal[0] for literal in literals if literal}
    assert None in literals
    assert len(layouts) == 2


@pytest.mark.parametrize(
    "problem",
    [
        p if p.__name__ == "fluxes" else pytest.param(p, marks=pytest.mark.long)
        for p in bitwise_programs.PROBLEMS
    ],
    ids=lambda problem: problem.__name__,
)
@cases("ways", [WAYS[:1], WAYS[1:]], default=[WAYS[:1]], ids=["one", "several"])
def test_literal_strides_of_scratch_memory_do_not_change_bits(
    problem: bitwise_programs.Problem,
    ways: list[dict[str, Any]],
    opencl: Any,
    sources: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(launches, "LITERAL_CELLS", 1)
    monkeypatch.setattr(prepare, "Strategy", lambda *_: Strategy(stages="memory"))
    assert check_equal_bits(problem, "float64", ways) == len(ways)
    if problem.__name__ == "fluxes":  # the others have no stages
        assert any("#define HC_EXTENT_2" in s and "HC_GLOBAL char *scratch" in s for s in sources)


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "problem",
    [
        p if p.__name__ == "gray_scott" else pytest.param(p, marks=pytest.mark.long)
        for p in bitwise_programs.PROBLEMS
    ],
    ids=lambda problem: problem.__name__,
)
def test_several_cells_per_thread_do_not_change_bits(
    problem: bitwise_programs.Problem, dtype: str, opencl: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for splits in (("direct", 3, 2), ("queue", 2, 4), ("planes", 2, 2)):
        with monkeypatch.context() as changes:
            use_splits(changes, *splits)
            assert check_equal_bits(problem, dtype, WAYS[:2]) == 2, splits


@cases("way", WAYS, default=[WAYS[0], WAYS[-1]], ids=lambda way: " ".join(map(str, way.values())))
def test_constant_values_are_those_of_the_current_run(way: dict[str, Any], opencl: Any) -> None:
    """They are computed once per run, also where runs pause and the user changes parameters."""
    assert constant_steps(**way) == constant_steps("cpu")


def compiled(strategy: Strategy, order: int = 6) -> Schedule:
    grid = hc.Grid((20, 20, 20), periodic=True)
    u = grid.field("u")
    program = Program("star")
    with tracing(program):
        u.set(u + hc.laplacian(u, order=order))
    return compile_program(program, grid, device=strategy)


def test_a_queue_reads_each_value_once() -> None:
    """A 2.5D streaming kernel reads one new value along the slowest axis in each step, not seven."""
    strategies_by_reads = {reads: Strategy(reads, block_splits(3)) for reads in READS}
    texts = {
        reads: compiled(strategy).device.source  # type: ignore[union-attr]
        for reads, strategy in strategies_by_reads.items()
    }
    loops = {reads: text[text.index("i < i_end") :] for reads, text in texts.items()}
    counts = {reads: loop.count("u_cell[") for reads, loop in loops.items()}
    assert counts == {"direct": 19, "queue": 13, "planes": 0}  # planes are copied to shared memory
    assert "HC_TILE(double, u_field_tile, " in texts["planes"]
    assert loops["planes"].count("HC_COPY(") == 1  # one copy of the next plane
    assert "HC_KERNEL_FIXED_BLOCK(64, 4, 1) sweep_0_0(" in texts["planes"]


def test_values_of_too_large_tiles_are_read_from_memory() -> None:
    """Planes of 256 + 2 x 20 cells for each of many fields exceed the shared memory of a thread block."""
    grid = hc.Grid((48, 48, 48), periodic=True)
    fields = [grid.field(f"u{n}") for n in range(12)]
    program = Program("many")
    with tracing(program):
        # all equations read the first field, so that one kernel computes them
        hc.assign({u: hc.laplacian(u, order=8) + fields[0] for u in fields})
    for shared in (SHARED_BYTES, TILE_BYTES):
        device = compile_program(
            program, grid, device=Strategy("planes", block_splits(3)), shared=shared
        ).device
        assert device is not None
        (kernel,) = device.kernels["sweep_0"]
        tiles = re.findall(r"HC_TILE\(double, (\w+)_field_tile, (\d+), (\d+)\);", device.source)
        ends = [int(offset) + 8 * int(count) for _, count, offset in tiles]
        assert all(int(offset) >= end for (_, _, offset), end in zip(tiles[1:], ends, strict=False))
        assert shared // 2 < ends[-1] <= kernel.tile_bytes <= shared
        assert "u11_cell[1]" in device.source  # the last field has no shared-memory tile


def test_stages_are_stored_in_shared_memory_if_they_fit() -> None:
    def schedule(stages: str, width: int) -> Schedule:
        grid = hc.Grid((40, 40, 40), periodic=True)
        u, v = grid.field("u"), grid.field("v")
        program = Program("stages")
        with tracing(program):
            slope = hc.stage(u * u[0, 0, 1] + hc.exp(u), "slope", storage="patch")
            v.set(slope[width, 0, 0] + slope[-width, 0, 0] * slope[0, width, 0] + slope[0, -width, 0])
        return compile_program(program, grid, device=Strategy(stages=stages))

    def kernels_of(schedule: Schedule) -> tuple[Any, ...]:
        assert schedule.device is not None
        return next(iter(schedule.device.kernels.values()))

    together = kernels_of(schedule("shared", 1))
    assert [kernel.scratch for kernel in together] == [False]
    assert any(split.kind == "block" for split in together[0].splits)
    for kernels_by_name in (kernels_of(schedule("memory", 1)), kernels_of(schedule("shared", 12))):
        assert [kernel.scratch for kernel in kernels_by_name] == [True] * 2
        assert not any(split.kind == "block" for kernel in kernels_by_name for split in kernel.splits)
