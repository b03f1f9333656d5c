"""Time one part of a run alone.

Examples
--------
halocline bench exchange --n 256 --ranks 2
"""

from typing import Annotated, Any

from halocline import ranges
from halocline.cli import options
from halocline.cli.commands import command, group
from halocline.cli.options import problem, whole

app = group(__doc__)


@command(app, "exchange", options.Execution, without=("patch", "trace", *options.TO_COMPARE))
def exchange(
    n: Annotated[int, problem("--n N", whole(ranges.POINTS))] = 256,
    dim: Annotated[int, options.DIM] = 3,
    scaling: Annotated[str, problem("--scaling weak|strong")] = "weak",
    radius: Annotated[int, options.RADIUS] = 3,
    fields: Annotated[int, options.FIELDS] = 4,
    dtype: Annotated[str, options.DTYPE] = "float32",
    corners: Annotated[bool, problem("--corners/--no-corners")] = True,
    repeat: Annotated[int, options.REPEAT] = 7,
    ranks: Annotated[int | None, options.RANKS] = None,
    json: Annotated[str | None, options.JSON] = None,
    **values: Any,
) -> None:
    """Time the exchange of halos alone, without a stencil: some fields with halos of one radius on a periodic
    grid, 30 exchanges a run, as in the study of node-aware communication of Pearson et al.

    Parameters
    ----------
    n
        Cells along each axis of a rank's share.
    scaling
        [bold]weak[/]: the grid has round(N ranks^(1/3))³ cells. [bold]strong[/]: N³ in all.
    corners
        Whether edges and corners are exchanged too.

    Examples
    --------
    halocline bench exchange --n 256 --ranks 2
    halocline bench exchange --n 512 --scaling strong --ranks 4 --decomposition 1d-z --no-corners
    """
    from halocline.cli.output import check_files, finish
    from halocline.cli.progress import progress
    from halocline.cli.ranks import spread
    from halocline.cli.texts import execution_of

    execution = execution_of(values)
    spread(ranks, threads=execution.get("threads"), per_node=execution.get("ranks_per_node"))
    from halocline.lang.grid import unknown
    from halocline.run.ranks.mpi import world
    from halocline.study.measuring.command import ran_on
    from halocline.study.measuring.exchange import measure, weak_shape
    from halocline.words import amount, counted, duration

    check_files(json)
    growth = {"strong": 1, "weak": world().size}
    if scaling not in growth:
        raise unknown("scaling", scaling, list(growth))
    shape = weak_shape(n, growth[scaling], dim)
    how: dict[str, Any] = {"radius": radius, "fields": fields, "dtype": dtype, "corners": corners}
    with progress(f"{counted(fields, 'field')}, radius {radius}", f"of {repeat} runs") as on_progress:
        timing = measure(shape, **how, repeats=repeat, on_progress=on_progress, **execution)
    kind = "sides, edges and corners" if corners else "sides"
    what = f"{counted(fields, dtype + ' field')} of {'x'.join(map(str, shape))} cells"
    time = f"{duration(timing['seconds'])} an exchange, {timing['rate'] / 1e9:.2f} GB/s of the busiest rank"
    lines = [
        f"Exchange of {what}, radius {radius}, {kind}",
        "",
        f"{'ranks':12} {ran_on(timing)}, subdomains {'x'.join(map(str, timing['parts']))}",
        *(
            f"{method:12} {amount(size)} into the subdomains of the busiest rank"
            for method, size in timing["bytes_by_method"].items()
        ),
        f"{'time':12} {time}",
    ]
    finish("\n".join(lines), json, timing | {"scaling": scaling})
