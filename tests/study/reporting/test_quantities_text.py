"""Numbers as text."""

from __future__ import annotations

from halocline.study.reporting import solves as convergence
from halocline.words import amount, clock, duration, gigabytes, in_seconds
from solve_measurements import measurement, strong


def test_clock_times_have_the_format_of_the_paper():
    """Both forms of each time agree with UMBC HPCF-2018-10, Table 3.1."""
    forms = {
        6.65: "00:00:07", 85.98: "00:01:26", 764.39: "00:12:44", 6393.86: "01:46:34", 52192.29: "14:29:52",
        1195.35: "00:19:55", 9491.42: "02:38:11", 0.0: "00:00:00", 3599.6: "01:00:00",
    }  # fmt: skip
    assert {seconds: clock(seconds) for seconds in forms} == forms


def test_short_times_have_three_digits():
    texts = {
        0.0: "0.00", 4.206e-5: "0.0000421", 0.004212: "0.00421", 0.3: "0.300", 0.9994: "0.999",
        0.9996: "1.00", 1.0: "1.00", 6.65: "6.65", 764.39: "764.39", 52192.29: "52,192.29",
    }  # fmt: skip
    assert {seconds: in_seconds(seconds) for seconds in texts} == texts
    ms = [measurement(64, 1, t, s) for t, s in ((1, 0.00421), (2, 0.0021))] + [measurement(64, 2, 1, 0.0025)]
    wall, ups, _, _, hybrid = strong(ms).tables
    assert [row[1].split() for row in wall.rows] == [["00:00:00", "0.00421"], ["00:00:00", "0.00210"]]
    assert [row[1] for row in ups.rows] == ["1.00", "2.00"]
    assert [row[3] for row in hybrid.rows] == ["0.00210", "0.00250"]
    assert convergence.table(ms[:1]).rows[0][7] == "0.00421"


def test_amounts_are_formatted():
    assert [gigabytes(b) for b in (2**31, 2**28, 2**10, 0)] == ["2.00", "0.250", "< 0.001", "0.000"]
    assert [amount(b) for b in (512, 1536, 2_500_000, 3.2e12)] == ["512 B", "1.54 kB", "2.5 MB", "3200 GB"]
    assert [duration(s) for s in (12.3, 0.0123, 4.5e-6)] == ["12.3 s", "12.3 ms", "4.5 µs"]
