"""What is here, what is missing, and what to do about it."""
