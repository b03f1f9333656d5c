"""Time one part of a run.

Examples
--------
halocline bench exchange --n 256 --ranks 2
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from halocline.cli import options
from halocline.cli.commands import command, group
from halocline.cli.options import place, problem_option, result_option
from halocline.errors import InputError
from halocline.plan.transfer import chosen_methods
from halocline.ranges import AXES

if TYPE_CHECKING:
    from halocline.run.domain.domain import Domain

app = group(__doc__)


@command(
    app,
    "exchange",
    options.Execution,
    without=("patch", *options.COMPARISON_OPTIONS, *options.BALANCE_OPTIONS),
)
def exchange(
    n: Annotated[str, problem_option("--n N[,M[,K]]")] = "256",
    dim: Annotated[int, options.DIM] = 3,
    scaling: Annotated[str | None, problem_option("--scaling weak|strong")] = None,
    radius: Annotated[int, options.RADIUS] = 3,
    fields: Annotated[int, options.FIELDS] = 4,
    dtype: Annotated[str, options.DTYPE] = "float32",
    corners: Annotated[bool, problem_option("--corners/--no-corners")] = True,
    repeat: Annotated[int, options.REPEAT] = 7,
    ranks: Annotated[int | None, options.RANKS] = None,
    json: Annotated[str | None, options.JSON] = None,
    timeline: Annotated[Path | None, result_option("--timeline FILE", place("file"))] = None,
    **values: Any,
) -> None:
    """Time the halo exchange alone, without a stencil.

    The grid is periodic, and all fields have the same halo width. A run has 30 exchanges, as in Pearson et
    al. 2020.

    Parameters
    ----------
    n
        Number of cells along each axis per rank. Several numbers set the cells along each axis of the whole
        grid.
    scaling
        Meaning of a single N. [bold]weak[/] (default): the grid has M cells along each axis, where M is
        N × (number of ranks)^(1/D), rounded, with D axes. [bold]strong[/]: the whole grid has N cells along
        each axis.
    corners
        Exchange edges and corners in addition to faces.
    timeline
        Draw the timeline of two exchanges of the traced run, which follows the timed runs. Requires
        --trace.

    Examples
    --------
    halocline bench exchange --n 256 --ranks 2
    halocline bench exchange --n 512 --scaling strong --ranks 4 --decomposition 1d-z --no-corners
    halocline bench exchange --n 64 --ranks 2 --subdomains-per-rank 2 --trace t.json --timeline t.png
    """
    from halocline.cli.output import check_files, check_pictures, print_results
    from halocline.cli.ranks import start_ranks
    from halocline.cli.texts import cells_of, execution_of, reject
    from halocline.run.simulation.progress import progress

    execution = execution_of(values)
    methods = chosen_methods(execution["methods"])
    start_ranks(
        ranks,
        threads=execution.get("threads"),
        per_node=execution.get("ranks_per_node"),
        needs_mpi=ranks == 1 and "peer" not in methods,
    )
    from halocline.explanation.timeline import draw_timeline
    from halocline.lang.grid import unknown_name_error
    from halocline.run.ranks.mpi import world
    from halocline.study.measuring.command import layout_text
    from halocline.study.measuring.exchange import PASSES, measure, weak_shape
    from halocline.words import amount, counted, duration

    trace = execution["trace"]
    check_files(json, trace, timeline)
    check_pictures(timeline)
    if trace is None:
        reject({"timeline": timeline}, "the timeline shows the trace. Add --trace FILE.")
    growth, cells = {"strong": 1, "weak": world().size}, cells_of(n) or []
    if scaling is not None and scaling not in growth:
        raise unknown_name_error("scaling", scaling, list(growth))
    if len(cells) > 1:
        reject({"scaling": scaling}, f"--n {n} sets the whole grid. Leave --scaling out.")
        AXES.check("dim", dim)
        if len(cells) != dim:
            raise InputError(f"--n {n}: expected one number, or {dim} numbers for --dim {dim}")
    shape = tuple(cells) if len(cells) > 1 else weak_shape(cells[0], growth[scaling or "weak"], dim)
    settings: dict[str, Any] = {"radius": radius, "fields": fields, "dtype": dtype, "corners": corners}

    def on_trace(domain: "Domain") -> None:
        if timeline is not None:
            draw_timeline(domain, timeline, share=2 / PASSES)

    with progress(f"{counted(fields, 'field')}, radius {radius}", f"of {repeat} runs") as on_progress:
        timing = measure(
            shape, **settings, repeats=repeat, on_progress=on_progress, on_trace=on_trace, **execution
        )
    kind = "sides, edges and corners" if corners else "sides"
    subject = f"{counted(fields, dtype + ' field')} of {'x'.join(map(str, shape))} cells"
    time = f"{duration(timing['seconds'])} per exchange, {timing['rate'] / 1e9:.2f} GB/s on the busiest rank"
    lines = [
        f"Exchange of {subject}, radius {radius}, {kind}",
        "",
        f"{'ranks':12} {layout_text(timing)}, subdomains {'x'.join(map(str, timing['parts']))}",
        *(
            f"{method:12} {amount(size)} received by the busiest rank"
            for method, size in timing["bytes_by_method"].items()
        ),
        f"{'time':12} {time}",
    ]
    if (shares := timing["trace"]) is not None:
        text = f"packing or unpacking {shares['packing']:.0%} of the time, "
        text += f"queueing work for devices {shares['launching']:.0%}, " * bool(timing["devices"])
        lines.append(f"{'trace':12} {text}{shares['at_once']:.2f} simultaneous operations on average")
    scaling = "strong" if len(cells) > 1 else scaling or "weak"
    print_results("\n".join(lines), json, timing | {"scaling": scaling}, trace, timeline)
