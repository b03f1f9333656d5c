"""The commands, one module for each of them: the functions that typer makes commands of."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from inspect import Parameter, Signature, getdoc, signature
from typing import Any

import typer
from typer.core import TyperGroup

# The docstring of a module is the help text of its group, that of a function the help text of its command.
EXAMPLES = "\n\nExamples\n--------\n"  # begins the section Examples of a help text


class CaseByName(TyperGroup):
    """Group that runs its command CASE for a word that is none of its commands: the name of a case."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if name.startswith("-") or self.get_command(ctx, name) is not None:
            return super().resolve_command(ctx, args)
        return name, self.commands["CASE"], args[1:]


def group(text: str | None, cls: type[TyperGroup] = TyperGroup) -> typer.Typer:
    """Return a group of commands with a help text, see `texts_of`."""
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
    *options: Callable[..., Any] | Signature,
    without: Collection[str] = (),
    text: str | None = None,
    **settings: Any,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds a function to a group as a command.

    The docstring of the function is the help text, see `texts_of`.

    Parameters
    ----------
    app : typer.Typer
    name : str
    *options : class or Signature
        Classes whose fields are options of the command too. The function takes their values by keyword.
    without : collection of str
        Fields of these classes that are no options of the command.
    text : str, optional
        Help text, by default the docstring.
    **settings
        Further arguments of `typer.Typer.command`.
    """

    def add(function: Callable[..., None]) -> Callable[..., None]:
        own = signature(function, eval_str=True).parameters.values()
        sources = [
            each if isinstance(each, Signature) else signature(each, eval_str=True) for each in options
        ]
        shared = [p for source in sources for p in source.parameters.values() if p.name not in without]
        named = [p for p in own if p.kind is not Parameter.VAR_KEYWORD]
        parameters = [p.replace(kind=Parameter.KEYWORD_ONLY) for p in (*named, *shared)]
        function.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        function.__annotations__ = {p.name: p.annotation for p in parameters}
        app.command(name, **texts_of(text or getdoc(function)), **settings)(function)
        return function

    return add


def texts_of(docstring: str | None) -> dict[str, str]:
    """Return the help text and the epilog of a docstring: the lines of its section Examples."""
    help, _, examples = (docstring or "").partition(EXAMPLES)
    lines = ["[bold]Examples[/]", *(f"  {line}" for line in examples.rstrip().splitlines())]
    return {"help": re.sub(r"(?<!\n)\n(?!\n)", " ", help), "epilog": "\n".join(lines)}


def is_given(context: typer.Context, option: str) -> bool:
    """Return whether an option is given on the command line."""
    source = context.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"
