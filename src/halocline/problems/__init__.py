"""Problem files, their runs under a command, and the results of these runs."""
