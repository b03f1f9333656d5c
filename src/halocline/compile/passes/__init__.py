"""Passes over kernels, each a function from one kernel to another."""
