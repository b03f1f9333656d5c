"""Magnetohydrodynamics with high-order finite differences."""

from halocline.physics.mhd.equations import MHD, Physics

__all__ = ["MHD", "Physics"]
