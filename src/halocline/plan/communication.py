"""Named ways of communicating, to be compared with each other.

They are the versions of the buoyancy-driven cavity code of Virginia Tech (Sections 4.5, 4.7), each with one
thing more than the one before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Communication:
    """What halos consist of, and how they are exchanged.

    Attributes
    ----------
    about : str
    halo : {"read", "faces", "edges", "uniform"}
        What is exchanged; see `halocline.Execution`.
    packing : str
        Which messages are packed, of `halocline.plan.transfer.PACKING`.
    overlap : bool
        Whether patches that need no message run before all have come.
    """

    about: str
    halo: str
    packing: str
    overlap: bool


COMMUNICATIONS: Mapping[str, Communication] = {
    "baseline": Communication("nothing is packed; all fields have the widest halo", "faces", "none", False),
    "v1": Communication("what goes along the last axis is packed", "faces", "last", False),
    "v2": Communication("v1, and each field has its own halo", "read", "last", False),
    "v3": Communication("v2, and everything is packed", "read", "all", False),
    "overlap": Communication("v3, and patches run while messages are under way", "read", "all", True),
}
