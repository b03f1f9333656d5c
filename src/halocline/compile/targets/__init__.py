"""Targets: for what kernels are written, with the passes that each takes and its printer."""
