"""Measure the share of the halo exchange that computation hides.

Examples
--------
halocline study overlap heat --n 128 --ranks 2
halocline study overlap acoustic.py --ranks 2
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from halocline.cli import options
from halocline.cli.commands import CaseByName, command, group

if TYPE_CHECKING:
    from halocline.problems.step_bench import StepBench

app = group(__doc__, CaseByName)
LEFT_OUT = ("methods", "overlap", "trace", *options.COMPARISON_OPTIONS, *options.BALANCE_OPTIONS)


@dataclass
class RoundOptions:
    """Options of the measurement rounds and of the report."""

    repeat: Annotated[int, options.REPEAT] = 15
    ranks: Annotated[int | None, options.RANKS] = None
    json: Annotated[str | None, options.JSON] = None


@command(app, "heat", RoundOptions, options.Execution, without=LEFT_OUT)
def heat(
    n: Annotated[int, options.CELLS_OF_RANK] = 128,
    dim: Annotated[int, options.DIM] = 3,
    radius: Annotated[int, options.RADIUS] = 1,
    fields: Annotated[int, options.FIELDS] = 1,
    dtype: Annotated[str, options.DTYPE] = "float64",
    **values: Any,
) -> None:
    """Measure the overlap in explicit steps of the heat equation.

    The grid is periodic, and the finite differences have order 2 R. For each transfer method between ranks,
    the command alternates between complete steps, steps without overlap, steps without messages (compute),
    and steps without kernels (exchange). The hidden share is 1 - (step - compute) / exchange.

    Examples
    --------
    halocline study overlap heat --n 128 --ranks 2
    halocline study overlap heat --n 96 --ranks 2 --threads 4 --radius 3 --fields 4 --dtype float32
    """
    from halocline.cli.ranks import start_ranks
    from halocline.cli.texts import execution_of

    execution = execution_of(values)
    start_ranks(
        values.pop("ranks"), threads=execution.get("threads"), per_node=execution.get("ranks_per_node")
    )
    from halocline.run.ranks.mpi import world
    from halocline.study.measuring import overlap
    from halocline.study.measuring.exchange import weak_shape
    from halocline.words import counted

    shape = weak_shape(n, world().size, dim)
    subject = (
        f"Heat: {counted(fields, dtype + ' field')} of {'x'.join(map(str, shape))} cells, radius {radius}"
    )
    settings: dict[str, Any] = {"radius": radius, "fields": fields, "dtype": dtype}
    _show(
        partial(overlap.heat, shape, **settings), subject, {"shape": shape, **settings}, execution, **values
    )


@command(app, "CASE", options.CaseOptions, RoundOptions, options.Execution, without=LEFT_OUT)
def case(context: typer.Context, **values: Any) -> None:
    """Measure the overlap in steps or iterations of a case or file.

    The problem is a case of `halocline cases`, or a Python file. For each transfer method between ranks, the
    command alternates between complete steps, steps without overlap, steps without messages (compute), and
    steps without kernels (exchange). The hidden share is 1 - (step - compute) / exchange.

    Examples
    --------
    halocline study overlap poisson --n 1024 --ranks 2
    halocline study overlap mhd-benchmark --n 64 --ranks 2
    """
    from halocline.cli.ranks import start_ranks
    from halocline.cli.texts import cells_of, execution_of
    from halocline.problems.problem import problem_of

    execution = execution_of(values)
    case_options = options.take_options(options.CaseOptions, values)
    problem = problem_of(
        str(context.info_name), cells_of(case_options.pop("n")), case_options.pop("settings"), **case_options
    )
    start_ranks(
        values.pop("ranks"), threads=execution.get("threads"), per_node=execution.get("ranks_per_node")
    )
    _, facts = problem.description
    _show(problem.bench, problem.title, facts, execution, **values)


def _show(
    make: "Callable[..., StepBench]",
    subject: str,
    facts: Mapping[str, Any],
    execution: Mapping[str, Any],
    repeat: int,
    json: str | None,
) -> None:
    """Measure the steps of a bench, and print the report."""
    from halocline.cli.output import check_files, print_results
    from halocline.run.devices.devices import devices_in_use, hardware_text
    from halocline.run.ranks.mpi import world
    from halocline.run.simulation.progress import progress
    from halocline.study.measuring import overlap

    check_files(json)
    progress_line = progress("complete steps and parts of steps in turn", f"of {repeat} rounds")
    with devices_in_use() as devices_met, progress_line as on_progress:
        timings = overlap.measure(make, repeats=repeat, on_progress=on_progress, **execution)
    places = devices_met(world())
    record = {**facts, "repeats": repeat, "devices": [asdict(place) for place in places]}
    first = timings[0]
    layout = hardware_text(first["ranks"], first["threads"], places)
    lines = [f"{subject}, {layout}, subdomains {' x '.join(map(str, first['parts']))}\n"]
    lines += [overlap.table(timings).text(), *overlap.verdict(timings)]
    print_results("\n".join(lines), json, {**record, "methods": timings})
