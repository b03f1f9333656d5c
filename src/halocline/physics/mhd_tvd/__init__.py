"""Ideal magnetohydrodynamics with shocks: MHDTVD, corner transport upwind, constrained transport."""

from halocline.physics.mhd_tvd.gas import State
from halocline.physics.mhd_tvd.scheme import FLUXES, IdealMHD, Source

__all__ = ["FLUXES", "IdealMHD", "Source", "State"]
