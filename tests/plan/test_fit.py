"""Subdomains that are too thin, and plans that do not fit."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest

from executed_plans import check, one_field, plan_subdomain, star
from halocline.compile.schedule import FieldInfo
from halocline.errors import HaloclineError, InputError
from halocline.plan import decompose


@pytest.mark.parametrize(
    ("shape", "parts", "periodic", "radius", "reach", "words"),
    [
        (
            (16, 64),
            (8, 1),
            (True, True),
            3,
            1,
            ["'field0'", "halo of 3", "axis x", "8 subdomains", "leave 2", "at most 5"],
        ),
        ((64, 16), (1, 8), (False, False), 3, 1, ["halo of 3", "axis y", "at most 5"]),
        ((64, 2), (1, 1), (True, True), 3, 1, ["axis y", "1 subdomain ", "leave 2", "at least 3"]),
        (
            (16, 64),
            (8, 1),
            (False, True),
            1,
            3,
            ["boundary condition that reads 3", "axis x", "leave 2", "at most 5"],
        ),
        ((2, 64), (1, 1), (False, True), 1, 3, ["reads 3", "axis x", "leave 2", "at least 3"]),
    ],
)
def test_too_thin_subdomains_are_rejected(shape, parts, periodic, radius, reach, words):
    schedule = one_field(periodic, star(2, radius), reach=reach).schedule
    d = decompose(shape, prod(parts), strategy=parts, periodic=periodic, thickness=1)
    messages = set()
    for rank in range(d.count):
        with pytest.raises(InputError) as error:
            plan_subdomain(schedule, d, rank)
        messages.add(str(error.value))
    (message,) = messages  # equal on every rank
    assert not [word for word in words if word not in message], message


def test_a_wall_axis_of_one_cell_needs_no_halo_to_send():
    program = one_field((False, True), star(2, 2))
    check(program, decompose((1, 8), 2, strategy=(1, 2), periodic=(False, True), thickness=2))


def test_a_decomposition_of_another_grid_is_rejected():
    schedule = one_field((True, True), star(2, 1)).schedule
    with pytest.raises(InputError, match="periodic"):
        plan_subdomain(schedule, decompose((8, 8), 1, periodic=False), 0)


def test_memory_is_never_overrun():
    """A schedule that allocates less halo than it exchanges is rejected."""
    schedule = one_field((True,), star(1, 2)).schedule
    narrow = FieldInfo("u", "float64", (False,), ((1, 2),))
    with pytest.raises(HaloclineError, match=r"'u'.*too narrow a halo"):
        plan_subdomain(replace(schedule, fields=(narrow,)), decompose((8,), 2), 0)
