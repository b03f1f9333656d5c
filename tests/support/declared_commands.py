"""All commands as typer declares them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from halocline.cli.app import app


def command_declarations(commands: Any) -> Iterator[tuple[str, Any]]:
    """Yield the words and the declaration of every command."""
    for name, command in commands.commands.items():
        if hasattr(command, "commands"):
            for words, inner in command_declarations(command):
                yield f"{name} {words}", inner
        else:
            yield name, command


ALL = dict(command_declarations(typer.main.get_command(app)))
