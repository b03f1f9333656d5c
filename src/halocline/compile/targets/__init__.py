"""Targets of the compiler, each with its passes and its printer."""
