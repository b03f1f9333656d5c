"""Predict the scaling of a case or file on another machine.

A performance model executes the plan of each rank.

Examples
--------
halocline model poisson --n 8192 --machine summit --nodes 1,2,4,8,16
halocline model heat --n 2048 --machine lumi-g --nodes 1,8,64
halocline model acoustic.py --machine summit --nodes 1,4,16
"""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from halocline import ranges
from halocline.cli import options
from halocline.cli.commands import CaseByName, command, group
from halocline.cli.options import execution_option, place, result_option, whole_number
from halocline.cli.output import (
    check_files,
    check_pictures,
    is_first_rank,
    report_written,
    say,
    write,
    write_json,
)
from halocline.errors import InputError
from halocline.ranges import NODES, RANK, whole_numbers
from halocline.run.simulation.progress import progress

if TYPE_CHECKING:
    from halocline.study.measuring.predict import ScalingPrediction

app = group(__doc__, CaseByName)
DEFAULT_TRACED = 4  # number of traced ranks by default
PASSED = ("ranks_per_node", "scaling", "placement", "methods")  # options that are passed unchanged


@dataclass
class PredictionOptions:
    """Options of a prediction.

    Attributes
    ----------
    nodes
        Numbers of nodes, one prediction for each.
    ranks_per_node
        Ranks per node. Default: one per device of the node. If there are more ranks than
        devices, the ranks share the devices.
    scaling
        [bold]strong[/]: the same grid for all numbers of nodes. [bold]weak[/]: N applies to the smallest
        number of nodes. For each doubling of the nodes, the grid doubles along the next axis.
    placement
        Placement of the subdomains of a node on its devices. [bold]aware[/]: placement with the shortest
        message time on the links between devices. [bold]trivial[/]: in the order of the subdomain numbers.
        [bold]random[/]: at random.
    overlap
        While messages are in transit, compute the patches that do not need them. [bold]auto[/]: select the
        faster of on and off.
    picture
        Plot time and efficiency against the number of nodes (PNG, SVG or PDF).
    trace
        Write the predicted trace of ranks and messages, for Perfetto or chrome://tracing.
    traced
        Ranks that --trace and --timeline show, for the last number of nodes. Default: the first four ranks.
    timeline
        Draw the timeline of the traced ranks and their messages.
    measure
        First run the case on this host, with N cells along the first axis on each rank. The model then uses
        the measured speed of the sweeps, not their bytes and operations. Requires --machine host.
    """

    nodes: Annotated[str, execution_option("--nodes K,K,...")] = "1"
    ranks_per_node: Annotated[
        int | None, execution_option("--ranks-per-node R", whole_number(ranges.RANKS_PER_NODE))
    ] = None
    scaling: Annotated[str, execution_option("--scaling strong|weak")] = "strong"
    decomposition: Annotated[str, options.DECOMPOSITION] = "optimal"
    placement: Annotated[str, execution_option("--placement aware|trivial|random")] = "aware"
    methods: Annotated[str | None, options.METHODS] = None
    overlap: Annotated[str, execution_option("--overlap auto|on|off")] = "on"
    json: Annotated[str | None, options.JSON] = None
    picture: Annotated[Path | None, result_option("--picture FILE", place("file"))] = None
    trace: Annotated[Path | None, result_option("--trace FILE", place("file"))] = None
    traced: Annotated[str | None, result_option("--traced R,R,...")] = None
    timeline: Annotated[Path | None, result_option("--timeline FILE", place("file"))] = None
    measure: Annotated[int | None, execution_option("--measure N", whole_number(ranges.POINTS))] = None


@command(app, "CASE", options.CaseOptions, PredictionOptions)
def case(
    context: typer.Context,
    machine: Annotated[str, execution_option("--machine NAME|FILE")],
    **values: Any,
) -> None:
    """Predict the time of a step or iteration of a case or file.

    The problem is a case of `halocline cases`, or the first problem of a Python file. A performance model of
    links, memory and arithmetic simulates the step. The report compares the result with the closed formula
    max(work, traffic). The command does not start ranks.

    Parameters
    ----------
    machine
        Machine of the prediction: [bold]host[/] (this machine), blue-waters-xe, dgx-h100, dgx-h200, lumi-g,
        puhti, stampede2-skx, summit, or a TOML file.

    Examples
    --------
    halocline model poisson --n 4096 --machine stampede2-skx --ranks-per-node 48 --nodes 1,2,4
    halocline model poisson --n 16384 --machine mine.toml --nodes 1,64 --scaling weak
    halocline model heat --n 256 --machine host --ranks-per-node 2 --trace heat.json
    halocline model wave --n 1024 --machine host --ranks-per-node 2 --timeline wave.png
    halocline model mhd-benchmark --n 512 --machine puhti --nodes 1,4,16
    halocline model acoustic.py --n 8192 --machine summit --nodes 1,4,16
    """
    from halocline.cli.texts import cells_of, overlap_of
    from halocline.compile.compiler import compile_program
    from halocline.problems.problem import problem_of
    from halocline.study.measuring import host
    from halocline.study.measuring import predict as study

    request = PredictionOptions(**options.take_options(PredictionOptions, values))
    measure, n, name = request.measure, values.pop("n"), str(context.info_name)
    counts = whole_numbers(request.nodes, "--nodes", NODES)
    check_files(request.json, request.picture, request.trace, request.timeline)
    check_pictures(request.picture, request.timeline)
    if request.traced is not None and request.trace is None and request.timeline is None:
        raise InputError(
            f"--traced {request.traced} has no effect without --trace or --timeline. Add one of them."
        )
    machine_model = host.machine_named(machine)
    problem = problem_of(name, cells_of(n), **values)
    title, facts = problem.description
    schedule = compile_program(problem.program, problem.grid)
    pace = 1.0
    if measure is not None:
        if machine != host.HOST:
            raise InputError(
                f"--measure {measure} needs this host, but --machine is {machine}. Use --machine host"
            )
        per_node = request.ranks_per_node or machine_model.device.count
        small_problem = study.prepare(name, measure, **values)
        task = {"case": name, "n": measure, **values, "settings": list(values["settings"])}
        pace = host.measured_pace(task, small_problem, machine_model, per_node)
    ranks: list[int] | range = range(0)
    if request.trace is not None or request.timeline is not None:
        first_ranks = range(
            min(DEFAULT_TRACED, max(counts) * (request.ranks_per_node or machine_model.device.count))
        )
        ranks = first_ranks if request.traced is None else whole_numbers(request.traced, "--traced", RANK)
    with progress(
        f"{title.partition(';')[0]} on {machine_model.name}", f"of {len(counts)} numbers of nodes"
    ) as on_progress:
        predictions = study.predict(
            schedule,
            problem.shape,
            machine_model,
            counts,
            **{name: getattr(request, name) for name in PASSED},
            strategy=request.decomposition,
            overlap=overlap_of(request.overlap),
            traced=ranks,
            pace=pace,
            on_progress=on_progress,
        )
    runs = [{k: v for k, v in vars(p).items() if k != "spans"} for p in predictions]
    settings: dict[str, Any] = {"machine": machine_model.name}
    settings |= {name: getattr(request, name) for name in ("scaling", "placement", "overlap")}
    lines = [
        f"{title}\n",
        study.table(predictions, machine_model, request.scaling).text(),
        study.verdict(predictions),
    ]
    if measure is not None:
        settings |= {"pace": pace, "pace_measured_at": measure}
        lines += [f"Measured sweeps take {pace:.2f} times as long as predicted from bytes and operations."]
    if request.json != "-":
        say("\n".join(lines))
    write_json(request.json, {**facts, **settings, "runs": runs})
    _draw(predictions, request)  # last, so that the table and the JSON exist if a picture fails
    report_written([request.json, request.picture, request.trace, request.timeline])


def _draw(predictions: "list[ScalingPrediction]", request: PredictionOptions) -> None:
    """Draw the requested pictures, and write the requested trace."""
    from halocline.explanation import timeline as lanes
    from halocline.io.style import save, styled
    from halocline.plan.trace import lanes_of_host
    from halocline.run.domain.trace import chrome_text
    from halocline.study.measuring import predict as study

    trace_events = predictions[-1].spans
    ranks = dict.fromkeys(sorted({event.rank for event in trace_events}), lanes_of_host(1))
    if request.trace is not None:
        write(request.trace, chrome_text(trace_events, ranks))
    with styled():
        if request.picture is not None:
            save(study.plot(predictions, request.scaling), request.picture)
        if request.timeline is not None:
            save(lanes.plot(trace_events, ranks), request.timeline)


@command(app, "calibrate")
def calibrate(file: Annotated[Path | None, result_option("--file FILE", place("file"))] = None) -> None:
    """Measure this host for predictions with --machine host.

    The measurement takes about 15 seconds. Run no other program during this time. The command measures how
    many bytes, operations and summands a sweep processes per second. It measures them for data in cache and
    in memory, with one rank and with one rank per core. It also measures packing, messages, copies between
    ranks, and reductions.

    Parameters
    ----------
    file
        Machine file to write. Default: the file that --machine host reads, in the cache folder.

    Examples
    --------
    halocline model calibrate
    halocline model calibrate --file node.toml
    halocline model heat --n 256 --machine host --ranks-per-node 2 --measure 160
    """
    from halocline.compile.cache import own_folder
    from halocline.study.measuring import host

    target = host.calibration_file() if file is None else file
    if file is None and is_first_rank():
        with suppress(OSError):  # check_files reports this error
            own_folder(target.parent)
    check_files(target)
    with progress("calibrating this host", "of 2 numbers of ranks") as on_progress:
        machine_model = host.calibrate(on_progress)
    say(f"{machine_model.title}\n")
    say(host.table(machine_model).text())
    write(target, host.toml_text(machine_model))
    report_written([target])
