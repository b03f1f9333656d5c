"""The command `halocline run`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from halocline import ranges
from halocline.cli import options
from halocline.cli.commands import command, group
from halocline.cli.options import Execution, Keeping, Results, finite, problem, results, step_interval, whole
from halocline.errors import InputError
from halocline.problems.files import is_file as names_file

app = group("")


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


@dataclass
class OfRun(options.OfCase):
    """Options of the problem and the course of a run.

    Attributes
    ----------
    steps
        Steps at most. Without --steps and --until the case decides where it ends.
    until
        The time to reach; the last step is shortened to end there.
    warm_up
        The first K steps are not timed.
    only
        Time a part of the steps: [bold]compute[/], without messages; [bold]exchange[/], without kernels;
        [bold]synchronisation[/], a barrier of all devices and ranks after each sweep, without both. The
        fields then hold nonsense: no diagnostics, checksum, pictures or series.
    every
        Diagnostics each K steps (5 or '5 steps'): rows that come while it runs, and a series in --json
        and --csv. For a file: call the callback of its runs each K steps.
    """

    steps: Annotated[int | None, problem("--steps S", whole(ranges.STEPS))] = None
    until: Annotated[
        float | None, problem("--until T", finite("a finite time, 0 or more", lambda time: time >= 0))
    ] = None
    warm_up: Annotated[int, problem("--warm-up K", whole(ranges.STEPS))] = 0
    only: Annotated[str | None, results("--only compute|exchange|synchronisation")] = None
    every: Annotated[int | None, results("--every K", step_interval(ranges.SOME_STEPS))] = None
    ranks: Annotated[int | None, options.RANKS] = None


@command(app, "run", OfRun, Execution, Keeping, Results, without=("method",), cls=FileOrCase)
def run(
    context: typer.Context, target: Annotated[str, typer.Argument(metavar="FILE.py|CASE")], **values: Any
) -> None:
    """Run a case by its name (see `halocline cases`), or a Python file, such as your own simulation, on one
    or several ranks. A file takes precedence over a case of the same name.

    A case has the same bits for any ranks, threads, devices, decomposition and patch, as its checksum shows.

    For a file, the options replace arguments in the file. The options --steps, --until, --every, --output,
    --checkpoint and --resume replace those of each run. The options from --threads to --trace replace those
    of each simulation and linear problem. --set gives other values to the numbers and texts that the file
    sets at its top, and --n gives the name n another value. A file that declares its parameters by hc.setting
    and hc.cells takes --set, --n and --dim for these, as a case does. --order and --scheme replace those of
    equations that are no program. --check calls the function check(problem) of the file. An option that has
    no effect on the file is an error, at the latest when the file has ended. Options of the file itself
    follow --.

    Parameters
    ----------
    target
        What `python FILE.py` would run; or a case.

    Examples
    --------
    halocline run heat.py
    halocline run heat.py --ranks 4 --threads 2
    halocline run heat.py --device cuda
    halocline run heat.py --ranks 2 --methods mpi --overlap off
    halocline run heat.py --n 256 --set kappa=0.1   (for n = 128 and kappa = 0.2 at its top)
    halocline run heat.py --steps 100 --checkpoint out/heat --checkpoint-every 50
    halocline run heat.py --resume out/heat --checkpoint out/heat --ranks 4
    halocline run heat.py --json run.json -- --json results.json   (what follows -- is for heat.py)
    halocline run helical-turbulence --n 32 --until 50 --every 100 --csv dynamo.csv
    halocline run convection --n 128,64 --set rayleigh=1e5 --pictures out
    halocline run mhd-benchmark --n 64 --checkpoint out/mhd --checkpoint-every '30 min'
    halocline run mhd-benchmark --resume out/mhd --checkpoint out/mhd --steps 20000 --ranks 4
    """
    from halocline.cli.run import run as run_problem
    from halocline.cli.texts import cells_of, execution_of, keeping_of
    from halocline.problems.problem import settings_of

    execution, keeping = execution_of(values), keeping_of(values, of_file=names_file(target))
    results_of_run, ranks = Results(**options.take(Results, values)), values.pop("ranks")
    of_problem = options.take(options.OfCase, values)
    of_problem |= {"n": cells_of(of_problem["n"]), "given": settings_of(of_problem.pop("settings"))}
    run_problem(
        target,
        of_problem,
        {**values, **keeping},
        results_of_run,
        ranks=ranks,
        arguments=context.args,
        execution={name: value for name, value in execution.items() if _is_given(context, name)},
    )


def _is_given(context: typer.Context, option: str) -> bool:
    """Return whether an option is given on the command line."""
    source = context.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"
