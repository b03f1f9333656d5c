"""Lines, names and numbers of generated code."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from halocline.lang.trace import OWN


@dataclass
class Text:
    """Lines of C++ with indentation.

    Attributes
    ----------
    constants : dict of str to str
        Definitions that stand before the lines, by name. Texts that are joined may have some in common.
    """

    lines: list[str] = field(default_factory=list)
    level: int = 0
    constants: dict[str, str] = field(default_factory=dict)

    def add(self, line: str) -> None:
        self.lines.append("  " * self.level + line if line else "")

    @contextmanager
    def block(self, line: str = "") -> Iterator[None]:
        """Print a line that opens braces, and close these after the with block."""
        self.add(f"{line} {{" if line else "{")
        self.level += 1
        yield
        self.level -= 1
        self.add("}")

    def __str__(self) -> str:
        once = (
            f"#ifndef {name.upper()}\n#define {name.upper()}\n{text}\n#endif"
            for name, text in self.constants.items()
        )
        return "\n".join([*once, *self.lines]) + "\n"


def suffix(offset: Sequence[int]) -> str:
    """An offset as part of a name: (-1, 0, 2) is m1_0_p2."""
    return "_".join("0" if o == 0 else (f"p{o}" if o > 0 else f"m{-o}") for o in offset)


def identifier(name: str, taken: Collection[str] = ()) -> str:
    """The C++ name of what the user calls `name`: another where C++ or the kernel needs that one itself."""
    name = name.replace(OWN, "_")
    if _SYSTEM.match(name):
        name = "user_" + name
    while name in taken or name in _RESERVED or _OWN.fullmatch(name):
        name += "_"
    return name


def identifiers(names: Iterable[str]) -> dict[str, str]:
    """The C++ names of several things, all different."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        found[name] = identifier(name, taken)
        taken.add(found[name])
    return found


# names like those of the languages themselves and of the headers: types, functions, macros
_SYSTEM = re.compile(r"hc_|HC_|__|_[A-Z]|(u?int|image)\w*_t$|[A-Z][A-Z0-9_]{2,}$")

# names that kernels make: temporaries, and those derived from the name of a field or stage
_OWN = re.compile(
    r"(t|piece|split|band|kept|left|before|here|slot|some|rest|origin|shape)\d+|(high|middle|low|outside)\d+(_lanes)?"
    r"|index\d+(_[mp]\d+)?|layer|free_scratch|far|around"
    r"|.*_(next|s0|s1|to|base|origin|at(_(0|[mp]\d+))*)"
    # of kernels for devices
    r"|partial\d*|lo[0-2]|n[0-2]?|tile_(lo|hi)[0-2]|.*_(begin|end|data|where|here|plane|tile|queue_(0|[mp]\d+))"
)

_RESERVED = frozenset(
    """
    a box i j k k0 k1 b0 b1 c0 c1 end band_end row_end s plane memcpy NULL errno
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t
    class co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue
    decltype default delete do double dynamic_cast else enum explicit export extern false float for friend
    goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private
    protected public register reinterpret_cast requires return short signed size_t sizeof static
    static_assert static_cast struct switch template this thread_local throw true try typedef typeid
    typename union unsigned using virtual void volatile wchar_t while xor xor_eq
    cell control f invariants kinds lanes loop notes partials row scalars scratch shared why
    complex constant event_t global half imaginary kernel local pipe read_only read_write restrict
    sampler_t uniform vec_step write_only
    """.split()  # noqa: SIM905
)
