"""Floating-point instructions of kernels, counted in the disassembly."""

from __future__ import annotations

from pathlib import Path

import pytest

from halocline.compile.cxx import LEVEL, VECTORS
from halocline.compile.driver import compile_library
from halocline.errors import RunError
from halocline.run.measurements import instructions as counting
from halocline.run.measurements.instructions import AROUND, Instructions, count, instructions, instructions_of

ROW = 64
SAXPY = """
extern "C" void sums(long n, const double *a, const double *b, double *c) {
#pragma omp simd
  for (long i = 0; i < n; ++i) c[i] = a[i] * b[i] + 2.0 * a[i] + (b[i] - 1.0) * c[i];
}
"""


def listing(*code: str) -> list[counting.Line]:
    """Return lines of a disassembly with one byte per instruction."""
    return [counting.Line(address, *[*text.split(maxsplit=1), ""][:2]) for address, text in enumerate(code)]


def test_instructions_of_loops_are_weighted_by_iterations() -> None:
    code = listing(
        "vaddsd xmm0",  # once per row
        *("vmulpd zmm0", "vaddpd zmm0", "vsubpd zmm1", "vfmadd213pd zmm2", "jne 1 <kernel>"),
        *("vmulsd xmm0", "vaddsd xmm0", "vsubsd xmm1", "vfmadd213sd xmm2", "jne 6 <kernel>"),
        *("vmovapd zmm0", "jmp 20 <kernel>", "vpaddd xmm0"),  # no floating-point arithmetic
    )
    per_cell = count(code, ROW)
    cells = [ROW + more for more in AROUND]
    assert per_cell.vector == pytest.approx(4 * sum(n // 8 for n in cells) / sum(cells))
    rest = 4 * sum(n % 8 for n in cells) + len(cells)
    assert per_cell.scalar == pytest.approx(rest / sum(cells))


def test_float32_vectors_have_twice_as_many_elements() -> None:
    code = listing(
        *("vmulps zmm0", "vaddps zmm0", "vsubps zmm1", "vfmadd213ps zmm2", "jne 0 <kernel>"),
        *("vmulss xmm0", "vaddss xmm0", "vsubss xmm1", "vfmadd213ss xmm2", "jne 5 <kernel>"),
    )
    per_cell = count(code, ROW)
    cells = [ROW + more for more in AROUND]
    assert per_cell.vector == pytest.approx(4 * sum(n // 16 for n in cells) / sum(cells))
    assert per_cell.scalar == pytest.approx(4 * sum(n % 16 for n in cells) / sum(cells))


def test_instructions_of_a_library_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LEVEL, "3")
    per_cell: dict[str, Instructions] = {}
    for bits in ("64", "128"):
        monkeypatch.setenv(VECTORS, bits)
        counted = instructions_of(SAXPY, ROW)
        assert counted is not None
        per_cell[bits] = counted
    assert per_cell["64"].vector == 0.0
    assert per_cell["64"].scalar == pytest.approx(6.0, rel=0.1)  # operations per cell
    assert per_cell["128"].vector == pytest.approx(3.0, rel=0.1)
    assert per_cell["128"].vector > 9.0 * per_cell["128"].scalar
    monkeypatch.setenv(VECTORS, "128")
    assert instructions(compile_library(SAXPY), ROW) == per_cell["128"]


@pytest.mark.parametrize("marks", [("elf64-littleaarch64", b"GCC: ("), ("elf64-x86-64", b"other compiler")])
def test_instructions_of_other_libraries_are_not_counted(
    marks: tuple[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LEVEL, "3")
    monkeypatch.setattr(counting, "COUNTED", marks)
    assert instructions_of(SAXPY, ROW) is None


def test_instructions_need_a_disassembler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RunError, match=r"kernels\.so cannot be counted: .*Install objdump"):
        instructions(tmp_path / "kernels.so", ROW)
