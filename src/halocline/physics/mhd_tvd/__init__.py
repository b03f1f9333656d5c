"""Ideal magnetohydrodynamics with shocks: MHDTVD, corner transport upwind, constrained transport."""

from halocline.physics.mhd_tvd.gas import State
from halocline.physics.mhd_tvd.scheme import FLUXES, IdealMHD, Source
from halocline.physics.mhd_tvd.setup import curl
from halocline.physics.mhd_tvd.simulation import MHDSimulation

__all__ = ["FLUXES", "IdealMHD", "MHDSimulation", "Source", "State", "curl"]
