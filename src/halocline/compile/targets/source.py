"""Source of kernels for devices: one text in CUDA C++ and OpenCL C 1.2, which includes nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache

from halocline.compile.headers import include_folder
from halocline.compile.ir.kernel import Kernel
from halocline.compile.printers.spelling import DEVICE, Names, Text, scalar_values, set_scalars

# Without these a compiler may round otherwise than the host does.
OPENCL_OPTIONS = ("-cl-fp32-correctly-rounded-divide-sqrt",)

# Each after what it needs. A text begins with the first; the others are there where they are named, or
# needed by one that is.
_HEADERS: dict[str, tuple[str, ...]] = {
    "device.h": (),
    "frame.h": (),
    "device_move.h": ("frame.h",),
    "device_find.h": ("frame.h",),
    "elementary.hpp": (),
    "random.hpp": (),
    "lookup.hpp": (),
    "accumulator.h": (),
    "device_reduce.h": ("accumulator.h",),
    "device_finish.h": ("frame.h", "accumulator.h", "device_reduce.h"),
}


def device_headers(names: Iterable[str] = ()) -> str:
    """The text of headers of native/include/halocline, to be followed by kernels.

    Parameters
    ----------
    names : iterable of str
        Which ones besides device.h, in any order: "frame.h", "device_move.h", "device_find.h",
        "elementary.hpp", "random.hpp", "lookup.hpp", "accumulator.h", "device_reduce.h", "device_finish.h".

    Raises
    ------
    ValueError
        For a header that does not compile on devices.
    """
    wanted = {"device.h"}
    for name in names:
        if name not in _HEADERS:
            raise ValueError(f"header {name!r} is not one for devices; these are: {', '.join(_HEADERS)}")
        wanted |= {name, *_HEADERS[name]}
    return "\n".join(_pasted(name) for name in _HEADERS if name in wanted)


@cache
def _pasted(name: str) -> str:
    """A header without what only files need: compilers of devices find no other files."""
    text = (include_folder() / "halocline" / name).read_text()
    return re.sub(r"^[ \t]*#[ \t]*(include|pragma[ \t]+once)\b.*\n", "", text, flags=re.MULTILINE)


# each only where it is used: much of the time to compile goes into them
_SIGNS = {
    "elementary.hpp": r"hc_(exp|log|sin|cos|pow|min|max|abs|sign)f?\(|HC_NAN|HC_INFINITY",
    "random.hpp": r"hc_random\(",
    "lookup.hpp": r"hc_entry\(",
    "device_reduce.h": "hc_partial",
    "device_finish.h": "hc_partial",
}


def device_text(kernels: Sequence[str], fields: int) -> str:
    """The source of all kernels of a program that has this number of fields: the headers they need, the
    kernel that copies halos, and the kernels."""
    body = "\n".join(kernels)
    names = ["frame.h", "device_move.h"] + [name for name, sign in _SIGNS.items() if re.search(sign, body)]
    return "\n".join([device_headers(names), _move_kernel(2 * fields + 1), body])


def _move_kernel(arrays: int) -> str:
    """A kernel that copies between this number of arrays: each group copies a piece."""
    out = Text()
    taken = [f"HC_GLOBAL char *a{n}" for n in range(arrays)]
    taken += [
        "HC_GLOBAL const hc_piece *pieces",
        "const hc_int64 first",
        "HC_GLOBAL const hc_control *control",
    ]
    with out.block(f"HC_KERNEL hc_move_pieces({', '.join(taken)})"):
        out.add("if (control->skip != 0) return;")
        out.add("const hc_piece p = pieces[first + hc_group(0)];")
        out.add("HC_GLOBAL const char *from = a0;")
        out.add("HC_GLOBAL char *to = a0;")
        for n in range(1, arrays):
            out.add(f"if (p.from == {n}) from = a{n};")
            out.add(f"if (p.to == {n}) to = a{n};")
        out.add("hc_move(p, from, to);")
    return str(out)


def scalars_kernel(name: str, statements: Sequence[tuple[str, Kernel]], names: Names) -> str:
    """Return the kernel of scalar statements, for one thread."""
    with _one_thread(name) as out:
        set_scalars(out, statements, names, DEVICE)
    return str(out)


def stop_kernel(name: str, condition: Kernel, names: Names) -> str:
    """The end of a run where a condition holds: kernels skip for `why` from then on."""
    with _one_thread(name, "const hc_int64 why") as out:
        out.add(f"if ({scalar_values(out, condition, names, DEVICE)}) control->skip = why;")
    return str(out)


def loop_kernel(name: str, until: Kernel | None = None, names: Names | None = None) -> str:
    """Return the kernel that tests whether a loop ends, before its first pass and after each pass.

    A loop that ends makes later kernels skip. Where the host predicts that the loop ends at once and queues
    no pass of it (`hc_loop.mispredicted`), a loop that does not end makes them skip instead. After each pass
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
    """Print the frame of a kernel for one thread around what is added in the with block."""
    out = Text()
    taken = ["HC_GLOBAL double *s", "HC_GLOBAL hc_control *control", *parameters]
    with out.block(f"HC_KERNEL {name}({', '.join(taken)})"):
        out.add("if (control->skip != 0) return;")
        yield out
