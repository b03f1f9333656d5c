"""Source of device kernels: one text for CUDA C++, HIP and OpenCL C 1.2, without includes."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache

from halocline.compile.ir.kernel import Kernel
from halocline.compile.printers.spelling import DEVICE, Names, Text, scalar_values, set_scalars
from halocline.compile.targets.cpu import include_folder

# Without these options, a compiler may round differently from the host. The options of CUDA are those of
# NVRTC (compile/nvrtc.py). Tests compile the source as HIP for AMD GPUs; no part of Halocline runs this code.
OPENCL_OPTIONS = ("-cl-fp32-correctly-rounded-divide-sqrt",)
HIP_OPTIONS = (
    "-std=c++17",
    "-ffp-contract=off",
    "-fhip-fp32-correctly-rounded-divide-sqrt",
    "-fno-gpu-flush-denormals-to-zero",
)

# Headers in the order of their dependence, with the headers that each requires. The source begins with the
# first header, and contains the other headers if they are requested or required.
_HEADERS: dict[str, tuple[str, ...]] = {
    "device.h": (),
    "frame.h": (),
    "device_move.h": ("frame.h",),
    "device_copy.h": ("frame.h",),
    "device_find.h": ("frame.h",),
    "device_wall.h": ("frame.h",),
    "elementary.hpp": (),
    "random.hpp": (),
    "lookup.hpp": (),
    "accumulator.h": (),
    "device_reduce.h": ("accumulator.h",),
    "device_finish.h": ("frame.h", "accumulator.h", "device_reduce.h"),
}


def device_headers(names: Iterable[str] = ()) -> str:
    """Return the text that precedes kernels: headers of native/include/halocline.

    Parameters
    ----------
    names : iterable of str
        Headers in addition to device.h, in any order: "frame.h", "device_move.h", "device_copy.h",
        "device_find.h", "device_wall.h", "elementary.hpp", "random.hpp", "lookup.hpp", "accumulator.h",
        "device_reduce.h", "device_finish.h".

    Raises
    ------
    ValueError
        A header does not compile on devices.
    """
    selected = {"device.h"}
    for name in names:
        if name not in _HEADERS:
            raise ValueError(
                f"header {name!r} does not compile on devices; expected one of: {', '.join(_HEADERS)}"
            )
        selected |= {name, *_HEADERS[name]}
    return "\n".join(_pasted(name) for name in _HEADERS if name in selected)


@cache
def _pasted(name: str) -> str:
    """Return a header without include directives, since device compilers have no access to files."""
    text = (include_folder() / "halocline" / name).read_text()
    return re.sub(r"^[ \t]*#[ \t]*(include|pragma[ \t]+once)\b.*\n", "", text, flags=re.MULTILINE)


# each header is included only if it is used, since the headers take much of the compile time
_SIGNS = {
    "elementary.hpp": r"hc_(exp|log|sin|cos|pow|min|max|abs|sign)f?\(|HC_NAN|HC_INFINITY",
    "random.hpp": r"hc_random\(",
    "lookup.hpp": r"hc_entry\(",
    "device_wall.h": "hc_wall",
    "device_reduce.h": "hc_partial",
    "device_finish.h": "hc_partial",
}


def device_text(kernels: Sequence[str], fields: int) -> str:
    """Return the source of all kernels of a program with the given number of fields.

    The source contains the required headers, the kernel that copies halos, and the kernels.
    """
    body = "\n".join(kernels)
    names = ["frame.h", "device_move.h"] + [name for name, sign in _SIGNS.items() if re.search(sign, body)]
    return "\n".join([device_headers(names), _move_kernel(2 * fields + 1), body])


def with_literal_layouts(
    source: str, layouts: Sequence[tuple[int, int, int]], extents: Sequence[int] | None = None
) -> str:
    """Return the source of a program in which the layouts of arrays are literals, instead of arguments.

    Parameters
    ----------
    source : str
        Source that `device_text` returned.
    layouts : sequence of (int, int, int)
        `at`, `s0` and `s1` of the `hc_layout` of each field, in elements.
    extents : sequence of three int, optional
        Upper bounds of the extents of patches, which determine the strides of scratch arrays.
    """
    lines = ["#define HC_LAYOUT(number, argument) HC_LAYOUT_##number"]
    for number, (at, s0, s1) in enumerate(layouts):
        lines.append(f"#define HC_LAYOUT_{number} {{{at}, {s0}, {s1}}}")
    if extents is not None:
        lines.append("#define HC_EXTENT(axis) HC_EXTENT_##axis")
        lines += [f"#define HC_EXTENT_{axis} {extent}" for axis, extent in enumerate(extents)]
    return "\n".join([*lines, source])


def with_shared_layouts(source: str, layouts: Sequence[Hashable]) -> str:
    """Return the source of a program in which arrays with equal layouts use the same strides.

    Kernels then compute the distance to a neighbour once for all arrays of a layout, with fewer instructions
    and registers. The source depends only on which layouts are equal, not on their sizes.

    Parameters
    ----------
    source : str
        Source that `device_text` returned.
    layouts : sequence
        Layout of each field, as an object that is equal to that of another field if their layouts are equal
        in all subdomains.
    """

    def with_shared(kernel: re.Match[str]) -> str:
        text = kernel[0]
        first: dict[Hashable, str] = {}
        replacements: dict[str, str] = {}
        for declaration in _LAYOUT.finditer(text):
            name = declaration["name"]
            same = first.setdefault(layouts[int(declaration["number"])], name)
            if same != name:
                replacements[name] = same
        if not replacements:
            return text
        names = "|".join(replacements)
        text = re.sub(
            rf"^ *(const hc_layout|hc_layout|HC_RECOMPUTE\() ?({names})\b.*\n", "", text, flags=re.M
        )
        return re.sub(rf"\b({names})\b", lambda word: replacements[word[0]], text)

    return _KERNEL.sub(with_shared, source)


_KERNEL = re.compile(r"^HC_KERNEL.*?^\}$", re.MULTILINE | re.DOTALL)
_LAYOUT = re.compile(r"^ *(const )?hc_layout (?P<name>\w+) = HC_LAYOUT\((?P<number>\d+), ", re.MULTILINE)


def _move_kernel(arrays: int) -> str:
    """Return the kernel that copies between the given number of arrays; each block copies one piece."""
    out = Text()
    parameters = [f"HC_GLOBAL char *a{n}" for n in range(arrays)]
    parameters += [
        "HC_GLOBAL const hc_piece *pieces",
        "const hc_int64 first",
        "HC_GLOBAL const hc_control *control",
    ]
    with out.block(f"HC_KERNEL hc_move_pieces({', '.join(parameters)})"):
        out.add("if (control->skip != 0) return;")
        out.add("const hc_piece p = pieces[first + hc_block(0)];")
        out.add("HC_GLOBAL const char *from = a0;")
        out.add("HC_GLOBAL char *to = a0;")
        for n in range(1, arrays):
            out.add(f"if (p.from == {n}) from = a{n};")
            out.add(f"if (p.to == {n}) to = a{n};")
        out.add("hc_move(p, from, to);")
    return str(out)


def scalars_kernel(name: str, statements: Sequence[tuple[str, Kernel]], names: Names) -> str:
    """Return the kernel of scalar statements, which runs in one thread."""
    with _one_thread(name) as out:
        set_scalars(out, statements, names, DEVICE)
    return str(out)


def stop_kernel(name: str, condition: Kernel, names: Names) -> str:
    """Return the kernel that ends a run if a condition is true.

    The kernel then stores its argument `why` in `hc_control.skip`, so that later kernels do nothing.
    """
    with _one_thread(name, "const hc_int64 why") as out:
        out.add(f"if ({scalar_values(out, condition, names, DEVICE)}) control->skip = why;")
    return str(out)


def loop_kernel(name: str, until: Kernel | None = None, names: Names | None = None) -> str:
    """Return the kernel that tests for the end of a loop, before its first pass and after each pass.

    At the end of a loop, the kernel sets `hc_control.skip`, so that later kernels do nothing. The host may
    predict that a loop ends before its first pass. In this case the host queues no pass, and the kernel sets
    `skip` only if the loop continues in spite of the prediction (`hc_loop.mispredicted`). After each pass,
    the kernel copies all scalars for the host.
    """
    parameters = "HC_GLOBAL double *notes", "HC_GLOBAL hc_int64 *ends", "const hc_loop loop"
    with _one_thread(name, *parameters) as out:
        out.add("s[loop.count] = loop.begins ? 0.0 : s[loop.count] + 1.0;")
        out.add("hc_int64 end = 0;")
        if until is not None:
            assert names is not None
            with out.block():
                out.add(f"if ({scalar_values(out, until, names, DEVICE)}) end = loop.condition;")
        reached = "loop.limit >= 0 && s[loop.count] >= s[loop.limit]"
        out.add(f"if (end == 0 && {reached}) end = loop.reached;")
        out.add("if (end != 0) ends[loop.number] = end;")
        out.add("control->skip = loop.mispredicted == 0 ? end : end == 0 ? loop.mispredicted : 0;")
        out.add("if (loop.begins) return;")
        out.add("HC_GLOBAL double *row = notes + control->notes % loop.rows * loop.scalars;")
        out.add("for (hc_int64 n = 0; n < loop.scalars; ++n) row[n] = s[n];")
        out.add("control->notes += 1;")
    return str(out)


@contextmanager
def _one_thread(name: str, *parameters: str) -> Iterator[Text]:
    """Print the first and last lines of a kernel for one thread around the text of the with block."""
    out = Text()
    declarations = ["HC_GLOBAL double *s", "HC_GLOBAL hc_control *control", *parameters]
    with out.block(f"HC_KERNEL {name}({', '.join(declarations)})"):
        out.add("if (control->skip != 0) return;")
        yield out
