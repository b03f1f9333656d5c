"""The language: grids, fields, expressions, operators, boundary conditions, reductions and programs."""
