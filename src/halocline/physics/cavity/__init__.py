"""Buoyancy-driven flow in a cavity between a hot and a cold wall."""

from halocline.physics.cavity.equations import Cavity
from halocline.physics.cavity.results import Results

__all__ = ["Cavity", "Results"]
