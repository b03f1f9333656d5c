"""The command `halocline`."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from halocline.cli.commands import examples, group
from halocline.cli.commands.bench import bench
from halocline.cli.commands.explain import explain
from halocline.cli.commands.model import model
from halocline.cli.commands.run import runs
from halocline.cli.commands.solve import solve
from halocline.cli.commands.stores import stores
from halocline.cli.commands.study import study
from halocline.cli.options import Json
from halocline.errors import InputError


class InOrder(TyperGroup):
    """Lists the commands in the order in which a newcomer meets them."""

    order = ("solve", "study", "explain", "model", "bench", "run", "cases", "ls", "view", "export", "doctor")

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=self.order.index)


app = group(
    "Halocline: equations on structured grids, solved on one core or on many ranks with the same bits.",
    "halocline doctor",
    "halocline solve poisson --n 512",
    "halocline solve poisson --n 1024 --ranks 2 --threads 1 --json result.json",
    "halocline explain poisson --n 1024 --ranks 64",
    "halocline study convergence poisson --n 256,512,1024 --html study.html",
    "halocline run heat.py --ranks 4",
    "halocline run orszag-tang-resistive --n 128 --until 1",
    cls=InOrder,
)
app.add_typer(solve, name="solve")
app.add_typer(study, name="study")
app.add_typer(explain, name="explain")
app.add_typer(model, name="model")
app.add_typer(bench, name="bench")
app.add_typer(runs)
app.add_typer(stores)


@app.command(
    "doctor",
    help="Look whether everything is there: compiler, MPI, cores, memory bandwidth, cache folder, GPUs. Says "
    "what to do about what is missing; exit status 0 where a solve can run.",
    epilog=examples("halocline doctor", "halocline doctor --json machine.json"),
)
def doctor(json: Json = None) -> None:
    from halocline.cli.doctor import examine

    examine(json)


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
        tell = getattr(error, "format_message", None)  # what the parser raises has it
        if tell is None:
            raise
        if not tell():
            return 2  # no command was named: the help text has been printed
        path = getattr(getattr(error, "ctx", None), "command_path", "halocline")
        raise InputError(f"{tell()}\nTry `{path} --help`.") from None
    return 0
