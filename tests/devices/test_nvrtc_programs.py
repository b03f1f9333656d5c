"""NVRTC compiles the kernels of every program, for architectures of devices that this machine lacks.

The programs are those of the solvers, cases and examples, and bitwise_programs in both precisions. The tests
record the registers of a thread and its spilled bytes. Only the programs in SPILLED may spill.

`make test` compiles the programs in DEFAULT for small and large grids: stencils of several widths,
reductions, stages, walls, many fields and terms, and single precision, on sm_70, sm_80 and sm_90. All
strategies are compiled for one program. Version 13 of NVRTC compiles one program for both of its
architectures.

`make test-full` compiles every program with every strategy: by version 12 for all three architectures, and by
version 13 for the two that it supports.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from halocline.compile import nvrtc
from halocline.compile.compiler import compile_program
from halocline.compile.strategy import Strategy, block_splits
from halocline.errors import CompileError
from halocline.problems.problem import Problem
from halocline.run.devices.checked import mark_checked, with_copies
from halocline.run.tuning import kernels
from loops import some
from nvrtc_kernels import ARCHITECTURES, LITERALS, STRATEGIES, check, sources, version_13

# -- programs ----------------------------------------------------------------------------------------


# Programs with different kernels; the extended test suite compiles all programs for all architectures.
DEFAULT = [
    ("heat-euler-2-3", "sm_90"),
    ("heat-rk3-6-3", "sm_80"),
    ("heat-ssprk3-2-1", "sm_70"),
    ("wave-3", "sm_70"),
    ("poisson-cg-fused-3", "sm_90"),
    ("case-mhd-benchmark", "sm_70"),
    ("case-cavity-2d", "sm_80"),
    ("gray_scott-float32", "sm_70"),
    ("fluxes-float64", "sm_90"),
    ("three_axes-float64", "sm_80"),
    ("many-fields", "sm_70"),
]


# -- NVRTC -------------------------------------------------------------------------------------------


@pytest.fixture
def newer(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Select version 13 of NVRTC."""
    monkeypatch.setenv("HALOCLINE_NVRTC", str(version_13(tmp_path_factory.getbasetemp() / "nvrtc-13")))


@pytest.mark.parametrize(("name", "architecture"), DEFAULT)
def test_programs_compile(name: str, architecture: str, record_property: Any) -> None:
    check(name, ["default", LITERALS], [architecture], record_property)


@pytest.mark.parametrize("name", ["heat-rk3-6-3", pytest.param("fluxes-float64", marks=pytest.mark.long)])
def test_every_strategy_compiles(name: str, record_property: Any) -> None:
    for n, strategy in some(enumerate(STRATEGIES)):
        check(name, [strategy], [ARCHITECTURES[12][n % 3]], record_property)


RECORD = Path(__file__).parents[2] / "benchmarks" / "results" / "device_code_cf40571f.json"


@pytest.mark.parametrize(
    ("name", "recorded"),
    [
        ("heat-euler-2-3", "heat-2-float64"),
        ("heat-euler-6-3", "heat-6-float64"),
        ("case-mhd-benchmark", "mhd-benchmark"),
    ],
)
def test_kernels_need_at_most_70_percent_of_the_recorded_instructions(name: str, recorded: str) -> None:
    rows = json.loads(RECORD.read_text())["rows"]
    (before,) = (r["kernels"] for r in rows if (r["program"], r["architecture"]) == (recorded, "sm_90"))
    (texts,) = sources(name, (LITERALS,))
    resources = nvrtc.resources(nvrtc.compile_cuda(texts[LITERALS], "sm_90"))
    sweeps = [kernel for kernel in resources if kernel.startswith("sweep_")]
    for kernel in some(sweeps):
        assert resources[kernel].instructions <= 0.7 * before[kernel][0], kernel
        assert resources[kernel].registers <= 168, kernel


def test_the_tested_strategies_include_all_candidates_of_tuning() -> None:
    """A measurement tries only these strategies, apart from thread blocks and 2.5D streaming."""

    def kind(strategy: Strategy) -> tuple[Any, ...]:
        vectors = any(split.kind == "vector" for split in strategy.splits)
        return strategy.reads, strategy.stages, vectors, strategy.resident_blocks > 0

    kinds = {kind(strategy) for ndim in (1, 2, 3) for strategy in kernels.strategies(ndim, staged=True)}
    assert kinds <= {kind(strategy(ndim)) for strategy in STRATEGIES.values() for ndim in (1, 2, 3)}


@pytest.mark.parametrize("order", [2, 6])
@pytest.mark.parametrize("dtype", ["float64", pytest.param("float32", marks=pytest.mark.long)])
@pytest.mark.parametrize("cells", [1, 4], ids=["cells", "vectors"])
def test_planes_are_copied_asynchronously_on_checked_devices(
    cells: int, order: int, dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Vectors are copied in bulk on sm_90."""
    monkeypatch.setenv("HALOCLINE_CACHE", str(tmp_path))
    case = Problem("heat", [64] * 3, scheme="euler", order=order, dtype=dtype)
    strategy = Strategy("planes", block_splits(3, (32, 4), rows=2 if cells == 1 else 1, cells=cells))
    device = compile_program(case.program, case.grid, device=strategy).device
    assert device is not None
    assert ("HC_BULK_ROW(&" in device.source) == (cells > 1)
    for architecture in ("sm_80", "sm_90"):
        place = SimpleNamespace(interface="cuda", name="GPU", driver="1.2", architecture=architecture)
        assert with_copies(place, device.source) == device.source
        mark_checked(place)
        text = with_copies(place, device.source)
        assert text != device.source
        resources = nvrtc.resources(nvrtc.compile_cuda(text, architecture))
        assert resources["sweep_0_0"].spilled == 0
        assert resources["sweep_0_0"].registers <= 128


@pytest.mark.usefixtures("newer")
def test_programs_compile_with_version_13(record_property: Any) -> None:
    assert nvrtc.find_nvrtc().version[0] == 13
    check("heat-rk3-6-3", ["default"], ARCHITECTURES[13], record_property)
    with pytest.raises(CompileError, match="sm_70"):
        nvrtc.compile_cuda("", "sm_70")
