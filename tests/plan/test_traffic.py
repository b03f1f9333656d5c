"""Traffic of a schedule."""

from __future__ import annotations

from executed_plans import one_field, star
from halocline.compile.footprint import Footprint
from halocline.compile.schedule import FieldInfo, Loop, Schedule
from halocline.plan import Traffic, decompose
from halocline.plan.fit import least_thickness


def test_traffic_includes_repetitions_of_loops():
    once, often = (one_field((True, True), star(2, r)).schedule.operations[0] for r in (2, 1))
    field = FieldInfo("u", "float32", (False, False), ((2, 2), (2, 2)))
    loop = Loop(None, None, 0, (), (often,))
    schedule = Schedule(2, (True, True), (field,), (), (once, loop), "")
    assert Traffic.of_schedule(schedule) == Traffic.of([(Footprint.from_offsets(star(2, 1)), 4)], 2)
    assert decompose((64, 64), 4, traffic=Traffic.of_schedule(schedule)).cost == 2 * 4 * 4 * 32
    assert least_thickness(schedule) == (2, 2)
