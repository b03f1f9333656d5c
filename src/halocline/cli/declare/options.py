"""What a command takes: options, groups of them, and what else its line says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from inspect import Parameter
from typing import Any

import typer

from halocline.cli.declare.kinds import FLAG, TEXT, TEXTS, Kind

REQUIRED: Any = ...  # the default of an option that must be given


@dataclass(frozen=True)
class Option:
    """An option, or a word that is known by its place.

    Attributes
    ----------
    panel : str or None
        The frame of the help text that it stands in.
    form : str
        As one writes it, "--n N": its name, and what stands for its value. Without the latter, as in
        "--check" or "--corners/--no-corners", it is a flag; without dashes, as in "target FILE", a word.
    help : str
    kind : Kind
    default : optional
    keyword : str
        By which it reaches a function; by default the name, with _ for -.
    """

    panel: str | None
    form: str
    help: str
    kind: Kind = TEXT
    default: Any = None
    keyword: str = ""

    def __post_init__(self) -> None:
        own = self.name.partition("/")[0].lstrip("-").replace("-", "_")
        object.__setattr__(self, "keyword", self.keyword or own)
        if not self.metavar:
            object.__setattr__(self, "kind", FLAG)
            object.__setattr__(self, "default", bool(self.default))

    @property
    def name(self) -> str:
        """Such as "--n"."""
        return self.form.partition(" ")[0]

    @property
    def metavar(self) -> str:
        """What stands for its value in texts."""
        return self.form.partition(" ")[2]

    @property
    def options(self) -> tuple[Option, ...]:
        """Itself, as a group has several."""
        return (self,)

    def but(self, help: str = "", **changes: Any) -> Option:
        """The same option with another help text, form, kind or default."""
        return replace(self, help=help or self.help, **changes)

    def value(self, given: Mapping[str, Any], context: typer.Context) -> Any:
        """What a function gets of the values of all options."""
        value = given[self.keyword]
        return list(value or ()) if self.kind is TEXTS else value

    def parameter(self) -> Parameter:
        """The parameter of a function that typer makes this option of."""
        read, metavar = self.kind.read, self.metavar
        how: dict[str, Any] = {
            "metavar": metavar or None,
            "help": self.help,
            "rich_help_panel": self.panel,
            "parser": None if read is None else lambda given: read(given, metavar),
        }
        named = self.name.startswith("-")
        made = typer.Option(self.default, self.name, **how) if named else typer.Argument(self.default, **how)
        kind = self.kind.type if self.default is not None else self.kind.type | None
        return Parameter(self.keyword, Parameter.KEYWORD_ONLY, default=made, annotation=kind)


@dataclass(frozen=True)
class Group:
    """Options that reach a function together, as one argument.

    Attributes
    ----------
    keyword : str
    options : tuple of Option
    means : callable, or text such as "module:function"
        Makes the argument of the options' values, which it takes by keyword.
    """

    keyword: str
    options: tuple[Option, ...]
    means: str | Callable[..., Any] = dict

    def only(self, *some: Option) -> Group:
        """The same with some of its options."""
        assert set(some) <= set(self.options)
        return replace(self, options=tuple(each for each in self.options if each in some))

    def without(self, *others: Option) -> Group:
        """The same without some options."""
        assert set(others) <= set(self.options)
        return replace(self, options=tuple(each for each in self.options if each not in others))

    def but(self, *others: Option) -> Group:
        """The same with others in place of options of the same name."""
        named = {each.name: each for each in others}
        assert named.keys() <= {each.name for each in self.options}
        return replace(self, options=tuple(named.get(each.name, each) for each in self.options))

    def also(self, *more: Option) -> Group:
        """The same and more."""
        return replace(self, options=self.options + more)

    def value(self, given: Mapping[str, Any], context: typer.Context) -> Any:
        """What a function gets of the values of all options."""
        return function(self.means)(**{each.keyword: each.value(given, context) for each in self.options})


@dataclass(frozen=True)
class FromLine:
    """What a function gets of the command line beside options: an attribute of its context."""

    keyword: str
    attribute: str
    options: tuple[Option, ...] = ()

    def value(self, given: Mapping[str, Any], context: typer.Context) -> Any:
        """The attribute."""
        return getattr(context, self.attribute)


Taken = Option | Group | FromLine | tuple["Taken", ...]  # a tuple is a row of them, or several


def each_of(taken: Taken) -> Iterator[Option | Group | FromLine]:
    """What stands in rows, one by one."""
    if isinstance(taken, tuple):
        for each in taken:
            yield from each_of(each)
    else:
        yield taken


def function(named: str | Callable[..., Any]) -> Callable[..., Any]:
    """A function, or the one that "module:function" names, whose module is imported only now."""
    if not isinstance(named, str):
        return named
    module, _, name = named.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), name)
    return found
