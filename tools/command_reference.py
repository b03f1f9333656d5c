"""Write docs/reference/command.md, the reference of the `halocline` command, from its help texts.

python tools/command_reference.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from halocline.cli.app import app

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "command.md"
HEAD = """# The command

<!-- Written by tools/command_reference.py from the help texts: edit these, then run `make docs`. -->

This page lists the commands and their options. `halocline COMMAND --help` prints the same at the terminal.
For the keys of JSON files, the ranges of numbers and the exit statuses, see
[Results, files and environment](results.md).
"""


def commands(group: Any, *words: str) -> Iterator[tuple[str, Any]]:
    """Yield each command of a group with the command line that runs it."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, *words, name)
        else:
            yield " ".join((*words, name)), command


def prose(text: str) -> str:
    """Return a help text as Markdown."""
    text = text.replace("[bold]", "**").replace("[/]", "**")
    parts = re.split(r"(`[^`]*`|'--[^']*')", text)  # code, and options in quotation marks, which are code too
    parts[1::2] = [f"`{part[1:-1]}`" for part in parts[1::2]]
    parts[::2] = [re.sub(r"(?<![\w-])--[a-z-]*", r"`\g<0>`", part) for part in parts[::2]]
    return "".join(parts)


def table(heads: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table."""
    lines = [heads, ["---"] * len(heads), *([cell.replace("|", r"\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |".replace("|  |", "| |") for line in lines) + "\n"


def row_of(parameter: Any) -> list[str]:
    """Return the row of an option or argument: its form, default and help text."""
    names = [*parameter.opts, *parameter.secondary_opts]
    metavar = parameter.metavar or ""
    form = f"{', '.join(names)} {metavar}".strip() if names[0].startswith("--") else metavar
    if parameter.required:
        default = "required"
    elif parameter.secondary_opts:
        default = f"`{names[not parameter.default]}`"
    else:
        value = str(parameter.default)
        default = "" if value in ("None", "False", "()") else f"`{value}`"
    return [f"`{form}`", default, prose(parameter.help)]


def section(words: str, command: Any, described: dict[tuple[str, ...], str]) -> str:
    """Return the section of a command; `described` has the options of former sections, and grows."""
    name = f"halocline {words}"
    examples = "\n".join(line.strip() for line in (command.epilog or "").splitlines()[1:])
    text = f"## {name}\n\n{prose(command.help)}\n\n```sh\n{examples}\n```\n"
    rows, known = [], dict[str, list[str]]()
    for parameter in command.params:
        row = row_of(parameter)
        if tuple(row) in described:
            known.setdefault(described[tuple(row)], []).append(row[0])
        else:
            described[tuple(row)] = name
            rows.append(row)
    if rows:
        text += "\n" + table(["option", "default", ""], rows)
    for other, forms in known.items():
        anchor = re.sub(r"[^\w-]", "", other.lower().replace(" ", "-"))
        text += f"\nAs for [{other}](#{anchor}): {', '.join(forms)}.\n"
    return text


def page() -> str:
    """Return the text of the page."""
    all_commands = list(commands(typer.main.get_command(app)))
    first = [
        [f"`halocline {words}`", prose(command.help.partition("\n\n")[0])] for words, command in all_commands
    ]
    first.append(["`halocline --version`", "Print the version and exit."])
    described: dict[tuple[str, ...], str] = {}
    sections = [section(words, command, described) for words, command in all_commands]
    return "\n".join([HEAD, table(["command", ""], first), *sections])


if __name__ == "__main__":
    PAGE.write_text(page())
