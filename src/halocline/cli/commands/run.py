"""`halocline run` and `halocline cases`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from typer.core import TyperCommand

from halocline.cli import options
from halocline.cli.declare import PLACE, REQUIRED, Command, FromLine, Group, Option, step_interval
from halocline.errors import InputError
from halocline.problems.files import is_file as names_file
from halocline.ranges import SOME_STEPS


class FileOrCase(TyperCommand):
    """Command that runs a case or a file; options of the file itself follow ``--``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        target = self._target(args)
        ctx.allow_extra_args = target is not None and names_file(target)
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            if ctx.allow_extra_args and hasattr(error, "possibilities"):  # an unknown option
                if not Path(str(target)).exists():
                    raise InputError(f"there is no file {target}") from None
                problem = f"halocline run has no option {getattr(error, 'option_name', '')}"
                error.message = f"{problem}; options of {target} itself follow --"  # type: ignore[attr-defined]
            raise

    def _target(self, args: list[str]) -> str | None:
        """Return the first word that is neither an option nor the value of an option."""
        valued = [each for each in self.params if not getattr(each, "is_flag", False)]
        options = {name for each in valued for name in each.opts if name.startswith("-")}
        words = iter(args)
        for word in words:
            if not word.startswith("-"):
                return word
            if word in options:
                next(words, None)
        return None


def run_target(
    *,
    target: str,
    n: str | None,
    settings: list[str],
    execution: Mapping[str, Any],
    keeping: Mapping[str, Any],
    arguments: list[str],
    source: Callable[[str], Any],
    **options: Any,
) -> None:
    """Run the file or the case."""
    from halocline.cli.keeping import kept
    from halocline.cli.run import run
    from halocline.cli.texts import cells_of
    from halocline.problems.problem import settings_of

    run(
        target,
        n=cells_of(n),
        given=settings_of(settings),
        arguments=arguments,
        execution={name: value for name, value in execution.items() if is_given(source, name)},
        kept=kept(**keeping, of_file=names_file(target)),
        **options,
    )


def is_given(source: Callable[[str], Any], option: str) -> bool:
    """Return whether an option is given on the command line."""
    return bool(source(option).name == "COMMANDLINE")


RUN = Command(
    name="run",
    cls=FileOrCase,
    does=run_target,
    help="Run a case by its name (see `halocline cases`), or a Python file, such as your own simulation, on "
    "one or several ranks. A file takes precedence over a case of the same name."
    "\n\nA case has the same bits for any ranks, threads, devices, decomposition and patch, as its checksum "
    "shows."
    "\n\nFor a file, the options replace arguments in the file. The options --steps, --until, --every, "
    "--output, --checkpoint and --resume replace those of each run. The options from --threads to --trace "
    "replace those of each simulation and linear problem. --set gives other values to the numbers and texts "
    "that the file sets at its top, and --n gives the name n another value. A file that declares its "
    "parameters by hc.setting and hc.cells takes --set, --n and --dim for these, as a case does. --order and "
    "--scheme replace those of equations that are no program. --check calls the function "
    "check(problem) of the file. An option that has no effect on the file is an error, at the latest when "
    "the file has ended. Options of the file itself follow --.",
    examples=[
        "halocline run heat.py",
        "halocline run heat.py --ranks 4 --threads 2",
        "halocline run heat.py --device cuda",
        "halocline run heat.py --ranks 2 --methods mpi --overlap off",
        "halocline run heat.py --n 256 --set kappa=0.1   (for n = 128 and kappa = 0.2 at its top)",
        "halocline run heat.py --steps 100 --checkpoint out/heat --checkpoint-every 50",
        "halocline run heat.py --resume out/heat --checkpoint out/heat --ranks 4",
        "halocline run heat.py --json run.json -- --json results.json   (what follows -- is for heat.py)",
        "halocline run helical-turbulence --n 32 --until 50 --every 100 --csv dynamo.csv",
        "halocline run convection --n 128,64 --set rayleigh=1e5 --pictures out",
        "halocline run mhd-benchmark --n 64 --checkpoint out/mhd --checkpoint-every '30 min'",
        "halocline run mhd-benchmark --resume out/mhd --checkpoint out/mhd --steps 20000 --ranks 4",
    ],
    takes=(
        Option(None, "target FILE.py|CASE", "What `python FILE.py` would run; or a case.", default=REQUIRED),
        (options.CELLS_OF_CASE, options.DIM_OF_CASE, options.STEPS, options.UNTIL, options.WARM_UP),
        (options.SETTINGS, options.ORDER_OF_CASE, options.SCHEME_OF_CASE),
        options.results(
            "--only compute|exchange",
            "Time the steps without messages, or without kernels. The fields then hold nonsense: no "
            "diagnostics, checksum, pictures or series.",
        ),
        options.results(
            "--every K",
            "Diagnostics each K steps (5 or '5 steps'): rows that come while it runs, and a series in --json "
            "and --csv. For a file: call the callback of its runs each K steps.",
            step_interval(SOME_STEPS),
        ),
        options.RANKS,
        options.EXECUTION.also(options.TRACE),
        Group("keeping", options.KEPT.options),
        options.JSON,
        options.CSV.but("Write the series of diagnostics, one line for each time."),
        options.results(
            "--pictures FOLDER",
            "Draw each field at the end in that folder, or the quantities that the case derives from them, "
            "and the figures of the case. For a file: the fields of its last problem.",
            PLACE,
        ),
        options.CHECK,
        options.results(
            "--state FILE.npz",
            "Write the fields of the last problem, as NumPy arrays.",
            PLACE,
        ),
        FromLine("arguments", "args"),
        FromLine("source", "get_parameter_source"),
    ),
)
CASES = Command(
    name="cases",
    does="halocline.cli.cases:cases",
    help="List the cases that `halocline run` knows by name, or show one: its parameters with units, "
    "defaults and meaning, and where it comes from.",
    examples=["halocline cases", "halocline cases helical-turbulence"],
    takes=(Option(None, "name NAME", "The case to show."), options.JSON),
)
NEW = Command(
    name="new",
    does="halocline.cli.new:new",
    help="Write a problem file to edit: a copy of the file of a case, by default that of heat.",
    examples=["halocline new mine", "halocline new tube.py --from brio-wu"],
    takes=(
        Option(None, "name NAME", "The file; .py is added to a name without it.", default=REQUIRED),
        options.problem(
            "--from CASE", "The case to copy; see `halocline cases`.", default="heat", keyword="case"
        ),
    ),
)
