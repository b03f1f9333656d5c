"""Studies: measurements with the commands of a user, and their tables, plots and pages."""
