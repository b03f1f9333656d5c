"""Who owns which cells, which message goes where, which patches exist: pure data from pure functions."""

from halocline.plan.decompose import decompose
from halocline.plan.levels import decompose_levels, flow
from halocline.plan.placement import place, placement_cost
from halocline.plan.traffic import Traffic

__all__ = ["Traffic", "decompose", "decompose_levels", "flow", "place", "placement_cost"]
