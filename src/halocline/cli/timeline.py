"""The picture of what threads and messages did, beside a trace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from halocline.run.domain.domain import Domain


def draw_timeline(domain: Domain, path: Path) -> None:
    """Draw the middle of a traced run; the first rank does."""
    from halocline.explanation import timeline
    from halocline.io.style import save, styled

    kept = domain.timeline
    if kept is None or domain.comm.rank != 0:
        return
    with styled():
        first, last = timeline.middle(kept.all)
        save(timeline.plot(kept.all, kept.lanes, first=first, last=last), path)
