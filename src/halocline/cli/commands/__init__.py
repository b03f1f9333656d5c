"""Commands of `halocline`, one module per command or group, as functions for typer."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from copy import copy
from inspect import Parameter, Signature, cleandoc, getdoc, signature
from typing import Annotated, Any, get_args

import typer
from typer.core import TyperGroup

# The docstring of a module is the help text of a group. The docstring of a function is the help text of a
# command.
EXAMPLES = "\n\nExamples\n--------\n"  # begins the section Examples of a help text


class CaseByName(TyperGroup):
    """Group that runs the command CASE if the next word is not the name of a command."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if name.startswith("-") or self.get_command(ctx, name) is not None:
            return super().resolve_command(ctx, args)
        return name, self.commands["CASE"], args[1:]


def group(text: str | None, cls: type[TyperGroup] = TyperGroup) -> typer.Typer:
    """Return a group of commands with a help text; see `texts_of`."""
    return typer.Typer(
        cls=cls,
        **texts_of(text),
        no_args_is_help=True,
        rich_markup_mode="rich",
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )


def command(
    app: typer.Typer,
    name: str,
    *options: Callable[..., Any] | Sequence[Parameter],
    without: Collection[str] = (),
    text: str | None = None,
    **settings: Any,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds a function to a group as a command.

    The docstring of the function is the help text; see `texts_of`.

    Parameters
    ----------
    app : typer.Typer
    name : str
    *options : class or sequence of inspect.Parameter
        Classes whose fields are additional options of the command, or parameters for such options. The
        function receives the values by keyword.
    without : collection of str
        Fields of these classes that are not options of the command.
    text : str, optional
        Help text, by default the docstring.
    **settings
        Further arguments of `typer.Typer.command`.
    """

    def add(function: Callable[..., None]) -> Callable[..., None]:
        sources = [source if isinstance(source, Sequence) else parameters(source) for source in options]
        shared = [p for source in sources for p in source if p.name not in without]
        combined = [*parameters(function), *shared]
        function.__signature__ = Signature(combined)  # type: ignore[attr-defined]
        function.__annotations__ = {p.name: p.annotation for p in combined}
        app.command(name, **texts_of(text or getdoc(function)), **settings)(function)
        return function

    return add


def parameters(source: Callable[..., Any], *only: str) -> list[Parameter]:
    """Return the parameters of a function, or the fields of a class, as options and arguments for typer.

    The section Parameters or Attributes of the docstring provides the help texts. If `only` is not empty,
    only these parameters are returned.
    """
    helps: dict[str, str] = {}
    for documented in reversed(getattr(source, "__mro__", (source,))):  # fields of base classes first
        docstring = cleandoc(documented.__doc__ or "")
        helps |= re.findall(r"^(\w+)\n((?: {4}.+\n?)+)", docstring, re.MULTILINE)
    result = []
    for parameter in signature(source, eval_str=True).parameters.values():
        if parameter.kind is Parameter.VAR_KEYWORD or (only and parameter.name not in only):
            continue
        kind = parameter.annotation
        if parameter.name in helps:
            kind, option = get_args(kind)
            option = copy(option)
            option.help = " ".join(helps[parameter.name].split())
            kind = Annotated[kind, option]
        result.append(parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=kind))
    return result


def texts_of(docstring: str | None) -> dict[str, Any]:
    """Return the help text of a docstring, with the section Examples as the epilog."""
    text, _, examples = (docstring or "").partition(EXAMPLES)
    help = re.sub(r"(?<!\n)\n(?!\n)", " ", text.partition("\n\nParameters\n")[0])
    lines = ["[bold]Examples[/]", *(f"  {line}" for line in examples.rstrip().splitlines())]
    return {"help": help, "epilog": "\n".join(lines)}
