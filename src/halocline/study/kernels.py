"""Options of studies that vary the compiler or the vector length of kernels, by environment variables."""

from __future__ import annotations

import shutil
from collections.abc import Mapping

from halocline.compile.driver import VECTOR_BITS, VECTORS, widest_vector
from halocline.errors import InputError
from halocline.study.study import VariedOption


def _compiler(path: str) -> Mapping[str, str]:
    if shutil.which(path) is None:
        raise InputError(
            f"--compilers: {path} is not a program on PATH; expected names or paths of compilers"
        )
    return {"CXX": path}


def _vectors(bits: str) -> Mapping[str, str]:
    widest = widest_vector() or VECTOR_BITS[-1]
    if int(bits) > widest:
        raise InputError(
            f"--vectors {bits}: this CPU has vectors of at most {widest} bits. Leave {bits} out."
        )
    return {VECTORS: bits}


COMPILERS = VariedOption(
    "environment",
    "--compilers P,P,...",
    "C++ compilers, as names or paths (as in the variable CXX).",
    convert=_compiler,
)
VECTOR_LENGTHS = VariedOption(
    "environment",
    "--vectors B,B,...",
    "Vector lengths in bits. Default: all lengths of this machine.",
    words=tuple(map(str, VECTOR_BITS)),
    convert=_vectors,
)
