"""Ideal magnetohydrodynamics with shocks: MHDTVD, corner transport upwind, constrained transport."""

from halocline.physics.mhd_tvd.diagnostics import derived, diagnostics
from halocline.physics.mhd_tvd.gas import State
from halocline.physics.mhd_tvd.parameters import settings
from halocline.physics.mhd_tvd.scheme import FLUXES, IdealMHD, Source
from halocline.physics.mhd_tvd.setup import centred, conserved, curl
from halocline.physics.mhd_tvd.simulation import MHDSimulation

__all__ = [
    "FLUXES",
    "IdealMHD",
    "MHDSimulation",
    "Source",
    "State",
    "centred",
    "conserved",
    "curl",
    "derived",
    "diagnostics",
    "settings",
]
