"""Named communication schemes for comparisons.

The schemes are the versions of the buoyancy-driven cavity code of Virginia Tech (Sections 4.5 and 4.7). Each
scheme adds one optimisation to the previous one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Communication:
    """Content of the halos and method of their exchange.

    Attributes
    ----------
    about : str
        Description of the scheme.
    halo : {"read", "faces", "edges", "uniform"}
        Halo segments to exchange; see `halocline.Execution`.
    packing : str
        Messages to pack; a key of `halocline.plan.transfer.PACKING`.
    overlap : bool
        True if patches that need no message run while messages are in transit.
    """

    about: str
    halo: str
    packing: str
    overlap: bool


COMMUNICATIONS: Mapping[str, Communication] = {
    "baseline": Communication("no packed messages, the widest halo for all fields", "faces", "none", False),
    "v1": Communication("baseline with packed messages along the last axis", "faces", "last", False),
    "v2": Communication("v1 with only the halo cells that kernels read", "read", "last", False),
    "v3": Communication("v2 with all messages packed", "read", "all", False),
    "overlap": Communication("v3 with computation while messages are in transit", "read", "all", True),
}
