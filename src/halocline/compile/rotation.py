"""Fields that take over the buffer of another field instead of a copy of its values.

Programs often keep the old values of a field: ``assign({u: ..., before: u})``. The kernel then stores no
values of ``before``. After the sweep, ``before`` takes the buffer that ``u`` had, and ``u`` takes the buffer
with its new values. Multistep and Runge-Kutta schemes thus need no memory traffic for such copies.
"""

from __future__ import annotations

from collections.abc import Mapping

from halocline.lang.expression import Expr
from halocline.lang.grid import Field


def rotations(sets: Mapping[Field, Expr]) -> dict[Field, tuple[Field, ...]]:
    """Return the fields that take over buffers in a sweep.

    Parameters
    ----------
    sets : mapping of Field to expression
        New value of each field, in terms of the values before the sweep.

    Returns
    -------
    dict of Field to tuple of Field
        For each field whose buffer another field takes: this other field, then the field that takes its
        buffer in turn, and so on. For ``{u: f(u), p: u, q: p}``, the result is ``{u: (p, q)}``.
    """
    successors: dict[Field, Field] = {}
    for f, value in sets.items():
        if value.op == "read":
            source, _, offset = value.attribute
            alike = (source.dtype, source.staggered) == (f.dtype, f.staggered)
            if source in sets and source is not f and alike and not any(offset):
                successors.setdefault(source, f)
    followers = set(successors.values())
    chains = {}
    for first in successors:
        if first not in followers:
            chain = [successors[first]]
            while chain[-1] in successors:
                chain.append(successors[chain[-1]])
            chains[first] = tuple(chain)
    return chains


def stored_fields(sets: Mapping[Field, Expr]) -> dict[Field, Expr]:
    """Return the fields whose values the kernel of a sweep stores, with their new values."""
    followers = {f for chain in rotations(sets).values() for f in chain}
    return {f: value for f, value in sets.items() if f not in followers}
