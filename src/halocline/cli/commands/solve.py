"""Solve a case and report how it went: iterations, error, time, share of the bandwidth, checksum.

Examples
--------
halocline solve poisson --n 512
"""

from dataclasses import dataclass
from typing import Annotated, Any

from halocline import ranges
from halocline.cli import options
from halocline.cli.commands import command, group
from halocline.cli.options import problem, whole
from halocline.errors import InputError

app = group(__doc__)


@dataclass
class Results(options.Results):
    """Options of the results of a solve.

    Attributes
    ----------
    pictures
        Draw solution.png and error.png in that folder, and timeline.png with --trace.
    """


@command(
    app, "poisson", options.Execution, options.Keeping, Results, without=("csv", "check", "state", "balance")
)
def poisson(
    n: Annotated[int | None, problem("--n N", whole(ranges.POINTS))] = None,
    dim: Annotated[int | None, problem("--dim 1|2|3", whole(ranges.AXES))] = None,
    method: Annotated[str | None, options.METHOD_OF_CASE] = None,
    rtol: Annotated[float, options.RTOL] = 1e-6,
    max_iterations: Annotated[int | None, options.MAX_ITERATIONS] = None,
    dtype: Annotated[str | None, options.DTYPE_OF_CASE] = None,
    ranks: Annotated[int | None, options.RANKS] = None,
    **values: Any,
) -> None:
    """The elliptic problem -Δu = f with u = 0 on the boundary of the unit interval, square or cube, and the
    exact solution u = Π sin²(π x); see UMBC HPCF-2018-10.

    The short form of `halocline run poisson`. The result has the same bits for any number of ranks and
    threads, any decomposition and patch: compare the checksum. With --resume, the points, the axes and the
    method are those of the checkpoint.

    Parameters
    ----------
    n
        Interior points along each axis.
    dim
        Axes of the problem; 2 by default, and with --resume those of the checkpoint.

    Examples
    --------
    halocline solve poisson --n 512
    halocline solve poisson --n 1024 --ranks 4 --decomposition 2x2 --threads 1
    halocline solve poisson --n 128 --dim 3 --rtol 1e-8 --pictures out
    halocline solve poisson --n 8192 --device cuda:0,1 --ranks 2
    mpiexec -n 64 halocline solve poisson --n 16384 --json result.json
    """
    from halocline.cli.run import run
    from halocline.cli.texts import execution_of, keeping_of
    from halocline.solvers.cg import method_named

    execution, keeping = execution_of(values), keeping_of(values)
    if n is None and keeping["resume"] is None:
        raise InputError("Missing option '--n': give the interior points along each axis, such as --n 512")
    given: dict[str, float | str] = {"rtol": rtol}
    if method is not None:
        method_named(method)  # whose message is of --method, and not of --set
        given["method"] = method
    run(
        "poisson",
        {"n": None if n is None else [n], "given": given, "dim": dim, "dtype": dtype},
        {"steps": max_iterations, **keeping},
        Results(**values),
        ranks=ranks,
        execution=execution,
    )
