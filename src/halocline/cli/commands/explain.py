"""Show the plan of a case or file on many ranks without running it.

Examples
--------
halocline explain poisson --n 1024 --ranks 64
halocline explain mhd-benchmark --n 128 --ranks 8
halocline explain acoustic.py --ranks 64
"""

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from halocline import ranges
from halocline.cli import options
from halocline.cli.commands import CaseByName, command, group
from halocline.cli.options import execution_option, place, result_option, whole_number
from halocline.cli.output import check_files, check_pictures, is_first_rank, report_written, say, write_json
from halocline.errors import InputError
from halocline.words import printable

if TYPE_CHECKING:
    from halocline.explanation.explain import Explanation

app = group(__doc__, CaseByName)


@dataclass
class PlannedExecution(options.Execution):
    """Options of an execution that is planned without a run.

    Attributes
    ----------
    threads
        Threads per rank.
    kernels
        Method by which device threads read neighbouring cells; see `halocline solve poisson --help`.
        [bold]auto[/] selects queue.
    """

    threads: Annotated[int, execution_option("--threads T", whole_number(ranges.THREADS))] = 1
    kernels: Annotated[str, execution_option("--kernels auto|direct|queue|planes")] = "auto"


@dataclass
class ReportOptions:
    """Options of the planned ranks and of the report.

    Attributes
    ----------
    ranks
        Number of ranks in the plan.
    rank
        Rank to explain. Default: a rank in the middle of the grid.
    code
        Also print the generated C++, with the report as comments.
    passes
        Also print each kernel after every pass of the compiler.
    picture
        Draw the matrix of message sizes and transfer methods between subdomains.
    """

    ranks: Annotated[int, execution_option("--ranks R", whole_number(ranges.RANKS))] = 1
    rank: Annotated[int | None, execution_option("--rank K", whole_number(ranges.RANK))] = None
    code: Annotated[bool, result_option("--code")] = False
    passes: Annotated[bool, result_option("--passes")] = False
    picture: Annotated[Path | None, result_option("--picture FILE", place("file"))] = None
    json: Annotated[str | None, options.JSON] = None


@command(
    app,
    "CASE",
    options.CaseOptions,
    ReportOptions,
    PlannedExecution,
    without=("mailboxes", "schedule", "trace", *options.BALANCE_OPTIONS),
)
def case(context: typer.Context, **values: Any) -> None:
    """Explain a step or iteration of a case or file.

    The problem is a case of `halocline cases`, or the first problem of a Python file. The report covers
    fields and halos, exchanges and their reasons, messages, bytes, flops, memory and patches. It also gives
    the minimum time of a step on this machine, from measured rates of memory and arithmetic. The command does
    not start ranks.

    Examples
    --------
    halocline explain poisson --n 512 --dim 3 --ranks 100000 --rank 0
    halocline explain poisson --n 1024 --code > kernels.cpp
    halocline explain mhd-benchmark --n 128 --ranks 8
    halocline explain convection --set rayleigh=1e5 --order 4 --ranks 64 --rank 0
    halocline explain acoustic.py --n 1024 --ranks 64
    """
    from halocline.cli.texts import cells_of, execution_of
    from halocline.explanation.explain import explain_program
    from halocline.problems.problem import problem_of

    execution, report = execution_of(values), ReportOptions(**options.take_options(ReportOptions, values))
    check_files(report.json, report.picture)
    check_pictures(report.picture)
    if report.json == "-" and (report.code or report.passes):
        option = "--code" if report.code else "--passes"
        raise InputError(f"{option}: with --json -, the command prints only JSON. Write the JSON to a file.")
    problem = problem_of(str(context.info_name), cells_of(values.pop("n")), **values)
    explanation = explain_program(
        problem.program, problem.grid, ranks=report.ranks, rank=report.rank, **execution
    )
    title, facts = problem.description
    _show(explanation, title, facts, report)


def _show(explanation: "Explanation", title: str, heading: Mapping[str, Any], report: ReportOptions) -> None:
    """Print an explanation, and write its picture and JSON."""
    from halocline.compile.ir.show import show_trail
    from halocline.explanation.text import lines

    bound = explanation.bound()
    facts = {**heading, "ranks": report.ranks, "threads": explanation.plan.threads, **explanation.as_dict()}
    write_json(report.json, {**facts, "bound": asdict(bound) if bound else None})
    if report.picture is not None:
        from halocline.explanation.matrix import plot
        from halocline.io.style import save, styled

        with styled():
            save(plot(explanation.schedule, explanation.plan.transfers), report.picture)
    if report.json == "-":
        return
    text = [title, "", *lines(explanation, bound)]
    if report.passes:
        text += ["", *show_trail(explanation.trail).splitlines()]
    if report.code:
        device = explanation.schedule.device
        source = explanation.schedule.source if device is None else device.source
        _print_code("\n".join(f"// {line}".rstrip() for line in text) + f"\n\n{source}")
    else:
        say("\n".join(text))
    report_written([report.json, report.picture])


def _print_code(source: str) -> None:
    """Print C++ code, in colour on a terminal."""
    if not sys.stdout.isatty() or not is_first_rank():
        say(source.rstrip())
        return
    from rich.console import Console
    from rich.syntax import Syntax

    Console().print(
        Syntax(printable(source), "cpp", theme="ansi_dark", word_wrap=False, background_color="default")
    )
