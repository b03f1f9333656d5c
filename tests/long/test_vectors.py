"""Instructions of kernels by the length of vectors."""

from __future__ import annotations

from pathlib import Path

from halocline.compile.cxx import VECTORS
from step_measurements import run_json

LINE = ["study", "vectors", "heat", "--dim", "1", "--n", "64", "--steps", "4"]


def test_instructions_are_counted_for_each_length(tmp_path: Path) -> None:
    compiler, mark = tmp_path / "compiler", tmp_path / "was-run"
    compiler.write_text(f'#!/bin/sh\necho "$@" >> {mark}\nexec g++ "$@"\n')
    compiler.chmod(0o755)
    study = run_json(*LINE, "--vectors", "64,128", "--compilers", str(compiler), cwd=tmp_path)
    first, second = study["measurements"]
    assert first["environment"] == {**second["environment"], VECTORS: "64"}
    assert (first["environment"]["CXX"], second["environment"][VECTORS]) == (str(compiler), "128")
    assert [m["machine"]["compiler"] for m in (first, second)] == [str(compiler)] * 2
    assert "-mprefer-vector-width=128" in mark.read_text()
    assert first["checksum"] == second["checksum"]
    assert first["instructions"]["scalar"] > 0.0
    assert first["instructions"]["vector"] == 0.0
