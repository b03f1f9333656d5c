"""Whether there is memory for the fields, said before any of it is taken."""

from __future__ import annotations

from collections.abc import Container, Iterable

from halocline.compile.schedule import FieldInfo
from halocline.errors import InputError, RunError
from halocline.lang.dtype import ITEMSIZE
from halocline.native import native
from halocline.plan.rank import RankPlan
from halocline.run.devices.devices import check_dtypes, check_memory, subdomain_bytes
from halocline.run.domain.domain import Domain
from halocline.run.ranks.communicator import Communicator


def check_cells(domain: Domain, cells: int, fields: Iterable[FieldInfo]) -> None:
    """InputError where these fields alone, without halos, are more than all nodes hold; all ranks call this.
    To plan a grid that no machine holds would itself take memory and time."""
    needed = cells * sum(ITEMSIZE[info.dtype] for info in fields)
    with domain.comm.agreement("look for memory"):
        if not domain.devices and (lack := _lack(domain.comm, -(-needed // domain.comm.size), "fields")):
            raise InputError(lack)


def check_node(comm: Communicator, needed: int, what: str = "fields") -> None:
    """RunError where the ranks of a node ask together for more than it has; each alone may get its share,
    since pages cost nothing before they are touched, and be killed later."""
    if lack := _lack(comm, needed, what):
        raise RunError(lack)


def _lack(comm: Communicator, needed: int, what: str) -> str:
    """What to say where this node has no `needed` bytes for each of its ranks; "" where it has."""
    ranks = comm.ranks_of_node
    available = min(native().available_memory(), ranks * native().available_to_process())
    if ranks * needed <= available:
        return ""
    whose = f"of the {ranks} ranks on this node " if ranks > 1 else ""
    advice = "fewer mailboxes, a smaller grid" if "mailboxes" in what else "a smaller grid"
    return (
        f"the {what} {whose}need {_amount(ranks * needed)}, but only {_amount(available)} are available: "
        f"take {advice}, float32 or more nodes"
    )


def check_devices(domain: Domain, plan: RankPlan, known: Container[str]) -> None:
    """InputError or RunError where devices cannot hold the fields of a plan beside those that are `known`, or
    not compute them. All ranks end this before any of them takes memory: they may share devices."""
    needed = dict.fromkeys(domain.devices, 0)
    for n, own in enumerate(plan.subdomains):
        check_dtypes(domain.device_of(n), own.fields)
        needed[domain.device_of(n)] += subdomain_bytes(own, known)
    for device, size in needed.items():
        check_memory(device, size, domain.sharers[device])


def _amount(size: int) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e6:,.0f} MB"
