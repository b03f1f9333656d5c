"""Number of floating-point instructions of compiled kernels, counted in a disassembly of the library."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from halocline.compile.driver import compile_library, library_path
from halocline.errors import RunError

ARITHMETIC = re.compile(r"v?(add|sub|mul|div|sqrt|min|max|fn?m(add|sub)\d+)[sp][sd]$")  # x86-64
BITS = {"zmm": 512, "ymm": 256, "xmm": 128}  # widths of vector registers in bits
LEAST = 4  # Loops with fewer arithmetic instructions are not counted as loops over cells.
DISASSEMBLER = "objdump"
COUNTED = ("elf64-x86-64", b"GCC: (")  # file format, and name of g++ in the comments of the library
# Numbers of additional cells in the rows of stages with halos. All these numbers are assumed equally
# frequent.
AROUND = range(11)


class Line(NamedTuple):
    """Instruction in a disassembly: address, name and operands."""

    address: int
    name: str
    operands: str


@dataclass(frozen=True)
class Instructions:
    """Number of floating-point instructions per cell.

    Attributes
    ----------
    scalar, vector : float
        Number of scalar instructions, and number of vector instructions, per cell.
    """

    scalar: float
    vector: float


def instructions(library: Path, row: int) -> Instructions | None:
    """Return the number of floating-point instructions per cell of all kernels of a library.

    Rows have `row` cells, and rows of stages with halos are longer. An instruction in a loop along a row
    counts once per pass of the loop. Any other instruction counts once per row. Loops with scalar
    instructions contain branches, and code after a branch counts only once per row. Therefore the number of
    scalar instructions is a lower bound.

    Only libraries of g++ are counted, because one pass of their loops computes one vector. Other compilers
    unroll loops, so that one pass computes several vectors.

    Parameters
    ----------
    library : Path
    row : int
        Number of cells of a row of the grid.

    Returns
    -------
    Instructions or None
        None if another compiler than g++ compiled the library, or if the processor is not x86-64.

    Raises
    ------
    RunError
        The disassembler is not installed, or cannot read the library.
    """
    try:
        text = subprocess.run(
            [DISASSEMBLER, "-d", "--no-show-raw-insn", library], capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise RunError(
            f"instructions of {library.name} cannot be counted: {error}. Install objdump (Debian: apt-get "
            "install binutils)"
        ) from None
    file_format, compiler = COUNTED
    return count(_lines(text), row) if file_format in text and compiler in library.read_bytes() else None


def instructions_of(source: str, row: int) -> Instructions | None:
    """Return the number of floating-point instructions per cell of generated source code.

    The library is taken from the cache, or compiled if the cache does not contain it. A library with
    streaming stores is equally suitable, because it has the same arithmetic.
    """
    known = (
        path for streaming in (False, True) if (path := library_path(source, streaming=streaming)).exists()
    )
    return instructions(next(known, None) or compile_library(source), row)


def _lines(text: str) -> list[Line]:
    split = (line.split("\t") for line in text.splitlines() if line.startswith(" ") and "\t" in line)
    return [
        Line(int(address.rstrip(": "), 16), *[*code.split(maxsplit=1), "", ""][:2])
        for address, code, *_ in split
    ]


def count(code: list[Line], row: int) -> Instructions:
    """Return the number of floating-point instructions per cell in a disassembly; see `instructions`."""
    lanes = {line.address: _lanes(line) for line in code if ARITHMETIC.match(line.name)}
    loops = _loops_of_cells(code, lanes)
    widths = [max(lanes[address] for address in loop) for loop in loops]
    widest = max(widths, default=1)
    rows = [row + more for more in AROUND]
    totals = {True: 0.0, False: 0.0}  # True: vector instructions, False: scalar instructions
    for loop, width in zip(loops, widths, strict=True):
        # The widest loops compute most of a row. Narrower loops compute its remainder.
        cells = rows if width == widest else [length % widest for length in rows]
        times = sum(length // width for length in cells) / sum(rows)
        for address in loop:
            totals[lanes[address] > 1] += times
    for address in lanes.keys() - {address for loop in loops for address in loop}:
        totals[lanes[address] > 1] += len(rows) / sum(rows)
    return Instructions(scalar=totals[False], vector=totals[True])


def _lanes(line: Line) -> int:
    """Return the number of vector elements that an arithmetic instruction computes."""
    if line.name[-2] == "s":
        return 1
    number = 64 if line.name[-1] == "d" else 32
    return max((bits // number for register, bits in BITS.items() if register in line.operands), default=1)


def _loops_of_cells(code: list[Line], lanes: dict[int, int]) -> list[list[int]]:
    """Return the addresses of arithmetic instructions in each innermost loop. A backward jump ends a loop."""
    ends: dict[int, int] = {}  # last address of each loop, by its first address
    for line in code:
        to = re.match(r"([0-9a-f]+) <", line.operands) if line.name.startswith("j") else None
        if to and (first := int(to[1], 16)) < line.address:
            ends[first] = max(ends.get(first, 0), line.address)
    loops: list[list[int]] = []
    assigned: set[int] = set()
    for first, last in sorted(ends.items(), key=lambda loop: loop[1] - loop[0]):
        inside = [address for address in lanes if first <= address <= last]
        if len(inside) >= LEAST and not assigned.intersection(inside):
            assigned.update(inside)
            loops.append(inside)
    return loops
