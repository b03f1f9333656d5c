"""What the documentation shows runs, prints what stands below it, and names what there is."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import halocline as hc

ROOT = Path(__file__).parents[1]
TUTORIAL = ROOT / "docs" / "tutorial.md"
LANGUAGE = ROOT / "docs" / "reference" / "language.md"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
MARK = "-- end of block --"


@pytest.fixture(scope="module")
def blocks() -> list[tuple[str, str | None]]:
    """Each runnable block with the output that stands below it, None where there is none."""
    found = [(code, output or None) for code, output in BLOCK.findall(TUTORIAL.read_text())]
    assert len(found) == TUTORIAL.read_text().count("```python")
    return found


@pytest.mark.parametrize("ranks", [1, 2])
def test_tutorial_prints_what_it_says(blocks, ranks, tmp_path):
    script = tmp_path / "tutorial.py"
    script.write_text("".join(f'{code}\nhc.print("{MARK}")\n' for code, _ in blocks))
    command = [sys.executable, str(script)]
    if ranks > 1:
        from halocline.run.launch import mpiexec

        command = [str(mpiexec()), "-n", str(ranks), *command]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    printed = done.stdout.split(f"{MARK}\n")[:-1]
    assert len(printed) == len(blocks)
    for (code, expected), found in zip(blocks, printed, strict=True):
        if expected is not None:
            assert found == expected, f"after\n{code}"
    assert {path.name for path in (tmp_path / "out" / "tutorial").iterdir()} == {"plate.png", "gradient.png"}


def test_every_printing_block_shows_its_output(blocks):
    for code, expected in blocks:
        assert ("hc.print(" in code) == (expected is not None), code


def test_the_reference_names_every_public_name():
    text = LANGUAGE.read_text()
    named = set(re.findall(r"`(?:@|with )?hc\.(\w+)", text))
    public = set(hc.__all__) - {"__version__"}
    assert public - named == set(), "missing from docs/reference/language.md"
    assert named - public == set(), "named in docs/reference/language.md, but there is no such name"
