"""What a machine would make of a problem, and what a host measures of itself for that."""
