"""Constants of MPI in native code have the values of the headers of the package mpich.

The values for Open MPI are checked by `make test-openmpi`, because no package has its header.
"""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

NATIVE = Path(__file__).resolve().parents[2] / "native" / "src" / "mpi"
VALUE = r"\(*(?:\w+\W*\)+\s*)?\(?(-?\d\w*)"
DEFINED = re.compile(rf"^\s*#define\s+(MPI_\w+)\s+{VALUE}|^\s*(MPI_\w+)\s*=\s*(-?\d\w*)", re.MULTILINE)
CONSTANTS = {
    "kInPlace": "MPI_IN_PLACE", "kStatusIgnore": "MPI_STATUS_IGNORE", "kAnySource": "MPI_ANY_SOURCE",
    "kAnyTag": "MPI_ANY_TAG", "kErrInStatus": "MPI_ERR_IN_STATUS", "kCommTypeShared": "MPI_COMM_TYPE_SHARED",
    "kNoCheck": "MPI_MODE_NOCHECK", "kTagUb": "MPI_TAG_UB", "kWinModel": "MPI_WIN_MODEL",
    "kUnified": "MPI_WIN_UNIFIED",
}  # fmt: skip


def header(name: str) -> dict[str, int]:
    """Return the constants of a header of the package."""
    (file,) = (f for f in metadata.files("mpich") or [] if f.name == name)
    matches = DEFINED.findall(Path(str(file.locate())).read_text())
    return {a or b: int(x or y, 0) for a, x, b, y in matches}


def test_constants_of_the_standard() -> None:
    text = (NATIVE / "standard.hpp").read_text()
    handles = re.findall(r"(MPI_\w+) =\s+mpi::predefined<[\w*]+>\((\w+)\)", text)
    integers = re.findall(r"(MPI_\w+) = (-?\d+)[,;]", text)
    values = {name: int(value, 0) for name, value in (*handles, *integers)}
    assert len(values) > 35
    expected = header("mpi_abi.h")
    assert values == {name: expected[name] for name in values}


def test_constants_of_mpich() -> None:
    text = (NATIVE / "families.cpp").read_text()
    family = text[text.index("struct Mpich {") : text.index("struct OpenMpi {")]
    handles = re.findall(r"\{number\((MPI_\w+)\), (0x\w+)\}", family)
    constants = [(CONSTANTS[name], value) for name, value in re.findall(r"(k[A-Z]\w+) = (-?\w+)[,;]", family)]
    assert len(handles) == 20
    assert sorted(name for name, _ in constants) == sorted(CONSTANTS.values())
    expected = header("mpi.h")
    values = {name: int(value, 0) for name, value in (*handles, *constants)}
    assert values == {name: expected[name] for name in values}
