"""Halocline language: grids, fields, expressions, operators, boundary conditions, reductions, programs."""
