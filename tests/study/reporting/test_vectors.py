"""Report of vector lengths: tables, published rows, and Amdahl's law."""

from __future__ import annotations

from typing import Any

import pytest

from halocline.compile.driver import VECTORS
from halocline.study.reporting.report import Group
from halocline.study.reporting.vectors import CONTENTS, amdahl
from step_measurements import step


def run(bits: int, ns: float, **more: Any) -> dict[str, Any]:
    """Return a measurement with vectors of some length."""
    counts = {"scalar": 2.0, "vector": 1000.0 / bits} if bits > 64 else {"scalar": 100.0, "vector": 0.0}
    own = {"environment": {VECTORS: str(bits)}, "instructions": counts, "ns_per_cell_step": ns}
    return step(**{"shape": [64, 64, 64], **own, **more})


def test_a_share_by_amdahls_law() -> None:
    group = Group([run(bits, 100.0 * (0.35 + 0.65 * 64 / bits)) for bits in (64, 128, 256, 512)])
    assert amdahl(group) == pytest.approx(0.65)
    assert amdahl(Group([run(64, 100.0)])) is None
    assert "0.65 of the time proportional to 1 / bits" in " ".join(CONTENTS.said(group))
    slower = Group([run(64, 100.0), run(128, 110.0)])
    assert "no share by Amdahl's law: -0.20" in " ".join(CONTENTS.said(slower))


def test_a_row_for_each_length_then_what_is_published() -> None:
    group = Group([run(512, 40.0, share_of_peak=0.1), run(64, 100.0, share_of_peak=0.04)])
    (table,) = CONTENTS.tables(group)
    scalar, vector = table.rows[:2]
    assert (scalar[0], vector[0]) == ("64", "512")
    assert scalar[4:] == ("1.00", f"{100 * 64**3 * 100 * 1e-9:.3g}", "0", "4%", "8%")
    assert vector[3:5] == ("0.0105", "2.50")
    assert vector[-2:] == ("10%", "20%")
    published = table.rows[2:]
    assert [row[1] for row in published] == [
        "CCE 8.5.4 (scalar)",
        "CCE 8.5.4",
        "Intel 17.0.1.132",
        "GNU 6.2.0",
    ]
    assert published[1][3:] == ("0.96", "", "20", "74", "", "14.1%")
    assert CONTENTS.figures["vectors.png"](group) is not None


def test_on_all_cores_figure_3_is_published() -> None:
    group = Group([run(64, 100.0, threads=2), run(512, 50.0, threads=2, instructions=None)])
    (table,) = CONTENTS.tables(group)
    assert table.rows[1][5:7] == ("", "")
    assert [row[4] for row in table.rows[2:]] == ["about 2", "almost 2.5"]
