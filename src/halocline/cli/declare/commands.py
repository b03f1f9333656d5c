"""Commands as declarations, and what typer makes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from halocline.cli.declare.options import Taken, each_of, function


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command.

    Attributes
    ----------
    name : str
    does : callable, or text such as "module:function"
        Takes what `takes` says by keyword; a module that is named by a text is imported at the call, so that
        help texts come at once.
    help : str
    examples : sequence of str
    takes : Option, Group or FromLine, or tuples of them
        In the order of the help text, whose panels stand in the order of their first options.
    cls : type
    """

    name: str
    does: str | Callable[..., None]
    help: str
    examples: Sequence[str]
    takes: Taken
    cls: type[TyperCommand] = TyperCommand

    def arguments(self, given: Mapping[str, Any], context: typer.Context) -> dict[str, Any]:
        """What the function takes, of the values of all options."""
        return {each.keyword: each.value(given, context) for each in each_of(self.takes)}

    def add_to(self, group: typer.Typer) -> None:
        """Make a command of that group."""

        def call(context: typer.Context, **given: Any) -> None:
            function(self.does)(**self.arguments(given, context))

        # typer reads options off the parameters of a function
        options = [option.parameter() for each in each_of(self.takes) for option in each.options]
        first = Parameter("context", Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
        call.__annotations__ = {each.name: each.annotation for each in (first, *options)}
        call.__signature__ = Signature([first, *options])  # type: ignore[attr-defined]
        group.command(self.name, cls=self.cls, help=self.help, epilog=_shown(self.examples))(call)


@dataclass(frozen=True, kw_only=True)
class Commands:
    """Commands that follow one word.

    Attributes
    ----------
    name : str
    help : str
    examples : sequence of str
    commands : sequence of Command and Commands
    cls : type
    """

    name: str
    help: str
    examples: Sequence[str]
    commands: Sequence[Command | Commands]
    cls: type[TyperGroup] = TyperGroup

    def app(self) -> typer.Typer:
        """What typer runs."""
        made = typer.Typer(
            cls=self.cls,
            help=self.help,
            epilog=_shown(self.examples),
            no_args_is_help=True,
            rich_markup_mode="rich",
            add_completion=False,
            pretty_exceptions_enable=False,
            context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        )
        for each in self.commands:
            each.add_to(made)
        return made

    def add_to(self, group: typer.Typer) -> None:
        """Make these commands of that group."""
        group.add_typer(self.app(), name=self.name)


def _shown(examples: Sequence[str]) -> str:
    """Examples at the end of a help text, one a line."""
    return "\n".join(["[bold]Examples[/]", *(f"  {line}" for line in examples)])
