"""Solve a linear problem and report its convergence and speed.

Examples
--------
halocline solve poisson --n 512
"""

from dataclasses import dataclass
from typing import Annotated, Any

from halocline import ranges
from halocline.cli import options
from halocline.cli.commands import command, group
from halocline.cli.options import problem_option, whole_number
from halocline.errors import InputError

app = group(__doc__)


@dataclass
class ResultOptions(options.ResultOptions):
    """Options of the results of a solve.

    Attributes
    ----------
    pictures
        Draw solution.png and error.png in this folder, and timeline.png with --trace.
    """


@command(
    app,
    "poisson",
    options.Execution,
    options.StorageOptions,
    ResultOptions,
    without=("csv", "check", "state", "balance"),
)
def poisson(
    n: Annotated[int | None, problem_option("--n N", whole_number(ranges.POINTS))] = None,
    dim: Annotated[int | None, problem_option("--dim 1|2|3", whole_number(ranges.AXES))] = None,
    method: Annotated[str | None, options.METHOD_OF_CASE] = None,
    rtol: Annotated[float, options.RTOL] = 1e-6,
    max_iterations: Annotated[int | None, options.MAX_ITERATIONS] = None,
    dtype: Annotated[str | None, options.DTYPE_OF_CASE] = None,
    ranks: Annotated[int | None, options.RANKS] = None,
    **values: Any,
) -> None:
    """Solve the Poisson equation -Δu = f with u = 0 on the boundary.

    The domain is the unit interval, square or cube. The exact solution is u = Π sin²(π x); see the technical
    report UMBC HPCF-2018-10. This command is a short form of `halocline run poisson`. Results are bit-for-bit
    identical for all numbers of ranks and threads, decompositions and patches; the checksum shows this. With
    --resume, the method and the numbers of points and axes come from the checkpoint.

    Parameters
    ----------
    n
        Number of interior points along each axis. Required without --resume.
    dim
        Number of axes. Default: 2, or the axes of the checkpoint with --resume.

    Examples
    --------
    halocline solve poisson --n 512
    halocline solve poisson --n 1024 --ranks 4 --decomposition 2x2 --threads 1
    halocline solve poisson --n 128 --dim 3 --rtol 1e-8 --pictures out
    halocline solve poisson --n 8192 --device cuda:0,1 --ranks 2
    mpiexec -n 64 halocline solve poisson --n 16384 --json result.json
    """
    from halocline.cli.run import run
    from halocline.cli.texts import execution_of, storage_options
    from halocline.solvers.cg import method_named

    execution, storage = execution_of(values), storage_options(values)
    if n is None and storage["resume"] is None:
        raise InputError(
            "Missing option '--n': expected the interior points along each axis, such as --n 512"
        )
    parameters: dict[str, float | str] = {"rtol": rtol}
    if method is not None:
        method_named(method)  # here the error names --method, whereas a later check would name --set
        parameters["method"] = method
    run(
        "poisson",
        {"n": None if n is None else [n], "replacements": parameters, "dim": dim, "dtype": dtype},
        {"steps": max_iterations, **storage},
        ResultOptions(**values),
        ranks=ranks,
        execution=execution,
    )
