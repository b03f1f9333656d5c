"""Source of kernels for devices: one text in CUDA C++ and OpenCL C 1.2, which includes nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from halocline.compile.driver import include_folder

# Without these a compiler may round otherwise than the host does.
OPENCL_OPTIONS = ("-cl-fp32-correctly-rounded-divide-sqrt",)
CUDA_OPTIONS = ("--std=c++17", "--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true")

# Each after what it needs. A text begins with the first; the others are there where they are named, or
# needed by one that is.
_HEADERS: dict[str, tuple[str, ...]] = {
    "device.h": (),
    "frame.h": (),
    "device_move.h": ("frame.h",),
    "elementary.hpp": (),
    "accumulator.h": (),
    "device_reduce.h": ("accumulator.h",),
    "device_finish.h": ("frame.h", "accumulator.h", "device_reduce.h"),
}


def device_headers(names: Iterable[str] = ()) -> str:
    """The text of headers of native/include/halocline, to be followed by kernels.

    Parameters
    ----------
    names : iterable of str
        Which ones besides device.h, in any order: "frame.h", "device_move.h", "elementary.hpp",
        "accumulator.h", "device_reduce.h", "device_finish.h".

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
