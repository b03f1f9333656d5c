"""All commands as typer declares them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from halocline.cli.app import app


def declared(commands: Any) -> Iterator[tuple[str, Any]]:
    """Yield every command with its words."""
    for name, each in commands.commands.items():
        if hasattr(each, "commands"):
            for words, inner in declared(each):
                yield f"{name} {words}", inner
        else:
            yield name, each


ALL = dict(declared(typer.main.get_command(app)))
