"""Time integration schemes and linear solvers."""
