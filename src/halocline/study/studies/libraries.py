"""MPI libraries compared, each in an environment of its own (the cavity code, Figs. 11 and 12)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from halocline.errors import InputError
from halocline.study.measurement import mpi_library
from halocline.study.reporting import columns as c
from halocline.study.reporting.comparison import comparison
from halocline.study.study import Asked, Study


def _variants(asked: Asked) -> list[dict[str, Any]]:
    text = asked.given.get("pythons")
    found = [sys.executable] if text is None else [each.strip() for each in text.split(",")]
    for python in found:
        if not Path(python).is_file():
            raise InputError(f"--pythons {text}: there is no file {python}; expected Pythons of environments")
    return [{"python": python} for python in found]


STUDY = Study(
    "libraries",
    title="MPI libraries",
    about="The same runs with several MPI libraries.",
    help="Each in the Python environment that it is installed in, such as .venv with MPICH and "
    "build/openmpi/venv, which `make test-openmpi` makes. As Figs. 11 and 12 of the cavity code of Virginia "
    "Tech.",
    examples=(
        "halocline study libraries cavity --n 32 --pythons .venv/bin/python,build/openmpi/venv/bin/python",
    ),
    contents=(comparison("MPI", lambda m: mpi_library(m)[:40], c.SSSPNT),),
    variants=_variants,
    options=(("--pythons P,P,...", "Interpreters of environments, each with an MPI of its own.", None),),
    repeat=3,
)
