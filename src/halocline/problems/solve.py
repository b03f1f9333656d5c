"""Cases solved once and measured: what `halocline solve` reports, and studies repeat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from halocline.problems.linear import LinearCase
from halocline.run.devices.devices import OnDevice
from halocline.run.output.checkpoint import Checkpoint
from halocline.run.output.output import Output
from halocline.run.tuning.patches import Tuned
from halocline.solvers.linear import Solution

VECTORS = 4  # that conjugate gradients keep: x, r, p, and q or the next p


@dataclass(frozen=True)
class Record:
    """What one solve did, the same on all ranks; the keys of ``halocline solve poisson --json``.

    Attributes
    ----------
    n, dof : int
        Points along an axis, and in all.
    iterations : int
    converged : bool
    reason : str
        Why it ended; see halocline.Solution, for `converged` too.
    error_max : float
        The greatest difference from the exact solution.
    seconds : float
        Wall clock of the whole solve, from barrier to barrier.
    seconds_per_iteration : float or None
        Of the iterations alone, without the first residual; None where there was no iteration.
    residual_relative : float
        The last norm of the residual that the method carries along over the first.
    true_residual_relative : float
        The norm of b - A x, of the solution after the last iteration, over the first residual norm.
    checksum : str
        A hash of the solution's bits in global order: 32 hexadecimal digits.
    ranks, threads : int
        Threads are those of one rank.
    devices : tuple of OnDevice
        Where each subdomain lies, with rank, device, name and driver; empty on the CPU.
    memory_bytes : int
        Resident memory after the solve (VmRSS), summed over the ranks.
    bytes_per_iteration : float
        That must cross memory in one iteration, all ranks together.
    bandwidth_share : float or None
        Their rate, over that of a += s * b on the same threads in the same run; on devices, over that of
        copies within their memory.
    overlap : bool
        Whether computing and messages overlapped in the end.
    overlap_why : str
    sweep_seconds_overlap, sweep_seconds_no_overlap : float or None
        What that was decided by: the median seconds of a sweep with overlap and without.
    written_bytes : int
        Of output and checkpoints, before they were compressed, of all ranks.
    writing_seconds, waiting_seconds : float
        That the slowest rank spent on them instead of computing; and of these, waiting for buffers or disks.
    io_ranks : int
        Ranks beside these that wrote them.
    """

    n: int
    dof: int
    iterations: int
    converged: bool
    reason: str
    error_max: float
    seconds: float
    seconds_per_iteration: float | None
    residual_relative: float
    true_residual_relative: float
    checksum: str
    ranks: int
    threads: int
    devices: tuple[OnDevice, ...]
    memory_bytes: int
    bytes_per_iteration: float
    bandwidth_share: float | None
    overlap: bool
    overlap_why: str
    sweep_seconds_overlap: float | None
    sweep_seconds_no_overlap: float | None
    written_bytes: int
    writing_seconds: float
    waiting_seconds: float
    io_ranks: int


@dataclass(frozen=True)
class Result:
    """A record, and what it is a record of.

    Attributes
    ----------
    record : Record
    bandwidth : float or None
        Bytes a second of a += s * b on all ranks at once, or of copies within their devices; None where no
        memory was left to measure that with.
    solution : Solution
    case : LinearCase
    tuned : Tuned or None
        What is known of the speed of patches, where that decided.
    """

    record: Record
    bandwidth: float | None
    solution: Solution = field(repr=False)
    case: LinearCase = field(repr=False)
    tuned: Tuned | None = None


def poisson(
    n: int,
    dim: int = 2,
    *,
    method: str = "cg-fused",
    rtol: float = 1e-6,
    max_iterations: int | None = None,
    output: Output | Sequence[Output] = (),
    checkpoint: Checkpoint | None = None,
    resume: str | Path | None = None,
    communicator: Any = None,
    on_progress: Callable[[int], None] | None = None,
    **execution: Any,
) -> Result:
    """Solve -Δu = f from a zero initial guess, and compare with the exact solution; all ranks call this.

    Parameters
    ----------
    n : int
        Interior points along each axis.
    dim : {1, 2, 3}
    method : str
        One of halocline.solvers.cg.METHODS.
    rtol : float
        Iterations end where the norm of the residual that the method carries along is at most `rtol` times
        the first.
    max_iterations : int, optional
        The run ends there too, not converged.
    output, checkpoint, resume : optional
        See halocline.LinearProblem.solve.
    communicator, **execution
        See halocline.LinearProblem; the result's bits do not depend on them.
    on_progress : callable, optional
        Called with the iterations done, a few times a second.

    Returns
    -------
    Result

    Raises
    ------
    InputError
    KeyboardInterrupt
        SIGINT or SIGTERM came, and all ranks have agreed to end; it says after how many iterations.

    Examples
    --------
    >>> from halocline.problems import solve
    >>> solve.poisson(64).record.converged
    True
    """
    ready = LinearCase("poisson", [n], {"method": method}, dim=dim)
    done = ready.run(
        steps=max_iterations, rtol=rtol, output=output, checkpoint=checkpoint, resume=resume,
        communicator=communicator, on_progress=on_progress, **execution,
    )  # fmt: skip
    solution, found = done.outcome, vars(done.record) | ready.findings(done)
    assert isinstance(solution, Solution)
    record = Record(**{each.name: found[each.name] for each in fields(Record)})
    return Result(record, done.bandwidth, solution, ready, done.tuned)


def predicted_bytes(n: int, dim: int) -> int:
    """Memory that the vectors of conjugate gradients take: 4 n^dim numbers of 8 bytes, as UMBC HPCF-2018-10,
    Section 3, counts them."""
    return VECTORS * 8 * int(n**dim)
