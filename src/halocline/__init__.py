"""Stencil computing on structured grids: equations in, distributed solve out."""
