"""Command `halocline compile`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from halocline import ranges
from halocline.cli import options
from halocline.cli.commands import command, group
from halocline.cli.options import execution_option, whole_number
from halocline.cli.output import say
from halocline.errors import InputError
from halocline.run.ranks.mpi import world
from halocline.words import counted

app = group("")


@command(app, "compile", options.CaseOptions)
def compile_(
    name: Annotated[str, typer.Argument(metavar="FILE.py|CASE")],
    target: Annotated[str, execution_option("--target T,T,...")] = "native",
    ranks: Annotated[int, execution_option("--ranks R", whole_number(ranges.RANKS))] = 1,
    **values: Any,
) -> None:
    """Compile the kernels of a case or file into the cache, for this machine or others.

    For CPUs, the command runs one step on this machine, and compiles the kernels that this step uses. Give
    the number of cells of the later run: the kernels of a step do not depend on it, but those of initial
    values may. Machines without a compiler use the code. `halocline cache export` writes it to an archive.

    For CUDA devices, the command compiles the kernels of a step for the given number of cells and the default
    decomposition. A run on a device compiles its remaining kernels.

    Parameters
    ----------
    name
        Python file, or name of a case.
    target
        Targets: native (this CPU), x86-64-v2, x86-64-v3 or x86-64-v4 (all CPUs of this level), armv8-a, or
        sm_90 and other architectures of CUDA devices.
    ranks
        Number of ranks that later run the problem on CUDA devices, one device each.

    Examples
    --------
    halocline compile mhd-benchmark --n 128 --target x86-64-v3,x86-64-v4
    halocline compile mhd-benchmark --n 256 --target sm_90 --ranks 4
    """
    from halocline.cli.texts import cells_of
    from halocline.problems.precompile import compile_for, is_cuda
    from halocline.problems.problem import problem_of

    if world().size > 1:
        raise InputError("halocline compile runs on one rank; run it without mpiexec and srun")
    problem = problem_of(name, cells_of(values.pop("n")), **values)
    targets = [text.strip() for text in target.split(",")]
    if ranks > 1 and not any(map(is_cuda, targets)):
        raise InputError(f"--ranks {ranks} has an effect only on CUDA targets, such as sm_90. Leave it out.")
    folder: Path | None = None
    for compiled_for, files in compile_for(problem, targets, ranks):
        size = sum(file.stat().st_size for file in files)
        say(f"{compiled_for}: {counted(len(files), 'file')} of compiled code, {size / 1e6:.1f} MB")
        folder = files[0].parent
    say(f"in {folder}")
