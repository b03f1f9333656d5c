"""Buoyancy-driven flow in a cavity between a hot and a cold wall."""

from halocline.physics.cavity.equations import Cavity, Results
from halocline.physics.cavity.flow import CONVERGING, Flow, findings, noise, published_of_air, settings

__all__ = [
    "CONVERGING",
    "Cavity",
    "Flow",
    "Results",
    "findings",
    "noise",
    "published_of_air",
    "settings",
]
