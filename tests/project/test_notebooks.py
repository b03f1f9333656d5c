"""The notebooks of the documentation run without an error, and are committed without outputs."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from hang import HANG
from source import ROOT
from suites import cases

NOTEBOOKS = ROOT / "docs" / "notebooks"
NAMES = ("cavity", "first-steps", "orszag-tang", "scaling-study", "seismic")


def test_every_notebook_is_tested_and_listed() -> None:
    assert {path.stem for path in NOTEBOOKS.glob("*.ipynb")} == {*NAMES}
    index = (ROOT / "docs" / "index.md").read_text()
    assert all(f"\nnotebooks/{name}\n" in index for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_notebooks_are_committed_without_outputs(name: str) -> None:
    cells = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text())["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert code
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in code), (
        "clear the outputs: the build of the documentation executes the notebooks"
    )


# `make docs` executes all notebooks
@cases("name", NAMES, default=["first-steps", "cavity", "seismic"])
def test_notebooks_run(name: str) -> None:
    """A process of its own loads the plugin nbmake, because its import takes seconds."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=", "--nbmake"]
    command += [f"--nbmake-timeout={HANG:.0f}", str(NOTEBOOKS / f"{name}.ipynb")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
