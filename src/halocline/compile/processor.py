"""Instruction sets: that of this CPU, and the levels for which kernels can also be compiled.

A level is an instruction set of many processors, such as x86-64-v3. A library for a level runs on each of
them. A library for this CPU may use all of its instructions. Results do not depend on the instruction set.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

NATIVE = "native"  # target of kernels: this CPU
SIMD = (("avx512f", 512), ("avx", 256), ("sse2", 128), ("asimd", 128))  # vector bits by flag of /proc/cpuinfo


@dataclass(frozen=True)
class Level:
    """Level of instruction sets.

    Attributes
    ----------
    machine : str
        Architecture, as `os.uname` reports it.
    vector_bits : int
        Length of the vectors in bits.
    flags : frozenset of str
        Flags of /proc/cpuinfo that a processor of the level has.
    """

    machine: str
    vector_bits: int
    flags: frozenset[str]


_V2 = frozenset({"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"})
_V3 = _V2 | {"abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave"}
_V4 = _V3 | {"avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"}
# Best level first. The levels of x86-64 are those of the System V ABI (AMD64 supplement, table 3.1).
LEVELS = {
    "x86-64-v4": Level("x86_64", 512, _V4),
    "x86-64-v3": Level("x86_64", 256, _V3),
    "x86-64-v2": Level("x86_64", 128, _V2),
    "armv8-a": Level("aarch64", 128, frozenset({"asimd", "fp"})),
}


@lru_cache(maxsize=1)
def cpu() -> str:
    """Return the model and instruction sets of this CPU."""
    with contextlib.suppress(OSError):
        return described(Path("/proc/cpuinfo").read_text()) or os.uname().machine
    return os.uname().machine


def described(cpuinfo: str) -> str:
    """Return the model and instruction sets of the first CPU in /proc/cpuinfo, for x86 and ARM."""
    prefixes = ("model", "flags", "Features", "CPU ")
    return "\n".join(line for line in cpuinfo.split("\n\n")[0].splitlines() if line.startswith(prefixes))


def widest_vector() -> int | None:
    """Return the maximum vector length of this CPU in bits; None if its flags are not known."""
    flags = cpu().split()
    return next((bits for flag, bits in SIMD if flag in flags), None)


def levels() -> tuple[str, ...]:
    """Return the levels of this CPU, best first."""
    flags = set(cpu().split())
    return tuple(
        name for name, level in LEVELS.items() if level.machine == os.uname().machine and level.flags <= flags
    )
