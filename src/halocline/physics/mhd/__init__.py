"""Magnetohydrodynamics with high-order finite differences."""

from halocline.physics.mhd.equations import MHD
from halocline.physics.mhd.forcing import Forcing
from halocline.physics.mhd.physics import Physics
from halocline.physics.mhd.timestep import Courant

__all__ = ["MHD", "Courant", "Forcing", "Physics"]
