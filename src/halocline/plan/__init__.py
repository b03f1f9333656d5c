"""Plans of ranks: subdomains, messages and patches, as plain data computed by pure functions."""

from halocline.plan.decompose import decompose
from halocline.plan.levels import decompose_levels, flow
from halocline.plan.placement import place, placement_cost
from halocline.plan.traffic import Traffic

__all__ = ["Traffic", "decompose", "decompose_levels", "flow", "place", "placement_cost"]
