"""Compiled libraries: one per source, also for several processes at the same time."""

from __future__ import annotations

import ctypes
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest

import halocline as hc
from compiled_programs import fields
from compiler_processes import SMALL, WRAPPER, calls, start, wait_for
from halocline.compile import cxx
from halocline.compile.compiler import compile_program
from halocline.compile.driver import compile_library
from halocline.errors import CompileError, InputError
from hang import HANG


@pytest.fixture
def wrapper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Return the call log of a compiler with an empty cache, and the file that suspends the compiler."""
    call_log, hold, script = tmp_path / "calls", tmp_path / "hold", tmp_path / "slow++"
    script.write_text(WRAPPER.format(notes=call_log, hold=hold))
    script.chmod(0o755)
    monkeypatch.setenv("CXX", str(script))
    monkeypatch.setenv("HALOCLINE_CACHE", str(tmp_path / "cache"))
    return call_log, hold


def test_the_same_source_is_compiled_once(wrapper: tuple[Path, Path]) -> None:
    call_log, _ = wrapper
    first = compile_library(SMALL)
    assert compile_library(SMALL) == first
    assert calls(call_log) == 1
    assert ctypes.CDLL(str(first)).answer() == 42
    assert first.with_suffix(".cpp").read_text() == SMALL
    compile_library(SMALL.replace("42", "43"))
    assert calls(call_log) == 2


def test_processes_that_compile_the_same_source_at_once_all_succeed(
    wrapper: tuple[Path, Path], tmp_path: Path
) -> None:
    call_log, hold = wrapper
    hold.touch()
    processes = [start() for _ in range(4)]
    wait_for(call_log, 2)
    hold.unlink()
    results = [p.communicate(timeout=HANG) for p in processes]
    assert [p.returncode for p in processes] == [0] * 4, results
    (path,) = {out.strip() for out, _ in results}
    assert ctypes.CDLL(path).answer() == 42
    assert not list((tmp_path / "cache").glob("making-*"))


def test_a_killed_compiler_leaves_no_library(wrapper: tuple[Path, Path], tmp_path: Path) -> None:
    call_log, hold = wrapper
    hold.touch()
    process = start()
    wait_for(call_log, 1)
    assert calls(call_log) == 1
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    cache = tmp_path / "cache"
    assert not list(cache.glob("*.so"))
    (leftover,) = cache.glob("making-*")
    hold.unlink()
    assert ctypes.CDLL(str(compile_library(SMALL))).answer() == 42
    assert leftover.exists()  # it could belong to another process
    os.utime(leftover, (0, 0))
    compile_library(SMALL.replace("42", "44"))
    assert not leftover.exists()


def test_an_interrupted_write_leaves_no_library(wrapper: tuple[Path, Path], tmp_path: Path) -> None:
    """A source that the compiler rejects is stored for the report, and never has the name of a library."""
    with pytest.raises(CompileError, match="could not compile generated code") as caught:
        compile_library("this is no C++\n")
    report = re.search(r"kept in (\S+)\)", str(caught.value))
    assert report is not None
    assert Path(report.group(1)).read_text() == "this is no C++\n"
    assert not list((tmp_path / "cache").glob("*.so"))


def test_an_unwritable_cache_is_reported_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HALOCLINE_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(
        CompileError, match=r"file/cache, cannot be written .* Set HALOCLINE_CACHE to a writable folder"
    ):
        compile_library(SMALL)


def test_no_compiler_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler++")
    with pytest.raises(
        CompileError, match=r"CXX is 'no-such-compiler\+\+', which is not a program on PATH\. Install"
    ):
        compile_library(SMALL)
    monkeypatch.delenv("CXX")
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(cxx, "_zig", tuple)
    expected = r"neither .* nor c\+\+ is on PATH, and the package ziglang is not installed\. Install one"
    with pytest.raises(CompileError, match=expected):
        compile_library(SMALL)
    monkeypatch.setenv("CXX", "/bin/false")
    with pytest.raises(CompileError, match=r"compiler '/bin/false' does not run"):
        compile_library(SMALL)


def test_each_compiler_and_flag_has_its_own_library(
    wrapper: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    call_log, _ = wrapper
    first = compile_library(SMALL)
    other = tmp_path / "other++"
    other.write_text((tmp_path / "slow++").read_text())
    other.chmod(0o755)
    monkeypatch.setenv("CXX", str(other))
    second = compile_library(SMALL)
    monkeypatch.setattr(cxx, "FLAGS", (*cxx.FLAGS, "-DMORE"))
    third = compile_library(SMALL)
    assert len({first, second, third}) == 3
    assert calls(call_log) == 3


def test_the_code_is_independent_of_parameters_shape_and_spacing() -> None:
    libraries = set()
    for n, extent, kappa in ((16, 1.0, 0.1), (21, 2.5, 0.7)):
        grid = hc.Grid((n, n + 1), extent, origin=extent, periodic=(True, False))
        T = grid.field("T", boundary=hc.Value(hc.parameter("hot")))

        def heat(T: Any, kappa: Any) -> Any:
            return {T: kappa * hc.laplacian(T) + T.grid.x}

        sim = hc.Simulation(
            grid, heat, parameters={"kappa": kappa, "hot": kappa}, scheme=hc.RK2(), dt=1e-4 * kappa
        )
        sim[T] = 1.0
        sim.run(steps=2)
        sim.parameters["kappa"] = 2 * kappa
        sim.run(steps=2)
        libraries.add(sim.prepared.library)
    assert len(libraries) == 1


def test_a_program_without_statements_is_an_error() -> None:
    grid, _ = fields("u")
    with pytest.raises(InputError, match=r"program 'nothing' has no statements and sets nothing"):
        compile_program(hc.program(nothing).trace(), grid)


def nothing() -> None:
    pass
