"""Strong scaling compared with the paper."""

from __future__ import annotations

import pytest

from case_measurements import halocline, measurement, report_of, sides, strong
from halocline.study.measurement import Measurement
from halocline.study.reporting.columns import SAME_BITS
from halocline.study.reporting.report import Group
from halocline.study.reporting.theory import Theory
from halocline.study.studies.strong import STEPS
from suites import cases

# -- tables --------------------------------------------------------------------------------------------


def test_strong_scaling_is_compared_with_the_paper():
    theory = Theory({6: sides()}, 1e-12, 2)
    small, large, summary, against = report_of(STEPS, strong(), theory).tables
    assert small.heading.startswith("256³: 16,777,216 cells, mhd-benchmark, order 6, rk3")
    assert [row[:6] for row in small.rows] == [
        ("1 rank of 1 thread", "1", "8", "8", "8", "100%"),
        ("1 rank of 2 threads", "2", "4", "4", "4", "100%"),  # 1/π is of a rank
        ("2 ranks of 1 thread", "2", "5", "4", "4", "80%"),
    ]
    assert [row[6] for row in small.rows] == ["1.00", "2.00", "1.60"]  # speed-up
    assert [row[7] for row in small.rows] == ["100%", "100%", "80%"]
    assert len(large.rows) == 2
    assert summary.rows[0] == ("256³", "this machine", "2 cores", "8", "4", "100%", "100%")
    assert summary.muted == (2, 3, 4)
    assert [(row[0], row[2], row[5], row[6]) for row in summary.rows[2:]] == [
        ("256³", "64 V100", "18%", "50%"),
        ("512³", "64 V100", "43%", "59%"),
        ("1024³", "64 V100", "87%", "87%"),
    ]
    # the Pencil Code: 44 to 53 times 0.53 ns on a node
    assert against.title == "Comparison with the Pencil Code"
    assert against.rows[0] == ("256³", "this machine", "2 cores", "4", "5.8–7", "")
    assert [row[1:4] for row in against.rows[2:4]] == [
        ("paper", "4 V100", "0.53"),
        ("Pencil Code", "40 cores", "23.3–28.1"),
    ]
    assert "the published speed-up is 18–53." in against.note.replace("\n", " ")
    (*_, rates) = report_of(
        STEPS, [measurement(150.0, n=64), measurement(80.0, n=64, ranks=2)], theory
    ).tables
    assert rates.rows[0][4:] == ("0.29–0.35", "8.3")  # 1330 ns over two times 80
    # efficiency is t_1 / (p t_p)
    assert float(summary.rows[2][4]) == pytest.approx(2.2 / 64 / 0.18, rel=0.01)
    sentences = report_of(STEPS, strong(), theory).sentences
    assert sentences[1] == (
        "512³: fastest with 2 ranks of 1 thread, 4.4 ns per cell and step: 1.82 times as fast as 1 rank of "
        "1 thread, 91% of the speed of the formula."
    )


def test_energy_follows_from_the_design_power():
    result = [measurement(8.0, watts=100.0), measurement(5.0, ranks=2, watts=100.0)]
    table = report_of(STEPS, result, Theory({6: sides()}, 1e-12, 2)).tables[0]
    assert table.heads[-1] == "million cells per\njoule, 100 W each"
    assert [row[-1] for row in table.rows] == ["1.25", "1"]


@cases("watts", ["0", "-1", "nan", "inf", "many"], default=["0", "nan"])
def test_the_design_power_must_be_positive(watts: str, tmp_path):
    result = halocline(f"study strong mhd-benchmark --n 16 --watts {watts}", tmp_path)
    assert result.returncode == 2
    assert f"--watts {watts}: expected a power in watts above 0" in result.stderr


def test_other_problems_are_not_compared_with_the_paper():
    theory = Theory({4: sides(), 6: sides()}, 1e-12, 2)
    for other in ({"order": 4}, {"case": "convection"}):
        assert report_of(STEPS, [measurement(8.0, **other)], theory).tables[-1].muted == ()


def same_bits(measurements: list[Measurement]) -> list[str]:
    """Return the sentences that compare the bits of runs of the same problem."""
    return list(SAME_BITS.sentences(Group(measurements)))


def test_equal_problems_must_have_equal_bits():
    same, other = measurement(1.0), measurement(1.0, ranks=2, checksum="1" * 32)
    assert same_bits([same, measurement(2.0, ranks=2)])[0].endswith(
        f"all with the same bits: checksum {'0' * 32}."
    )
    assert same_bits([same, other]) == [
        "256³, order 6, 10 steps: 2 runs gave 2 different results; please report this as a bug."
    ]
    # other orders or sizes are other problems; parts have no result
    assert (
        same_bits([same, measurement(1.0, order=4, checksum="1"), measurement(1.0, n=64, checksum="2")]) == []
    )
    assert same_bits([same, measurement(1.0, only="compute", checksum=None)]) == []


# -- studies -------------------------------------------------------------------------------------------
