"""How many threads a rank has, and how they wait."""

from __future__ import annotations

import functools
import operator
import os

from halocline.run.host.limits import affinity
from halocline.run.host.machine import share_of_cores
from halocline.run.ranks.communicator import Communicator

# How often a thread that waits looks again at once, before it sleeps in between: native/src/threads/team.hpp.
SPINS = {"passive": 20, "usual": 1000, "active": 2**32 - 1}


def default_threads(comm: Communicator) -> int:
    """Threads of one rank where the user names no number."""
    given = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    if given.isdigit() and int(given) > 0:
        return int(given)
    return share_of_cores(affinity(), _masks(comm))


def spins(threads: int, comm: Communicator) -> int:
    """How often a thread that waits may look again at once: as OMP_WAIT_POLICY says, else rarely where a node
    has more threads than cores, since it must leave its core to the one it waits for."""
    policy = os.environ.get("OMP_WAIT_POLICY", "").lower()
    if policy in ("passive", "active"):
        return SPINS[policy]
    masks = _masks(comm)
    together = functools.reduce(operator.or_, masks)
    crowded = threads > affinity().bit_count() or threads * len(masks) > together.bit_count()
    return SPINS["passive" if crowded else "usual"]


def _masks(comm: Communicator) -> tuple[int, ...]:
    """The affinity of each rank of this node; taken to be this one's where they are not known."""
    return comm.masks or (affinity(),) * comm.ranks_of_node
