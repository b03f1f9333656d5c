"""Time limit of every test, which ends processes that hang but never slow ones."""

from __future__ import annotations

# Seconds: ten times the longest command, run or poll of a test on a busy machine. The Makefile's HANG, after
# which pytest ends a test with its stack, is longer, so that the test reports first.
HANG = 1200.0
