"""How results converge on finer and finer grids: orders, limits, differences of grids."""
