"""Show what a case, or your own file, would do on many ranks, without starting any.

Examples
--------
halocline explain poisson --n 1024 --ranks 64
halocline explain mhd-benchmark --n 128 --ranks 8
halocline explain acoustic.py --ranks 64
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from halocline import ranges
from halocline.cli import options
from halocline.cli.commands import CaseByName, command, group
from halocline.cli.options import place, results, where, whole

app = group(__doc__, CaseByName)


@dataclass
class PlannedExecution(options.Execution):
    """Options of an execution that is planned only.

    Attributes
    ----------
    threads
        Threads of each rank.
    kernels
        How threads of a device read the cells around theirs, as for solve; [bold]auto[/]: queue.
    """

    threads: Annotated[int, where("--threads T", whole(ranges.THREADS))] = 1
    kernels: Annotated[str, where("--kernels auto|direct|queue|planes")] = "auto"


@dataclass
class OfReport:
    """Options of the ranks that are planned, and of the report.

    Attributes
    ----------
    ranks
        As many ranks are planned for.
    rank
        Which of them is explained; by default one in the middle.
    code
        Print the generated C++ too, with all the rest as comments.
    passes
        Print what every pass of the compiler leaves of each kernel too.
    picture
        Draw who sends how much to whom, and how.
    """

    ranks: Annotated[int, where("--ranks R", whole(ranges.RANKS))] = 1
    rank: Annotated[int | None, where("--rank K", whole(ranges.RANK))] = None
    code: Annotated[bool, results("--code")] = False
    passes: Annotated[bool, results("--passes")] = False
    picture: Annotated[Path | None, results("--picture FILE", place("file"))] = None
    json: Annotated[str | None, options.JSON] = None


@command(app, "CASE", options.OfCase, OfReport, PlannedExecution, without=("mailboxes", "schedule", "trace"))
def case(context: typer.Context, **values: Any) -> None:
    """Steps or iterations of a case of `halocline cases`, or of the first problem that a Python file makes:
    fields and halos, what is exchanged and why, messages, bytes, flops, memory, patches, and the least time
    that the memory of this machine allows. No rank is started.

    Examples
    --------
    halocline explain poisson --n 512 --dim 3 --ranks 100000 --rank 0
    halocline explain poisson --n 1024 --code > kernels.cpp
    halocline explain mhd-benchmark --n 128 --ranks 8
    halocline explain convection --set rayleigh=1e5 --order 4 --ranks 64 --rank 0
    halocline explain acoustic.py --n 1024 --ranks 64
    """
    from halocline.cli import explain
    from halocline.cli.texts import execution_of

    execution = execution_of(values)
    explain.case(str(context.info_name), **values, execution=execution)
