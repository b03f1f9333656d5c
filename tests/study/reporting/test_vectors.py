"""Report of vector lengths: tables, published rows, and Amdahl's law."""

from __future__ import annotations

from typing import Any

import pytest

from halocline.compile.cxx import VECTORS
from halocline.study.reporting.report import Group
from halocline.study.reporting.vectors import CONTENTS, amdahl
from step_measurements import step


def run(bits: int, ns: float, **more: Any) -> dict[str, Any]:
    """Return a measurement with vectors of some length."""
    counts = {"scalar": 2.0, "vector": 1000.0 / bits} if bits > 64 else {"scalar": 100.0, "vector": 0.0}
    facts = {"environment": {VECTORS: str(bits)}, "instructions": counts, "ns_per_cell_step": ns}
    return step(**{"shape": [64, 64, 64], **facts, **more})


def compiler(path: str, version: str) -> dict[str, Any]:
    """Return facts of a machine with some compiler."""
    return {**step()["machine"], "compiler": path, "compiler_version": version}


def test_the_vector_share_follows_from_amdahls_law() -> None:
    group = Group([run(bits, 100.0 * (0.35 + 0.65 * 64 / bits)) for bits in (64, 128, 256, 512)])
    assert amdahl(group) == pytest.approx(0.65)
    assert amdahl(Group([run(64, 100.0)])) is None
    assert "by Amdahl's law, 0.65 of the time is proportional to 1 / bits" in " ".join(
        CONTENTS.sentences(group)
    )
    slower = Group([run(64, 100.0), run(128, 110.0)])
    words = (
        "do not follow Amdahl's law, because the share of the time proportional to 1 / bits would be -0.20."
    )
    assert words in " ".join(CONTENTS.sentences(slower))


def test_tables_show_each_length_before_published_rows() -> None:
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


@pytest.mark.parametrize(
    ("path", "version", "words"),
    [
        ("/usr/bin/g++", "g++ (Debian 12.2.0-14+deb12u1) 12.2.0", "g++ 12.2.0"),
        ("clang++", "Debian clang version 14.0.6", "clang++ 14.0.6"),
        ("/opt/icpx", "Intel(R) oneAPI DPC++/C++ Compiler 2023.0.0 (2023.0.0.20221201)", "icpx 2023.0.0"),
        ("g++", "g++ (GCC) 13.2.1 20231011 (Red Hat 13.2.1-1)", "g++ 13.2.1"),
    ],
)
def test_a_compiler_has_its_name_and_version(path: str, version: str, words: str) -> None:
    (table,) = CONTENTS.tables(Group([run(64, 100.0, machine=compiler(path, version))]))
    assert table.rows[0][1] == words


def test_each_compiler_has_a_sentence_and_a_line() -> None:
    first, second = compiler("g++", "g++ 12.2.0"), compiler("clang++", "clang version 14.0.6")
    runs = [run(64, 100.0, machine=first), run(128, 75.0, machine=first)]
    runs += [run(64, 100.0, machine=second), run(128, 100.0, machine=second, instructions=None)]
    report_text = " ".join(CONTENTS.sentences(Group(runs)))
    assert "g++ 12.2.0: by Amdahl's law, 0.50 of the time" in report_text
    assert "clang++ 14.0.6: by Amdahl's law, 0.00 of the time" in report_text
    assert "The instructions of some runs are not counted. Counting requires objdump" in report_text
    assert "not counted" not in " ".join(CONTENTS.sentences(Group(runs[:2])))
    figure = CONTENTS.figures["vectors.png"](Group(runs))
    assert figure is not None
    labels = [line.get_label() for line in figure.axes[0].lines]
    assert [text.rpartition(", ")[2] for text in labels if "+" in text] == ["clang++ 14.0.6", "g++ 12.2.0"]


def test_results_on_all_cores_are_compared_with_figure_3() -> None:
    group = Group([run(64, 100.0, threads=2), run(512, 50.0, threads=2, instructions=None)])
    (table,) = CONTENTS.tables(group)
    assert table.rows[1][5:7] == ("", "")
    assert [row[4] for row in table.rows[2:]] == ["about 2", "almost 2.5"]
