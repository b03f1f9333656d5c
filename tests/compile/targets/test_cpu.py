"""Separate compilation of the parts of large kernels for the CPU."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest

import halocline as hc
from compiler_processes import SMALL, WRAPPER, calls, start, wait_for
from halocline.compile.driver import compile_library
from halocline.compile.targets import cpu
from halocline.errors import CompileError


@pytest.fixture
def wrapper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Return the call log of a compiler with an empty cache, and the file that suspends the compiler."""
    call_log, hold, script = tmp_path / "calls", tmp_path / "hold", tmp_path / "slow++"
    script.write_text(WRAPPER.format(notes=call_log, hold=hold))
    script.chmod(0o755)
    monkeypatch.setenv("CXX", str(script))
    monkeypatch.setenv("HALOCLINE_CACHE", str(tmp_path / "cache"))
    return call_log, hold


def in_parts(functions: list[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the source of a library in which each function longer than SMALL is a part of its own."""
    monkeypatch.setattr(cpu, "LARGE", len(SMALL))
    return cpu.translation_unit(functions)


def large(name: str, value: str) -> str:
    return f'extern "C" int {name}() {{ return {value}; }}{" " * len(SMALL)}'


def test_large_kernels_are_compiled_separately_into_one_library(
    wrapper: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call_log, _ = wrapper
    small = 'extern "C" int three() { return 3; }'
    source = in_parts(
        [small, large("one", "1"), small.replace("three", "four"), large("two", "2")], monkeypatch
    )
    assert cpu.number_of_parts(source) == 2
    path = compile_library(source)
    library = ctypes.CDLL(str(path))
    assert [library.one(), library.two(), library.three(), library.four()] == [1, 2, 3, 3]
    assert calls(call_log) == 3  # each part, and the library that joins both
    assert compile_library(source) == path
    assert calls(call_log) == 3
    assert {f.name for f in (tmp_path / "cache").iterdir()} == {
        path.name,
        f"{path.name}.sha256",
        f"{path.stem}.cpp",
    }
    assert path.with_suffix(".cpp").read_text() == source
    whole = tmp_path / "whole.so"
    subprocess.run(["g++", "-shared", "-fPIC", str(path.with_suffix(".cpp")), "-o", str(whole)], check=True)
    assert ctypes.CDLL(str(whole)).two() == 2
    assert cpu.number_of_parts(in_parts([small, large("one", "1")], monkeypatch)) == 1


def test_a_part_that_the_compiler_rejects_is_one_error(
    wrapper: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = in_parts([large("one", "1"), large("two", "unheard_of")], monkeypatch)
    with pytest.raises(CompileError, match=r"exit status 1:\n(.*\n)*.*unheard_of") as caught:
        compile_library(source)
    report = re.search(r"kept in (\S+)\)", str(caught.value))
    assert report is not None
    assert Path(report.group(1)).read_text() == source
    assert [f.name for f in (tmp_path / "cache").iterdir()] == [Path(report.group(1)).name]


def test_parts_are_compiled_in_parallel_and_a_kill_leaves_no_library(
    wrapper: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call_log, hold = wrapper
    hold.touch()
    source = in_parts([large("one", "1"), large("two", "2")], monkeypatch)
    process = start(source)
    together = min(2, len(os.sched_getaffinity(0)))
    wait_for(call_log, together)
    assert calls(call_log) == together
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not list((tmp_path / "cache").glob("*.so"))
    hold.unlink()
    assert ctypes.CDLL(str(compile_library(source))).two() == 2


def test_separate_compilation_does_not_change_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    checksums = []
    for longest in (cpu.LARGE, 500):
        monkeypatch.setattr(cpu, "LARGE", longest)
        grid = hc.Grid((12, 9), periodic=(True, False))
        u = grid.field("u", boundary=hc.Value(0.5))
        sim = hc.Simulation(grid, lambda u: {u: hc.laplacian(u) - hc.exp(u)}, scheme=hc.RK3(), dt=1e-4)
        sim[u] = np.arange(108.0).reshape(12, 9) % 7
        sim.run(steps=3)
        checksums.append(sim.checksum(u))
        assert cpu.number_of_parts(sim.schedule.source) == (
            1 if longest > 500 else 6
        )  # sweeps, walls, scalars
    assert checksums[0] == checksums[1]
