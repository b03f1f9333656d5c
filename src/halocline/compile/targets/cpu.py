"""CPU target: one C++ function per sweep, with a vector loop along the contiguous axis.

A large kernel is divided into several functions, which reduces the compile time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import replace
from functools import partial
from pathlib import Path
from textwrap import shorten

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import Kernel, compacted
from halocline.compile.ir.pipeline import Pass, run
from halocline.compile.passes.angles import angles, split_by_angles
from halocline.compile.passes.bands import bands
from halocline.compile.passes.branches import branches
from halocline.compile.passes.lanes import lanes
from halocline.compile.passes.loops import loops, place, whole_vectors
from halocline.compile.passes.pieces import pieces
from halocline.compile.passes.scratch import combine_nests, planes, scratch
from halocline.compile.passes.split import split
from halocline.compile.printers.cpp import EXTERN, PRIVATE, print_calls, print_kernel
from halocline.compile.printers.spelling import Names, Text, cpu_dialect, scalar_values, set_scalars
from halocline.compile.schedule import NAME, Code
from halocline.errors import CompileError

# Macro that is defined if the fields exceed the cache. The source contains two variants of each kernel, and a
# library contains one of them.
STREAMING = "HC_STREAMING"

# Macro with the number of the part to compile, if a library has several parts. A kernel whose two variants
# have more than LARGE characters takes seconds to compile. Each of these kernels is a separate part, since
# parts are compiled in parallel.
PART = "HC_PART"
LARGE = 60_000

# headers in the order of their dependence; each is included only if it is used, since the headers take most
# of the compile time
_HEADERS = {
    "abi.h": "hc_box",
    "elementary.hpp": "hc_(exp|log|sin|cos|pow|min|max|abs|sign|is_large_angle)f?\\(",
    "random.hpp": "hc_random\\(",
    "lookup.hpp": "hc_entry\\(",
    "lanes.hpp": "hc_lanes_",
    "reduce.hpp": "_deposit|hc_sum_",
    "rows.hpp": "hc_box",
}


def include_folder() -> Path:
    """Return the folder that contains halocline/abi.h, in the installed package or the source tree."""
    package = Path(__file__).resolve().parents[2]
    for candidate in (package / "include", package.parents[1] / "native" / "include"):
        if (candidate / "halocline" / "abi.h").is_file():
            return candidate
    raise CompileError(f"the headers of generated code are missing from {package}; install Halocline again")


class Cpu:
    """Target of programs that run on CPUs."""

    wraps = True

    def ordered(self, kernel: Kernel) -> Kernel:
        """Return a kernel whose nests with stages run plane by plane."""
        return run(kernel, planes)

    def with_invariants(self, kernel: Kernel, changing: Set[str]) -> Kernel:
        """Return the kernel unchanged: a CPU has enough registers, and fast memory for the others."""
        return kernel

    def sweep(self, kernel: Kernel, names: Names, streamed: frozenset[str]) -> Code:
        """Return two functions for a sweep: for fields that fit into the cache, and for larger fields."""
        kernel = replace(kernel, name=NAME)
        parts = _parts(kernel)
        cached_text = _printed(kernel, _finished(parts, pieces), names)
        kernel, *parts = (
            replace(part, comment=f"{part.comment} (fields exceed the cache)") for part in (kernel, *parts)
        )
        past_cache = partial(pieces, streamed=streamed, streaming=True)
        streaming_text = _printed(kernel, _finished(parts, past_cache), names)
        return Code("\n".join((f"#ifndef {STREAMING}", cached_text, "#else", streaming_text, "#endif\n")))

    def halo(self, kernel: Kernel, names: Names) -> Code:
        """Return the function of a kernel that computes in the halo."""
        return Code(_function(replace(kernel, name=NAME), names))

    def wall(self, layers: Sequence[Kernel], names: Names, axis: int, side: int, comment: str) -> Code:
        """Return a function for each layer, and a function that calls these from the wall outward."""
        parts = []
        calls = Text()
        calls.add(f"// {comment}")
        with calls.block(f"{EXTERN} {NAME}(const hc_arguments *a, const hc_box *box)"):
            for number, layer in enumerate(layers):
                parts.append(_function(replace(layer, name=f"{NAME}_layer{number}"), names, PRIVATE))
                first = f"box->hi[{axis}] - {number + 1}" if side < 0 else f"box->lo[{axis}] + {number}"
                with calls.block():
                    calls.add("hc_box layer = *box;")
                    calls.add(f"layer.lo[{axis}] = {first};")
                    calls.add(f"layer.hi[{axis}] = layer.lo[{axis}] + 1;")
                    calls.add(f"{NAME}_layer{number}(a, &layer);")
        return Code("\n".join([*parts, str(calls)]))


def _parts(kernel: Kernel) -> list[Kernel]:
    """Return the functions of a kernel after the passes that do not depend on the size of the fields."""
    parts = functions(run(kernel, scratch))
    return [run(part, whole_vectors, loops, bands, angles, split, branches, lanes) for part in parts]


def _finished(parts: list[Kernel], divide: Pass) -> list[Kernel]:
    """Return functions for one class of field sizes; the pass `divide` divides their rows into pieces."""
    return [run(part, divide, split_by_angles, place, combine_nests) for part in parts]


def _printed(kernel: Kernel, parts: list[Kernel], names: Names, linkage: str = EXTERN) -> str:
    return print_kernel(parts[0], names, linkage) if len(parts) == 1 else print_calls(kernel, parts, names)


def _function(kernel: Kernel, names: Names, linkage: str = EXTERN) -> str:
    """Return the nests of a kernel as a function for fields of any size."""
    return _printed(kernel, _finished(_parts(kernel), pieces), names, linkage)


def scalars_function(name: str, statements: Sequence[tuple[str, Kernel]], names: Names) -> str:
    """Return an hc_scalars function with scalar statements in order."""
    out = Text()
    with out.block(f"{EXTERN} {name}(double *s)"):
        set_scalars(out, statements, names, cpu_dialect(kernel for _, kernel in statements))
    return str(out)


def condition_function(name: str, kernel: Kernel, names: Names) -> str:
    """Return an hc_condition function."""
    out = Text()
    with out.block(f'extern "C" int {name}(const double *s)'):
        out.add(f"return {scalar_values(out, kernel, names, cpu_dialect((kernel,)))};")
    return str(out)


def translation_unit(functions: Sequence[str]) -> str:
    """Return the source of a library: the required headers, then the functions.

    Without the macro PART, the source compiles to the whole library.
    """
    parts, large = [], 0
    for function in functions:
        parts.append(large if len(function) > LARGE else 0)  # small functions join the first large one
        large += len(function) > LARGE
    if large > 1:
        functions = [
            f"#if !defined({PART}) || {PART} == {part}\n{function}\n#endif"
            for part, function in zip(parts, functions, strict=True)
        ]
    body = "\n".join(functions)
    lines = [
        "// Generated by Halocline. Arrays have three axes; axis 2 is contiguous.",
        "#include <stdint.h>",
    ]
    lines += [f'#include "halocline/{header}"' for header, sign in _HEADERS.items() if re.search(sign, body)]
    return "\n".join(lines) + "\n\n" + body


def number_of_parts(source: str) -> int:
    """Return the number of parts of a library."""
    return len(set(re.findall(rf"\b{PART} == (\d+)$", source, re.MULTILINE))) or 1


def functions(kernel: Kernel) -> list[Kernel]:
    """Return the nests of a kernel in order, as one kernel per function.

    Nests that write or read scratch memory share one function.
    """

    def staged(nest: ir.Nest) -> bool:
        stored = any(
            isinstance(s, ir.Store) and kernel.array[s.array].kind == "scratch" for s in ir.flat(nest.body)
        )
        return stored or any(kernel.array[a].kind == "scratch" for a, _ in kernel.loads(ir.roots(nest.body)))

    declarations = tuple(s for s in kernel.body if isinstance(s, (ir.Slot, ir.Allocate)))
    nests = [s for s in kernel.body if isinstance(s, ir.Nest)]
    staged_count = max((number for number, nest in enumerate(nests, 1) if staged(nest)), default=1)
    parts = [nests[:staged_count], *([nest] for nest in nests[staged_count:])]
    if len(parts) == 1:
        return [kernel]
    return [
        _part(kernel, number, (*(declarations if number == 0 else ()), *part))
        for number, part in enumerate(parts)
    ]


def _part(kernel: Kernel, number: int, body: ir.Body) -> Kernel:
    """Return a kernel of some nests, with the arrays that they use."""
    used_arrays = {array for array, _ in kernel.loads(ir.roots(body))}
    used_arrays |= {s.array for s in ir.flat(body) if isinstance(s, ir.Store)}
    arrays = tuple(array for array in kernel.arrays if array.name in used_arrays)
    name = f"{kernel.name}_part{number}"
    # shortened: each part repeats the comment, whose length may grow with the number of parts
    comment = f"{shorten(kernel.comment, 100, placeholder=' ...')}, part {number}"
    return compacted(replace(kernel, name=name, comment=comment, arrays=arrays, body=body))
