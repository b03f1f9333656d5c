"""The engine's declarations of the CUDA driver, compared with NVIDIA's own header."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DECLARED = re.compile(r'Status \(\*(\w+)\)\([^;]*?=\s*symbols(?:\[|\.optional\()"(\w+)"')


def test_declarations_agree_with_the_cuda_header(tmp_path):
    package = ["install", "-q", "--no-deps", "--target", str(tmp_path / "cuda"), "nvidia-cuda-runtime-cu12"]
    done = subprocess.run([sys.executable, "-m", "pip", *package], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"nvidia-cuda-runtime-cu12 cannot be installed: {done.stderr[-200:]}")
    (header,) = (tmp_path / "cuda").rglob("cuda.h")
    text = (ROOT / "native/src/device/cuda_library.hpp").read_text()
    functions = DECLARED.findall(text)
    assert len(functions) == text.count('"cu')

    def compiled(functions: list[tuple[str, str]]) -> str:
        source = tmp_path / "interface.cpp"
        lines = [f"SAME_FUNCTION({member}, {function})" for member, function in functions]
        source.write_text("\n".join([(ROOT / "tests/support/cuda_driver/interface.cpp").read_text(), *lines]))
        folders = [f"-I{ROOT / 'native/src'}", f"-I{header.parent}"]
        command = ["g++", "-std=c++20", "-fsyntax-only", *folders, str(source)]
        return subprocess.run(command, capture_output=True, text=True).stderr

    assert compiled(functions) == ""
    # otherwise this test proves nothing
    for wrong in (
        ("free", "cuStreamQuery"),
        ("upload", "cuMemcpyDtoHAsync_v2"),
        ("event_create", "cuEventQuery"),
    ):
        assert f"static assertion failed: {wrong[1]}" in compiled([wrong])
