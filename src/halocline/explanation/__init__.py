"""Explanation of a program on any number of ranks, without a run."""
