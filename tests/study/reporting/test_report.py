"""Studies: tables, pages and explanations; the measurements themselves are made by the real command."""

from __future__ import annotations

import csv
import io
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from halocline.study.measuring.command import csv_text
from halocline.study.reporting import solves as convergence
from halocline.study.reporting.page import facts_of_measurements, page
from halocline.study.reporting.report import Report
from solve_measurements import measurement, strong

# -- tables --------------------------------------------------------------------------------------------------


def test_csv_has_a_line_per_run_and_the_facts():
    rows = list(csv.DictReader(io.StringIO(csv_text([measurement(64), measurement(128, seconds=2.5)]))))
    assert [(r["n"], r["seconds"], r["host"], r["omp_proc_bind"], r["omp_places"]) for r in rows] == [
        ("64", "1.0", "h", "close", ""),
        ("128", "2.5", "h", "close", ""),
    ]
    assert {"compiler_version", "mpi_version", "commit", "checksum", "ranks", "threads", "method"} <= set(
        rows[0]
    )


# -- pages ---------------------------------------------------------------------------------------------------


class Checker(HTMLParser):
    """Parser that fails on an element that is not closed, and stores all references to other files."""

    VOID = ("meta", "img", "br")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.outside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        self.outside += [
            v for k, v in attrs if k in ("src", "href") and v and not v.startswith(("data:", "#"))
        ]
        self.outside += [tag] * (tag in ("script", "link", "iframe"))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("kind", ["convergence", "strong"])
def test_page_is_complete_in_itself(kind, tmp_path):
    picture = tmp_path / "p.png"
    picture.write_bytes(b"\x89PNG")
    ms = [measurement(512), measurement(1024, ranks=2, seconds=0.7)]
    facts, commands = facts_of_measurements(ms), [m["command"] for m in ms]
    if kind == "strong":
        result = strong(ms)
        figures = list(result.figures().values())
    else:
        result, figures = Report([convergence.table(ms)], convergence.verdicts(ms)), [convergence.plot(ms)]
    texts = {"title": "A <title>", "lead": "lead", "command": "a & b"}
    text = page(result, figures, [picture], facts=facts, commands=commands, **texts)
    checker = Checker()
    checker.feed(text)
    assert checker.open == []
    assert checker.outside == []
    assert "A &lt;title&gt;" in text
    assert "c &lt;&amp;&gt;" in text
    assert "a &amp; b" in text
    for table in result.tables:
        assert all(cell.split()[0] in text for row in table.rows for cell in row if cell)
    svg = text[text.index("<svg") : text.index("</svg>") + 6]
    assert len(ElementTree.fromstring(svg).findall(".//*")) > 50
    assert "sans-serif" not in svg  # its text has the font of the page
