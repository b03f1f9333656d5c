"""Predict how a case, or your own file, scales on a machine that you do not have: every rank's plan, executed
by a model.

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
from halocline.cli.options import place, results, where, whole
from halocline.cli.output import check_files, check_pictures, first, say, write, write_json, written
from halocline.cli.progress import progress
from halocline.errors import InputError
from halocline.ranges import NODES, RANK, whole_numbers

if TYPE_CHECKING:
    from halocline.study.measuring.predict import Predicted

app = group(__doc__, CaseByName)
SHOWN = 4  # ranks of a trace, where none are named
PASSED = ("ranks_per_node", "scaling", "placement", "methods")  # as they are


@dataclass
class OfPrediction:
    """Options of a prediction.

    Attributes
    ----------
    nodes
        Nodes; one prediction for each.
    ranks_per_node
        By default one for each device of a node; more of them share these.
    scaling
        [bold]strong[/]: the same grid on all. [bold]weak[/]: N belongs to the fewest nodes; the axes
        double in turn with them.
    placement
        Which device of a node takes which part of the grid: [bold]aware[/] of the links between them, in
        order, or as drawn.
    overlap
        Whether patches that need no message run before messages have come; [bold]auto[/]: whichever is
        faster.
    picture
        Draw seconds and efficiency over nodes (PNG, SVG or PDF).
    trace
        Write what ranks and messages would do, for Perfetto or chrome://tracing, as runs do.
    traced
        The ranks that --trace and --timeline show, on the last number of nodes; the first four by
        default.
    timeline
        Draw what these ranks and their messages would do.
    measure
        Run the case with N on every rank of this host by itself, and take the pace of its sweeps from
        that, not from their bytes and operations; with --machine host.
    """

    nodes: Annotated[str, where("--nodes K,K,...")] = "1"
    ranks_per_node: Annotated[int | None, where("--ranks-per-node R", whole(ranges.RANKS_PER_NODE))] = None
    scaling: Annotated[str, where("--scaling strong|weak")] = "strong"
    decomposition: Annotated[str, options.DECOMPOSITION] = "optimal"
    placement: Annotated[str, where("--placement aware|trivial|random")] = "aware"
    methods: Annotated[str | None, options.METHODS] = None
    overlap: Annotated[str, where("--overlap auto|on|off")] = "on"
    json: Annotated[str | None, options.JSON] = None
    picture: Annotated[Path | None, results("--picture FILE", place("file"))] = None
    trace: Annotated[Path | None, results("--trace FILE", place("file"))] = None
    traced: Annotated[str | None, results("--traced R,R,...")] = None
    timeline: Annotated[Path | None, results("--timeline FILE", place("file"))] = None
    measure: Annotated[int | None, where("--measure N", whole(ranges.POINTS))] = None


@command(app, "CASE", options.OfCase, OfPrediction)
def case(
    context: typer.Context,
    machine: Annotated[str, where("--machine NAME|FILE")],
    **values: Any,
) -> None:
    """Steps or iterations of a case of `halocline cases`, or of the first problem that a Python file makes.

    The seconds of a step or iteration, executed by a model of links and memory, beside the closed formula
    max(work, traffic). No rank is started.

    Parameters
    ----------
    machine
        [bold]host[/] is this one; blue-waters-xe, dgx-h100, dgx-h200, lumi-g, puhti, stampede2-skx, summit,
        or a TOML file.

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

    asked = OfPrediction(**options.take(OfPrediction, values))
    measure, n, name = asked.measure, values.pop("n"), str(context.info_name)
    counts = whole_numbers(asked.nodes, "--nodes", NODES)
    check_files(asked.json, asked.picture, asked.trace, asked.timeline)
    check_pictures(asked.picture, asked.timeline)
    if asked.traced is not None and asked.trace is None and asked.timeline is None:
        raise InputError(
            f"--traced {asked.traced} names ranks, but nothing shows them: give --trace or --timeline"
        )
    there = host.machine_named(machine)
    ready = problem_of(name, cells_of(n), **values)
    title, facts = ready.description
    schedule = compile_program(ready.program, ready.grid)
    pace = 1.0
    if measure is not None:
        if machine != host.HOST:
            raise InputError(f"--measure {measure} runs the case here, but --machine is {machine}: say host")
        per_node = asked.ranks_per_node or there.device.count
        made = study.prepared(name, measure, **values)
        task = {"case": name, "n": measure, **values, "settings": list(values["settings"])}
        pace = host.pace_of(task, made, there, per_node)
    ranks: list[int] | range = range(0)
    if asked.trace is not None or asked.timeline is not None:
        shown = range(min(SHOWN, max(counts) * (asked.ranks_per_node or there.device.count)))
        ranks = shown if asked.traced is None else whole_numbers(asked.traced, "--traced", RANK)
    with progress(f"{title.partition(';')[0]} on {there.name}", f"of {len(counts)} numbers of nodes") as done:
        predictions = study.predict(
            schedule,
            ready.shape,
            there,
            counts,
            **{name: getattr(asked, name) for name in PASSED},
            strategy=asked.decomposition,
            overlap=overlap_of(asked.overlap),
            traced=ranks,
            pace=pace,
            on_progress=done,
        )
    runs = [{k: v for k, v in vars(p).items() if k != "spans"} for p in predictions]
    how: dict[str, Any] = {"machine": there.name}
    how |= {name: getattr(asked, name) for name in ("scaling", "placement", "overlap")}
    lines = [f"{title}\n", study.table(predictions, there, asked.scaling).text(), study.verdict(predictions)]
    if measure is not None:
        how |= {"pace": pace, "pace_measured_at": measure}
        lines += [f"Sweeps take {pace:.2f} times as long, measured, as their bytes and operations predict."]
    if asked.json != "-":
        say("\n".join(lines))
    write_json(asked.json, {**facts, **how, "runs": runs})
    _draw(predictions, asked)  # last, so that an error of a picture leaves the table and the JSON
    written([asked.json, asked.picture, asked.trace, asked.timeline])


def _draw(predictions: "list[Predicted]", asked: OfPrediction) -> None:
    """Draw the pictures and write the trace that are asked for."""
    from halocline.explanation import timeline as lanes
    from halocline.io.style import save, styled
    from halocline.plan.trace import lanes_of_host
    from halocline.run.domain.trace import chrome_text
    from halocline.study.measuring import predict as study

    trace_events = predictions[-1].spans
    ranks = dict.fromkeys(sorted({event.rank for event in trace_events}), lanes_of_host(1))
    if asked.trace is not None:
        write(asked.trace, chrome_text(trace_events, ranks))
    with styled():
        if asked.picture is not None:
            save(study.plot(predictions, asked.scaling), asked.picture)
        if asked.timeline is not None:
            save(lanes.plot(trace_events, ranks), asked.timeline)


@command(app, "calibrate")
def calibrate(file: Annotated[Path | None, results("--file FILE", place("file"))] = None) -> None:
    """Measure this host for --machine host, some 15 seconds: the pace of sweeps by bytes, operations and
    sums, in cache and beyond it, with one rank and with one for each core; packing, and what messages, copies
    between ranks and reductions take. Leave it alone meanwhile.

    Parameters
    ----------
    file
        Where the machine file goes; by default into the cache folder, for --machine host.

    Examples
    --------
    halocline model calibrate
    halocline model calibrate --file node.toml
    halocline model heat --n 256 --machine host --ranks-per-node 2 --measure 160
    """
    from halocline.compile.cache import own_folder
    from halocline.study.measuring import host

    target = host.calibration_file() if file is None else file
    if file is None and first():
        with suppress(OSError):  # the check that follows reports it
            own_folder(target.parent)
    check_files(target)
    with progress("calibrating this host", "of 2 numbers of ranks") as done:
        calibrated = host.calibrate(done)
    say(f"{calibrated.title}\n")
    say(host.table(calibrated).text())
    write(target, host.as_toml(calibrated))
    written([target])
