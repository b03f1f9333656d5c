"""Every loop along a row of a step with shocks is vectorised, for vectors of 256 and of 512 bits.

These loops are the hardest ones: they contain hundreds of selections and comparisons. Compilers rewrite them
until masks meet that no vector instruction supports. One such loop halved the speed.
"""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from halocline.compile.compiler import compile_program
from halocline.compile.cxx import LEVEL, Compiler
from halocline.compile.targets.cpu import include_folder
from halocline.problems.problem import Problem
from hang import HANG

BUILDS = {256: ("-march=x86-64-v3",), 512: ("-march=x86-64-v4", "-mprefer-vector-width=512")}
LATER = 5  # lines after the pragma on which a loop or its body may begin


def loops(source: str, folder: Path, bits: int) -> tuple[int, list[str]]:
    """Return the number of loops along rows, and the first lines of the loops that remain scalar."""
    gxx = str(shutil.which("g++"))
    text, report = folder / "kernels.cpp", folder / "report"
    text.write_text(source)
    flags = Compiler((gxx,), "g++").flags()
    flags_used = [f for f in flags if not f.startswith(("-march", "-mprefer")) and f != "-shared"]
    flags_used.append("-fno-tree-loop-distribute-patterns")  # its report omits the loops that become memcpy
    options = [*flags_used, *BUILDS[bits], f"-fopt-info-vec-optimized={report}", f"-I{include_folder()}"]
    subprocess.run([gxx, *options, "-c", text, "-o", folder / "kernels.o"], check=True, timeout=HANG)
    result = re.findall(
        rf"kernels.cpp:(\d+):\d+: optimized: loop vectorized using {bits // 8} byte", report.read_text()
    )
    vectors = {int(line) for line in result}
    # The second variant of a kernel uses non-temporal stores and is not compiled here.
    variant = re.compile(r"(?<=\n#else\n).*?(?=\n#endif\n)", re.DOTALL)
    cached, count = variant.subn(lambda match: "\n" * match[0].count("\n"), source)
    assert count == source.count("#ifndef HC_STREAMING") > 0
    lines = cached.splitlines()
    starts = [n for n, line in enumerate(lines, 1) if line.lstrip().startswith("#pragma omp simd")]
    return len(starts), [lines[n] for n in starts if vectors.isdisjoint(range(n, n + LATER))]


@pytest.mark.skipif(
    platform.machine() != "x86_64" or shutil.which("g++") is None, reason="reads reports of g++ on x86-64"
)
@pytest.mark.parametrize(("name", "n", "flux", "bits"), [
    ("orszag-tang", (48, 48), "mhdtvd", 256),
    ("orszag-tang", (48, 48), "roe", 512),
    ("blast", (48, 48, 48), "mhdtvd", 512),
    ("blast", (48, 48, 48), "hlld", 256),
    ("blast", (48, 48, 48), "hlld", 512),
])  # fmt: skip
def test_loops_along_rows_are_vector_code(
    name: str, n: tuple[int, ...], flux: str, bits: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(LEVEL)  # the level of users' kernels
    ready = Problem(name, n, {"flux": flux})
    source: Any = compile_program(ready.program, ready.grid).source
    count, scalar = loops(source, tmp_path, bits)
    assert count > 15
    assert not scalar
