"""Checksums of all cases with the code of NumPy and LAPACK for other processors."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from numpy._core._multiarray_umath import __cpu_dispatch__

from hang import HANG
from source import ROOT

SCRIPT = """
import json, sys
from halocline.problems.problem import Problem
for run in json.loads(sys.stdin.read()):
    problem = Problem(run["case"], run["n"], run["given"], **run["options"])
    print(problem.run(steps=3, threads=1).record.checksum)
"""


def test_no_checksum_depends_on_libraries_for_a_processor() -> None:
    """The run uses OpenBLAS code for its oldest processor, and the generic code of NumPy."""
    runs = json.loads((ROOT / "tests" / "data" / "case_runs.json").read_text())["runs"]
    variables = {"OPENBLAS_CORETYPE": "Prescott", "NPY_DISABLE_CPU_FEATURES": " ".join(__cpu_dispatch__)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT],
        input=json.dumps(runs), env={**os.environ, **variables}, capture_output=True, text=True, timeout=HANG,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [run["checksum"] for run in runs]
    assert len(runs) == 40
