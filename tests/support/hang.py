"""The one time limit of tests, which ends what hangs and never what is slow."""

from __future__ import annotations

# Seconds: ten times what any command, run or poll of a test takes on a machine that others keep busy. The
# Makefile's HANG, after which pytest ends a test with its stack, is longer, so that the test reports first.
HANG = 1200.0
