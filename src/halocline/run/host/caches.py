"""What the caches of this machine mean for plans and kernels."""

from __future__ import annotations

from halocline.plan.patches import Caches
from halocline.plan.rank import RankPlan
from halocline.run.host.machine import data_caches, last_level_cache


def caches() -> Caches:
    """The data caches of this machine, as the planner takes them; its own defaults where they are unknown."""
    return Caches(**{f"l{c.level}": c.bytes for c in data_caches() if c.level <= 2})


def exceeds_cache(plan: RankPlan, ranks_of_node: int) -> bool:
    """Whether the fields of a node are too many for its last-level cache, so that results had better go past
    it."""
    return plan.memory * ranks_of_node > last_level_cache()
