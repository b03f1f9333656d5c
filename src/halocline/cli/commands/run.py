"""Command `halocline run`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from halocline import ranges
from halocline.cli import options
from halocline.cli.commands import command, group
from halocline.cli.options import (
    Execution,
    ResultOptions,
    StorageOptions,
    finite,
    problem_option,
    result_option,
    step_interval,
    whole_number,
)
from halocline.errors import InputError
from halocline.problems.files import is_file as names_file

app = group("")


class FileOrCase(TyperCommand):
    """Command that runs a case or a file. Words after ``--`` are arguments of the file."""

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
                error.message = f"{problem}. Write options of {target} after --."  # type: ignore[attr-defined]
            raise

    def _target(self, args: list[str]) -> str | None:
        """Return the first word that is not an option or the value of an option."""
        with_values = [parameter for parameter in self.params if not getattr(parameter, "is_flag", False)]
        options = {name for parameter in with_values for name in parameter.opts if name.startswith("-")}
        words = iter(args)
        for word in words:
            if not word.startswith("-"):
                return word
            if word in options:
                next(words, None)
        return None


@dataclass
class RunCommandOptions(options.CaseOptions):
    """Options of the problem and of the steps of a run.

    Attributes
    ----------
    steps
        Maximum number of steps. Default: no maximum if --until is set; otherwise the case sets the end of
        the run.
    until
        Simulated time at the end of the run. The last step is shortened to end at T.
    warm_up
        Exclude the first K steps from the timing.
    only
        Time only a part of each step. [bold]compute[/]: kernels without messages. [bold]exchange[/]: messages
        without kernels. [bold]synchronisation[/]: only a barrier of all devices and ranks after each sweep.
        With this option, the fields are invalid, so the run has no diagnostics, checksum, pictures or series.
    every
        Compute diagnostics every K steps (5 or '5 steps'). The run prints the diagnostics, and writes them to
        the files of --json and --csv. If a run of a file has a callback, the callback is also called every K
        steps.
    """

    steps: Annotated[int | None, problem_option("--steps S", whole_number(ranges.STEPS))] = None
    until: Annotated[
        float | None, problem_option("--until T", finite("a finite time, 0 or more", lambda time: time >= 0))
    ] = None
    warm_up: Annotated[int, problem_option("--warm-up K", whole_number(ranges.STEPS))] = 0
    only: Annotated[str | None, result_option("--only compute|exchange|synchronisation")] = None
    every: Annotated[int | None, result_option("--every K", step_interval(ranges.SOME_STEPS))] = None
    ranks: Annotated[int | None, options.RANKS] = None


@command(
    app,
    "run",
    RunCommandOptions,
    Execution,
    StorageOptions,
    ResultOptions,
    without=("method",),
    cls=FileOrCase,
)
def run(
    context: typer.Context, target: Annotated[str, typer.Argument(metavar="FILE.py|CASE")], **values: Any
) -> None:
    """Run a case or a Python file on one or several ranks.

    `halocline cases` lists the cases. A file takes precedence over a case of the same name.

    The results of a case are bit-for-bit identical for all numbers of ranks and threads, devices,
    decompositions and patches. The checksum shows this.

    For a file, the options override values in the file. The options --steps, --until, --every, --output,
    --checkpoint and --resume replace the arguments of each run. --trace and the options under Execution,
    except --ranks, replace the arguments of each simulation and linear problem. --set replaces numbers and
    texts that are assigned at the top level of the file, and --n replaces the value of n. For a file with
    hc.setting and hc.cells, the options --set, --n and --dim apply as for a case. --order and --scheme apply
    to problems that are given as equations, but not to steps written with hc.program. --check calls the
    function check(problem) of the file. An option without effect on the file is an error. Words after -- are
    the command-line arguments of the file.

    Parameters
    ----------
    target
        Python file, as for `python FILE.py`, or name of a case.

    Examples
    --------
    halocline run heat.py
    halocline run heat.py --ranks 4 --threads 2
    halocline run heat.py --device cuda
    halocline run heat.py --ranks 2 --methods mpi --overlap off
    halocline run heat.py --n 256 --set kappa=0.1   (replaces n = 128 and kappa = 0.2 at the top of heat.py)
    halocline run heat.py --steps 100 --checkpoint out/heat --checkpoint-every 50
    halocline run heat.py --resume out/heat --checkpoint out/heat --ranks 4
    halocline run heat.py --json run.json -- --json results.json   (arguments after -- are for heat.py)
    halocline run helical-turbulence --n 32 --until 50 --every 100 --csv dynamo.csv
    halocline run convection --n 128,64 --set rayleigh=1e5 --pictures out
    halocline run mhd-benchmark --n 64 --checkpoint out/mhd --checkpoint-every '30 min'
    halocline run mhd-benchmark --resume out/mhd --checkpoint out/mhd --steps 20000 --ranks 4
    """
    from halocline.cli.run import run as run_problem
    from halocline.cli.texts import cells_of, execution_of, storage_options
    from halocline.problems.problem import settings_of

    execution, storage = execution_of(values), storage_options(values, of_file=names_file(target))
    results_of_run, ranks = ResultOptions(**options.take_options(ResultOptions, values)), values.pop("ranks")
    of_problem = options.take_options(options.CaseOptions, values)
    of_problem |= {"n": cells_of(of_problem["n"]), "replacements": settings_of(of_problem.pop("settings"))}
    run_problem(
        target,
        of_problem,
        {**values, **storage},
        results_of_run,
        ranks=ranks,
        arguments=context.args,
        execution={name: value for name, value in execution.items() if _is_given(context, name)},
    )


def _is_given(context: typer.Context, option: str) -> bool:
    """Return True if the command line sets the option."""
    source = context.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"
