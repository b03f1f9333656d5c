"""Printers: kernels as text, statement by statement."""
