"""What a program would do on any number of ranks, without starting one."""
