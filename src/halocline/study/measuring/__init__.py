"""Measurements: of commands, of parts of a step, of the host; and predictions for machines."""
