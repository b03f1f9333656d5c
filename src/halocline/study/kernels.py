"""Options of studies that vary the compiler or the vector length of kernels, by environment variables."""

from __future__ import annotations

from collections.abc import Mapping

from halocline.compile.cxx import VECTOR_BITS, VECTORS, find_compiler
from halocline.compile.processor import widest_vector
from halocline.errors import CompileError, InputError
from halocline.run.host.process import environment
from halocline.study.study import VariedOption


def _compiler(path: str) -> Mapping[str, str]:
    variables = {"CXX": path}
    try:
        with environment(variables):
            find_compiler()
    except CompileError:
        raise InputError(
            f"--compilers: {path} is not a compiler on PATH; expected names or paths of compilers"
        ) from None
    return variables


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
