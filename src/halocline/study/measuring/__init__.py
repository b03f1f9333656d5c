"""Measurements of commands, parts of a step and the host, and predictions for machines."""
