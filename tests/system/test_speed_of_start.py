"""Time until a computation starts.

Times are medians of separate processes, and the tests assert the documented bounds. On a busy machine only
the seconds of computation of the process count.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hang import HANG
from measured_starts import FIRST_CALL, check, measure

IMPORT = """
import time
start, used = time.perf_counter(), time.process_time()
import halocline
print(time.perf_counter() - start, time.process_time() - used)
"""


def test_import_takes_less_than_three_tenths_of_a_second() -> None:
    check("import halocline", measure(IMPORT, 5), 0.3)


@pytest.mark.parametrize(
    ("script", "absent"),
    [
        ("import halocline", ("numpy", "mpi4py", "matplotlib", "pydantic")),
        ("import halocline as hc; hc.Simulation, hc.solve", ("mpi4py", "matplotlib", "pydantic", "typer")),
    ],
)
def test_unused_modules_are_not_imported(script: str, absent: tuple[str, ...]) -> None:
    """Modules that only later steps need are imported at the first use."""
    script += f"; import sys; print(*[m for m in {absent} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize("script", [IMPORT, FIRST_CALL])
def test_measured_commands_print_no_errors(script: str, tmp_path: Path) -> None:
    """A first run prints no warning."""
    environment = dict(os.environ) | {"HALOCLINE_CACHE": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
    assert done.stderr == ""


def test_a_run_imports_no_unused_library(tmp_path: Path) -> None:
    """Modules for pictures, pages, files and tables are not imported, and no tuning records are checked."""
    script = (
        "import sys; from halocline.cli.app import run\n"
        "status = run(['run', 'heat', '--n', '8', '--steps', '1', '--threads', '1'])\n"
        "print(*sys.modules, sep='\\n', file=sys.stderr)\n"
        "sys.exit(status)"
    )
    environment = os.environ | {"HALOCLINE_CACHE": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, timeout=HANG
    )
    assert done.returncode == 0, done.stderr
    slow = {"pydantic", "matplotlib", "scipy", "jinja2", "rich", "tensorstore", "h5py", "mpi4py"}
    assert slow & set(done.stderr.split()) == set()
