"""Settings of a problem file: parameters and numbers of cells that the command line can replace."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from halocline.deprecation import accept_earlier_names, with_present_names
from halocline.errors import InputError
from halocline.lang.axes import is_sequence
from halocline.lang.grid import suggestion, unknown_name_error
from halocline.lang.values import as_name, as_number, as_quantity, as_texts
from halocline.ranges import AXES, POINTS
from halocline.words import short_repr

BOUNDS = ("minimum", "above", "maximum", "below")
# Current names by earlier names. JSON records keep the earlier names as keys.
RENAMED = {"least": "minimum", "most": "maximum"}


def record_of(bounded: Any) -> dict[str, Any]:
    """Return the attributes of a setting or a check under the keys of JSON records."""
    keys = {new: old for old, new in RENAMED.items()}
    return {keys.get(name, name): value for name, value in asdict(bounded).items()}


@accept_earlier_names(RENAMED)
@dataclass(frozen=True)
class Setting:
    """Parameter of a problem: a number, or one of a list of words.

    Parameters
    ----------
    default : float or str
    unit : str
        Unit in terms of the problem's units of length, time, mass and temperature; "1" for a pure number or a
        word.
    about : str
        Meaning of the parameter.
    minimum, above, maximum, below : float, optional
        Bounds of the number, inclusive (`minimum`, `maximum`) or exclusive (`above`, `below`).
    whole : bool
        True for an integer.
    origin : str
        Source of the default: a paper, a sample of another code, or "chosen here".
    words : tuple of str
        Accepted words; empty for a number.

    Raises
    ------
    InputError
        An argument has a wrong type.
    """

    default: float | str
    unit: str = "1"
    about: str = ""
    minimum: float | None = None
    above: float | None = None
    maximum: float | None = None
    below: float | None = None
    whole: bool = False
    origin: str = "chosen here"
    words: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("unit", "about", "origin"):
            as_name(getattr(self, name), f"{name} of a setting")
        for name in BOUNDS:
            if getattr(self, name) is not None:
                object.__setattr__(self, name, as_number(getattr(self, name), f"{name} of a setting"))
        if not isinstance(self.whole, bool):
            raise InputError(
                f"argument whole of hc.setting is {short_repr(self.whole)}; expected True or False"
            )
        object.__setattr__(self, "words", as_texts(self.words, "words of a setting"))

    @property
    def range(self) -> str:
        """Accepted values, as text."""
        if self.words:
            return f"one of {', '.join(self.words)}"
        kind = "a whole number" if self.whole else "a number"
        if self.above is not None:
            kind += f" above {self.above:g}"
        elif self.minimum is not None:
            kind += f" from {self.minimum:g}" + (" on" if self.maximum is None and self.below is None else "")
        if self.maximum is not None:
            kind += f" to {self.maximum:,.12g}"
        return kind if self.below is None else f"{kind}, below {self.below:g}"

    def facts(self) -> dict[str, Any]:
        """Return the setting as data for a JSON record."""
        return record_of(self)

    def check(self, name: str, value: float | str) -> None:
        """Raise InputError if a value is out of range."""
        meaning = f": {self.about}" if self.about else ""
        if self.words:
            if value not in self.words:
                hint = suggestion(value, self.words) if isinstance(value, str) else ""
                raise InputError(f"{name} is {short_repr(value)}{hint}; expected {self.range}{meaning}")
            return
        number = as_quantity(value)
        if number is None:
            raise InputError(f"{name} is {short_repr(value)}; expected {self.range}{meaning}")
        fits = math.isfinite(number)
        fits = fits and (self.minimum is None or number >= self.minimum)
        fits = fits and (self.above is None or number > self.above)
        fits = fits and (self.maximum is None or number <= self.maximum)
        fits = fits and (self.below is None or number < self.below)
        fits = fits and (not self.whole or number == math.floor(number))
        if not fits:
            unit = "" if self.unit == "1" else f", in {self.unit}"
            raise InputError(f"{name} is {value:.12g}; expected {self.range}{unit}{meaning}")

    def parsed(self, name: str, value: float | str) -> float | str:
        """Return a checked value. The text of a number is converted to a float."""
        if isinstance(value, str) and not self.words:
            with suppress(ValueError):  # the check reports a text that is not a number
                value = float(value)
        self.check(name, value)
        return value


def complete(settings: Mapping[str, Setting], values: Mapping[str, float | str]) -> dict[str, Any]:
    """Return the values of all settings. Settings without an entry in `values` have their defaults.

    Raises
    ------
    InputError
        A name is not among the settings, or a value is out of range.
    """
    for name, value in values.items():
        if name not in settings:
            raise unknown_setting(name, settings)
        settings[name].check(name, value)
    return {name: values.get(name, declared.default) for name, declared in settings.items()}


def unknown_setting(name: str, settings: Mapping[str, Setting]) -> InputError:
    """Return the error for a name that is not among the settings."""
    units = [f"{known} [{declared.unit}]" for known, declared in settings.items()]
    return unknown_name_error("parameter", name, list(settings), units)


@dataclass
class Settings:
    """Settings of one run of a problem file.

    Parameters
    ----------
    replacements : mapping of str to float or str
        Values that replace defaults.
    n : sequence of int, optional
        Number of cells along the first axis, or along each axis.
    dim : int, optional
        Number of axes.

    Attributes
    ----------
    declared : dict of str to Setting
        Settings that the file has declared so far.
    values : dict of str to float or str
        Values of the declared settings in this run.
    sizes : list of tuple of int
        Default shape in cells, followed by the default shapes for other numbers of axes; empty if the file
        has not called `cells`.
    """

    replacements: Mapping[str, float | str] = field(default_factory=dict)
    n: Sequence[int] | None = None
    dim: int | None = None
    declared: dict[str, Setting] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    sizes: list[tuple[int, ...]] = field(default_factory=list)

    def shape(self, sizes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        """Return the number of cells along each axis.

        Raises
        ------
        InputError
            `n` has a wrong number of entries, or `dim` is not an accepted number of axes.
        """
        self.sizes = list(sizes)
        by_axes = {len(size): size for size in sorted(sizes, key=len)}
        n, dim = self.n, self.dim
        for number in n or ():
            POINTS.check("n", number)
        if dim is not None and (isinstance(dim, bool) or dim not in by_axes):
            known = " or ".join(map(str, by_axes))
            raise InputError(
                f"dim is {dim}; expected {known}, the numbers of axes that this problem supports"
            )
        default = sizes[0] if dim is None else by_axes[dim]
        if n is None:
            return default
        counts = list(by_axes) if dim is None else [dim]
        if len(n) > 1 and len(n) in counts:
            return tuple(n)
        if len(n) != 1:
            several = " or ".join(map(str, counts))
            raise InputError(
                f"n is {','.join(map(str, n))}; expected one number, or as many numbers as axes: {several}"
            )
        return tuple(max(1, n[0] * size // default[0]) for size in default)

    def check_used(self) -> None:
        """Raise InputError if a replaced setting is not declared by the file."""
        for name in self.replacements:
            if name not in self.declared:
                raise unknown_setting(name, self.declared)


_RANGE = {attribute.name for attribute in fields(Setting)} - {"default", "unit", "about"}
_active = [Settings()]  # the first entry is for a file that runs without a command


@contextmanager
def active(settings: Settings) -> Iterator[None]:
    """Use these settings in `setting` and `cells` during the block."""
    _active.append(settings)
    try:
        yield
    finally:
        _active.remove(settings)


def setting(name: str, default: float | str | Setting, unit: str = "1", about: str = "", **range: Any) -> Any:
    """Declare a parameter of the problem in this file, and return its value.

    ``halocline run FILE --set NAME=VALUE`` replaces the value. If ``python`` runs the file, the default
    applies.

    Parameters
    ----------
    name : str
    default : float, str or Setting
    unit, about, **range
        Unit, meaning and range: ``minimum``, ``above``, ``maximum``, ``below``, ``whole``, ``words``,
        ``origin``; see `halocline.run.simulation.settings.Setting`.

    Returns
    -------
    float or str

    Raises
    ------
    InputError
        The value is out of range, or an argument has a wrong type.

    Examples
    --------
    >>> import halocline as hc
    >>> hc.setting("kappa", 1.0, "length²/time", "thermal diffusivity", above=0.0)
    1.0
    """
    settings, name = _active[-1], as_name(name, "name of a setting")
    range = with_present_names(range, RENAMED, f"setting {name!r}")
    for keyword in range.keys() - _RANGE:
        raise unknown_name_error(f"setting {name!r}: keyword", keyword, sorted(_RANGE))
    declared = default if isinstance(default, Setting) else Setting(default, unit, about, **range)
    settings.declared[name] = declared
    settings.values[name] = declared.parsed(name, settings.replacements.get(name, declared.default))
    return settings.values[name]


def cells(*shape: int, also: Sequence[tuple[int, ...]] = ()) -> tuple[int, ...]:
    """Declare the grid shape of the problem in this file, and return the number of cells along each axis.

    ``halocline run FILE --n N`` replaces the number along the first axis and scales the others in proportion.
    ``--n N,M`` sets the number for each axis, and ``--dim D`` selects another number of axes.

    Parameters
    ----------
    *shape : int
        Default number of cells along each axis.
    also : sequence of tuple of int
        Default shapes for other numbers of axes.

    Returns
    -------
    tuple of int

    Raises
    ------
    InputError
        The command line requests cells or axes that the problem does not support, or an argument has a wrong
        type.

    Examples
    --------
    >>> import halocline as hc
    >>> hc.cells(64, 32, also=[(64,)])
    (64, 32)
    """
    if not is_sequence(also):
        raise InputError(f"also is {short_repr(also)}; expected shapes, such as [(64,), (64, 64)]")
    return _active[-1].shape([_checked_shape(size) for size in (shape, *also)])


def _checked_shape(shape: Any) -> tuple[int, ...]:
    """Return the default number of cells along each axis, after a check."""
    if not is_sequence(shape):
        raise InputError(f"cells are {short_repr(shape)}; expected a number for each axis, such as (64, 64)")
    AXES.check("number of axes in hc.cells", len(shape))
    return tuple(POINTS.check("cells along an axis", number) for number in shape)
