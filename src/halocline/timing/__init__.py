"""What parts of a run take, timed by its own ranks: the exchange alone, whole steps, what overlaps."""
