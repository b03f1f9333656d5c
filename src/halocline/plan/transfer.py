"""Selection of the transfer method of each pair of subdomains."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from halocline.lang.grid import checked_choice
from halocline.plan.decompose import Decomposition
from halocline.plan.layout import Layout

# The first applicable method is selected.
METHODS = {
    "self": "the subdomain is its own neighbour: copied within its memory",
    "peer": "both subdomains belong to one rank: copied between their memories",
    "colocated": "both ranks are on one node: the receiver copies from the memory of the sender; devices "
    "pack, copy into the memory of the receiving device, and unpack there",
    "gpu_aware": "packed on the device, sent by MPI from device memory, and unpacked",
    "rma": "packed into a mailbox, fetched by the receiver with MPI's one-sided communication, and unpacked",
    "mpi": "packed, sent by MPI and unpacked; on devices through host memory",
}
SETS = {  # each set adds one method to the previous one; names of Pearson et al. 2020, Section IV.C
    "+remote": "mpi",
    "+colo": "colocated,mpi",
    "+peer": "peer,colocated,mpi",
    "+kernel": "self,peer,colocated,mpi",
}
AWARE_SETS = {name: methods.replace("mpi", "gpu_aware,mpi") for name, methods in SETS.items()}
MAILBOXES = {"mailboxes": "self,peer,rma,mpi"}  # an additional set that is not in the paper.
ON_DEVICES = ("self", "peer", "colocated", "gpu_aware", "mpi")  # methods that devices support.
DEFAULT = ("self", "peer", "colocated", "mpi")  # mailboxes require an explicit choice.
PACKING = {
    "all": "every message",
    "last": "messages along the last axis only",
    "none": "no message",
}
BY_MPI = frozenset({"gpu_aware", "mpi"})  # methods that support messages without packing.
NEEDS_PROGRESS = frozenset(
    {"gpu_aware", "rma", "mpi"}
)  # methods whose messages progress only while a rank polls.
COPIED = frozenset({"self", "peer"})  # methods by which the rank itself copies, before it computes patches.
# Methods that are not available, with the reason: for fields in host memory, and for fields on devices.
UNFIT_ON_HOST = {"gpu_aware": "fields are in host memory"}
UNFIT_ON_DEVICES = {"rma": "its mailboxes are in host memory"}


@dataclass(frozen=True)
class Transfers:
    """Transfer methods between subdomains.

    Parameters
    ----------
    layout : Layout
    methods : tuple of str
        Allowed methods; "mpi" is always allowed.
    packing : str
        Selection of the MPI messages that are packed: a key of `PACKING`. MPI reads all other messages
        directly from the fields by derived datatypes. Devices copy the rows of such a message to the memory
        that MPI reads.
    """

    layout: Layout
    methods: tuple[str, ...] = DEFAULT
    packing: str = "all"

    def method(self, a: int, b: int) -> str:
        """Return the transfer method between the subdomains `a` and `b`, the same in both directions."""
        if a == b and "self" in self.methods:
            return "self"
        fallback = next(name for name in ("gpu_aware", "rma", "mpi") if name in self.methods)
        if not {"peer", "colocated"}.isdisjoint(self.methods):
            rank_a, rank_b = self.layout.home(a)[0], self.layout.home(b)[0]
            if rank_a == rank_b:
                return "peer" if "peer" in self.methods else fallback
            if "colocated" in self.methods and self.layout.node(rank_a) == self.layout.node(rank_b):
                return "colocated"
        return fallback

    def reason(self, a: int, b: int, unable: Mapping[str, str] | None = None) -> str:
        """Return the reason for the transfer method: the relation of the subdomains, and unavailable methods.

        `unable` contains the reason for each method that no setting can make available.
        """
        layout = self.layout
        rank_a, rank_b = layout.home(a)[0], layout.home(b)[0]
        if a == b:
            suitable, relation = ["self", "peer"], "the subdomain itself"
        elif rank_a == rank_b:
            suitable, relation = ["peer"], "the same rank"
        elif layout.node(rank_a) == layout.node(rank_b):
            suitable, relation = ["colocated"], "the same node"
        else:
            suitable, relation = [], "another node"
        disallowed = [name for name in suitable if name not in self.methods]
        if disallowed and self.method(a, b) in NEEDS_PROGRESS:
            if unable and disallowed[-1] in unable:
                return f"{relation}, but {unable[disallowed[-1]]}"
            return f"{relation}, but {' and '.join(disallowed)} {'is' if len(disallowed) == 1 else 'are'} off"
        return relation

    def is_packed(self, method: str, along_last: bool) -> bool:
        """Return True if a message is packed.

        `along_last` is True if parts of the message are sent along the last axis.
        """
        if method not in BY_MPI or self.packing == "all":
            return True
        return self.packing == "last" and along_last

    def is_copied(self, a: int, b: int) -> bool:
        """Return True if one rank has both subdomains and copies between them without a message."""
        return self.method(a, b) in COPIED


def chosen_methods(methods: Iterable[str] | str | None) -> tuple[str, ...]:
    """Return the transfer methods that a user allows. The first applicable method is selected.

    Parameters
    ----------
    methods : str, iterable of str, or None
        Names, such as ``"self,mpi"`` or ``("self", "mpi")``; `DEFAULT` if None.

    Raises
    ------
    InputError
        A method is unknown.
    """
    if methods is None:
        return DEFAULT
    names = methods.split(",") if isinstance(methods, str) else list(methods)
    names = [name.strip() if isinstance(name, str) else name for name in names]
    for name in names:
        checked_choice("transfer method", name, [*METHODS])
    return tuple(name for name in METHODS if name in names or name == "mpi")


def methods_without_ranks(methods: Sequence[str]) -> tuple[str, ...]:
    """Return the allowed methods for one process without MPI, which copies all halo cells itself."""
    return ("self", "peer", "mpi") if "self" in methods else ("peer", "mpi")


def needs_ranks(methods: Sequence[str], decomposition: Decomposition) -> str:
    """Return a notice if the allowed methods require several ranks; "" if one process suffices."""
    alone = decomposition.count == 1
    if "peer" in methods or (alone and ("self" in methods or not any(decomposition.periodic))):
        return ""
    lacking = [name for name in methods if name not in COPIED]
    subject = f"method {lacking[0]} needs" if len(lacking) == 1 else f"methods {', '.join(lacking)} need"
    return f"transfer {subject} several ranks, so peer is used instead. Start ranks with mpiexec or --ranks."
