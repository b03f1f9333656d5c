"""The command `halocline`."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from halocline.cli import options
from halocline.cli.commands.bench import BENCH
from halocline.cli.commands.explain import EXPLAIN
from halocline.cli.commands.model import MODEL
from halocline.cli.commands.run import CASES, RUN
from halocline.cli.commands.solve import SOLVE
from halocline.cli.commands.stores import EXPORT, LS, VIEW
from halocline.cli.commands.study import STUDY
from halocline.cli.declare import Command, Commands
from halocline.errors import InputError

DOCTOR = Command(
    name="doctor",
    does="halocline.cli.doctor.examine:examine",
    help="Look whether everything is there: compiler, MPI, cores, memory bandwidth, cache folder, GPUs. Says "
    "what to do about what is missing; exit status 0 where a solve can run.",
    examples=["halocline doctor", "halocline doctor --json machine.json"],
    takes=(options.JSON,),
)


class InOrder(TyperGroup):
    """Lists the commands in the order in which a newcomer meets them, be they groups or not."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [each.name for each in HALOCLINE.commands]


HALOCLINE = Commands(
    name="halocline",
    help="Halocline: equations on structured grids, solved on one core or on many ranks with the same bits.",
    examples=[
        "halocline doctor",
        "halocline solve poisson --n 512",
        "halocline solve poisson --n 1024 --ranks 2 --threads 1 --json result.json",
        "halocline explain poisson --n 1024 --ranks 64",
        "halocline study convergence poisson --n 256,512,1024 --html study.html",
        "halocline run heat.py --ranks 4",
        "halocline run orszag-tang-resistive --n 128 --until 1",
    ],
    cls=InOrder,
    commands=[SOLVE, STUDY, EXPLAIN, MODEL, BENCH, RUN, CASES, LS, VIEW, EXPORT, DOCTOR],
)
app = HALOCLINE.app()


@app.callback(invoke_without_command=True)
def version(
    show: Annotated[bool, typer.Option("--version", help="Print the version and end.")] = False,
) -> None:
    if show:
        from halocline import __version__

        print(f"halocline {__version__}")
        raise typer.Exit


def run(words: list[str]) -> int:
    """Run a command line; wrong words become an InputError, what a command raises is left as it is."""
    command = typer.main.get_command(app)
    try:
        with command.make_context("halocline", words) as context:
            command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except Exception as error:
        message = getattr(error, "format_message", None)  # what the parser raises has it
        if message is None:
            raise
        if not message():
            return 2  # no command was named: the help text has been printed
        path = getattr(getattr(error, "ctx", None), "command_path", "halocline")
        raise InputError(f"{message()}\nTry `{path} --help`.") from None
    return 0
