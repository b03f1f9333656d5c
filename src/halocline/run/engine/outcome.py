"""What a run of a program did."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from halocline.run.tuning.overlap import Overlap

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NO_STEP = "no step"  # reason of a run without a step


@dataclass(frozen=True, repr=False)
class Outcome:
    """What a run did.

    Attributes
    ----------
    reason : str
        "completed", the reason of the stop statement that ended it, "no step" where a simulation has done
        none, or "interrupted": a signal came, also where it came too late to cut the run short.
    loops : tuple of str
        How each loop ended: "condition" or "limit".
    history : array (passes, recorded scalars)
    scalars : dict of str to float
        Every scalar by name, as the run left it.
    seconds, compute, exchange, reduction : float
        Wall clock between barriers, the longest of all ranks; and what of it the first thread spent in
        kernels, packing and waiting for messages, and in reductions.
    loop_seconds : float
        What of the wall clock the outermost loops took, on the slowest rank.
    overlap : Overlap
        Whether computing and messages overlapped in the end, and why.
    """

    reason: str
    loops: tuple[str, ...]
    history: NDArray[np.float64]
    scalars: dict[str, float]
    seconds: float
    compute: float
    exchange: float
    reduction: float
    loop_seconds: float
    overlap: Overlap

    def __repr__(self) -> str:
        loops = "" if not self.loops else f", loops={self.loops!r}"
        return f"Outcome({self.reason!r}{loops}, seconds={self.seconds:.3g})"

    def followed_by(self, later: Outcome) -> Outcome:
        """Both runs as one."""
        import numpy as np

        return replace(
            later,
            history=np.concatenate((self.history, later.history)),
            **{name: getattr(self, name) + getattr(later, name) for name in _CLOCKS},
        )


_CLOCKS = ("seconds", "compute", "exchange", "reduction", "loop_seconds")
