"""Which measurements a table is about, and what their lines are called."""

from __future__ import annotations

from halocline.study.measurement import is_solve
from halocline.study.reporting import quantities as q
from halocline.study.reporting.published import MHD_CASE, MHD_ORDER
from halocline.study.reporting.report import Contents, Group
from halocline.words import counted


def solves(group: Group) -> Group:
    """Those of linear solves."""
    return group.those(is_solve)


def whole(group: Group) -> Group:
    """Those of solves and of whole steps, of all orders."""
    return group.those(lambda m: m["only"] is None and m["halo"] == "read")


def whole_steps(group: Group) -> Group:
    """Those of whole steps, of all orders."""
    return whole(group).those(lambda m: not is_solve(m))


def own_order(group: Group) -> Group:
    """Those of the order that was measured first."""
    return group.those(lambda m: m["order"] == group.one["order"]) if group.found else group


def size_label(line: Group, panel: Group) -> str:
    """The size of a grid, and the threads of a rank where that says something."""
    threads = f", {counted(line.one['threads'], 'thread')} a rank"
    return q.size(line.one) + (threads if len({m["threads"] for m in panel.found}) > 1 else "")


SAME_BITS = Contents(sentences=(lambda group: q.same_bits(group.found),), of=whole_steps)


def of_the_paper(group: Group) -> bool:
    """Whether these are the steps that Pekkilä et al. measured."""
    return bool(group.one["case"] == MHD_CASE and group.one["order"] == MHD_ORDER)
