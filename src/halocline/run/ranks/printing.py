"""Text from a program that runs on many ranks."""

from __future__ import annotations

import builtins
from typing import Any

from halocline.run.ranks.mpi import world


def print(*values: Any, **options: Any) -> None:
    """Print once, however many ranks run the program: on the first.

    Parameters
    ----------
    *values, **options
        Of Python's own print. All ranks must evaluate them: ``sim.checksum(T)`` and the like are collective.
    """
    if world().rank == 0:
        builtins.print(*values, **{"flush": True, **options})
