"""Who owns which cells, which message goes where, which patches exist: pure data from pure functions."""

from halocline.plan.box import Box
from halocline.plan.decompose import STRATEGIES, Decomposition, decompose
from halocline.plan.fit import least_thickness
from halocline.plan.layout import Layout, lay_out
from halocline.plan.levels import decompose_levels, flow
from halocline.plan.patches import Caches
from halocline.plan.placement import place, placement_cost
from halocline.plan.rank import plan_rank
from halocline.plan.traffic import Traffic
from halocline.plan.transfer import METHODS, Transfers, chosen_methods

__all__ = [
    "METHODS",
    "STRATEGIES",
    "Box",
    "Caches",
    "Decomposition",
    "Layout",
    "Traffic",
    "Transfers",
    "chosen_methods",
    "decompose",
    "decompose_levels",
    "flow",
    "lay_out",
    "least_thickness",
    "place",
    "placement_cost",
    "plan_rank",
]
