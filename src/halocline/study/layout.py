"""Ranks, threads and nodes of a run, and the binding of its threads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from halocline.words import counted, joined

_UNBOUND = dict.fromkeys(("OMP_PROC_BIND", "OMP_PLACES", "KMP_AFFINITY"))
# Environment variables of each thread binding, as in Tables 4.1 to 4.3 and 7.2 of UMBC HPCF-2018-10. The
# value None removes a variable.
AFFINITIES: Mapping[str, Mapping[str, str | None]] = {
    "none": _UNBOUND,
    "close": {**_UNBOUND, "OMP_PROC_BIND": "close", "OMP_PLACES": "cores"},
    "spread": {**_UNBOUND, "OMP_PROC_BIND": "spread", "OMP_PLACES": "cores"},
    "scatter": {**_UNBOUND, "KMP_AFFINITY": "scatter"},
    "threads": {**_UNBOUND, "OMP_PROC_BIND": "close", "OMP_PLACES": "threads"},
}


class Layout(NamedTuple):
    """Ranks and threads of a run.

    Attributes
    ----------
    ranks : int
        Number of ranks of the whole run.
    threads : int
        Number of threads of each rank.
    per_node : int or None
        Number of ranks on each node; None if the launcher distributes the ranks.
    """

    ranks: int
    threads: int
    per_node: int | None = None

    @property
    def nodes(self) -> int:
        """Number of nodes; 1 if the launcher distributes the ranks."""
        return 1 if self.per_node is None else -(-self.ranks // self.per_node)

    @property
    def options(self) -> dict[str, str]:
        """Layout as options of `halocline run`."""
        node = {} if self.per_node is None else {"--ranks-per-node": f"{self.per_node}"}
        return {"--ranks": f"{self.ranks}", "--threads": f"{self.threads}", **node}

    @property
    def description(self) -> str:
        """Description of the layout in a few words."""
        node_text = None if self.per_node is None else f"on {counted(self.nodes, 'node')}"
        return joined(f"ranks {self.ranks}", f"threads {self.threads}", node_text)
