"""Magnetohydrodynamics with high-order finite differences."""

from halocline.physics.mhd.diagnostics import diagnostics
from halocline.physics.mhd.equations import MHD
from halocline.physics.mhd.forcing import Forcing
from halocline.physics.mhd.parameters import Physics, complete, settings
from halocline.physics.mhd.timestep import Courant, stepping, time_step_settings

__all__ = [
    "MHD",
    "Courant",
    "Forcing",
    "Physics",
    "complete",
    "diagnostics",
    "settings",
    "stepping",
    "time_step_settings",
]
