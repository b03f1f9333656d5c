"""Studies: measurements by the very command that a user types, and their tables, plots and pages."""
