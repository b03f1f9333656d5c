"""Which transfer method each pair of subdomains takes, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from halocline.lang.grid import chosen
from halocline.plan.decompose import Decomposition
from halocline.plan.layout import Layout

# The first that applies is taken.
METHODS = {
    "self": "both sides are one subdomain: copied within its memory",
    "peer": "both subdomains belong to one rank: copied from one's memory to the other's",
    "colocated": "their ranks are two of one node: the receiver copies out of the sender's memory; "
    "a device packs, copies into the memory of the receiver's, and that unpacks",
    "gpu_aware": "packed on the device, sent by MPI out of the device's memory, and unpacked",
    "rma": "packed into a mailbox, fetched by the receiver with MPI's one-sided communication, and unpacked",
    "mpi": "packed, sent by MPI and unpacked; of a device by way of the host's memory",
}
SETS = {  # that are compared, each with one method more, by the names of C. Pearson et al. 2020, Section IV.C
    "+remote": "mpi",
    "+colo": "colocated,mpi",
    "+peer": "peer,colocated,mpi",
    "+kernel": "self,peer,colocated,mpi",
}
AWARE_SETS = {name: methods.replace("mpi", "gpu_aware,mpi") for name, methods in SETS.items()}
MAILBOXES = {"mailboxes": "self,peer,rma,mpi"}  # a set that is no part of theirs
ON_DEVICES = ("self", "peer", "colocated", "gpu_aware", "mpi")  # the methods that devices know
DEFAULT = ("self", "peer", "colocated", "mpi")  # mailboxes are for those who ask for them
PACKING = {
    "all": "every message",
    "last": "only what goes along the last axis",
    "none": "no message",
}
BY_MPI = frozenset({"gpu_aware", "mpi"})  # the methods that can do without packing
NEEDS_PROGRESS = frozenset({"gpu_aware", "rma", "mpi"})  # they progress only while polled
COPIED = frozenset({"self", "peer"})  # by the rank itself, before its patches
# What a user names in vain, and why: where fields are in memory of the host, and where they are on devices.
UNFIT_ON_HOST = {"gpu_aware": "fields are in memory of the host"}
UNFIT_ON_DEVICES = {"rma": "its mailboxes are memory of the host"}


@dataclass(frozen=True)
class Transfers:
    """The transfer method between any two subdomains.

    Parameters
    ----------
    layout : Layout
    methods : tuple of str
        Those that may be taken; "mpi" is always one of them.
    packing : str
        Which messages by MPI are packed, of `PACKING`. Others MPI takes out of the field by derived
        datatypes; devices copy their rows to where MPI takes them.
    """

    layout: Layout
    methods: tuple[str, ...] = DEFAULT
    packing: str = "all"

    def method(self, a: int, b: int) -> str:
        """The transfer method between the subdomains `a` and `b`; the same both ways."""
        if a == b and "self" in self.methods:
            return "self"
        far = next(name for name in ("gpu_aware", "rma", "mpi") if name in self.methods)
        if not {"peer", "colocated"}.isdisjoint(self.methods):
            here, there = self.layout.home(a)[0], self.layout.home(b)[0]
            if here == there:
                return "peer" if "peer" in self.methods else far
            if "colocated" in self.methods and self.layout.node(here) == self.layout.node(there):
                return "colocated"
        return far

    def why(self, a: int, b: int, unable: Mapping[str, str] | None = None) -> str:
        """Why this method is used: what holds of the two, and which methods were not allowed, or why they
        cannot be taken whatever is allowed, where `unable` knows that."""
        layout = self.layout
        here, there = layout.home(a)[0], layout.home(b)[0]
        if a == b:
            fits, holds = ["self", "peer"], "the subdomain itself"
        elif here == there:
            fits, holds = ["peer"], "the same rank"
        elif layout.node(here) == layout.node(there):
            fits, holds = ["colocated"], "the same node"
        else:
            fits, holds = [], "another node"
        off = [name for name in fits if name not in self.methods]
        if off and self.method(a, b) in NEEDS_PROGRESS:
            if unable and off[-1] in unable:
                return f"{holds}, but {unable[off[-1]]}"
            return f"{holds}, but {' and '.join(off)} {'is' if len(off) == 1 else 'are'} off"
        return holds

    def packed(self, method: str, along_last: bool) -> bool:
        """Whether a message is packed, by its method and whether parts of it go along the last axis."""
        if method not in BY_MPI or self.packing == "all":
            return True
        return self.packing == "last" and along_last

    def copied(self, a: int, b: int) -> bool:
        """Whether the rank that has both subdomains copies, without a message."""
        return self.method(a, b) in COPIED


def chosen_methods(methods: Iterable[str] | str | None) -> tuple[str, ...]:
    """The transfer methods that a user allows, in the order in which they are tried.

    Parameters
    ----------
    methods : str, iterable of str, or None
        Names, such as ``"self,mpi"`` or ``("self", "mpi")``; `DEFAULT` where None.

    Raises
    ------
    InputError
        A method that is unknown.
    """
    if methods is None:
        return DEFAULT
    names = methods.split(",") if isinstance(methods, str) else list(methods)
    names = [name.strip() if isinstance(name, str) else name for name in names]
    for name in names:
        chosen("transfer method", name, [*METHODS])
    return tuple(name for name in METHODS if name in names or name == "mpi")


def methods_without_ranks(methods: Sequence[str]) -> tuple[str, ...]:
    """The methods that one process without MPI takes, of those that a user allows: it copies."""
    return ("self", "peer", "mpi") if "self" in methods else ("peer", "mpi")


def needs_ranks(methods: Sequence[str], decomposition: Decomposition) -> str:
    """What to say where one process without MPI cannot do with what a user allows; "" where it can."""
    alone = decomposition.count == 1
    if "peer" in methods or (alone and ("self" in methods or not any(decomposition.periodic))):
        return ""
    lacking = [name for name in methods if name not in COPIED]
    said = f"method {lacking[0]} needs" if len(lacking) == 1 else f"methods {', '.join(lacking)} need"
    return f"transfer {said} ranks: start with mpiexec or --ranks; peer is taken"
