"""Tables of papers, and what is predicted beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from halocline.study.registry import papers
from step_measurements import found


def _predicted(name: str, **where: Any) -> list[dict[str, Any]]:
    own = papers()[name]
    rows = [row for row in own.places_of(None, None) if all(row[key] in each for key, each in where.items())]
    return own.predict(rows, own.there(None))  # type: ignore[arg-type]


def test_the_ranks_of_a_node_share_its_memory() -> None:
    times = [row["predicted"] for row in _predicted("cavity-fig5", scaling=("strong",))]
    assert times == sorted(times)


def test_a_paper_is_measured_here_too(tmp_path: Path) -> None:
    words = ["study", "paper", "umbc-4.1", "--n", "1024", "--nodes", "1", "--html", "p.html"]
    told = found(*words, "--not-here", "--pictures", "drawn", cwd=tmp_path)
    assert (tmp_path / "drawn" / "umbc-4.1.png").stat().st_size > 10_000
    assert "Kritesh Arora" in (tmp_path / "p.html").read_text()
    assert {row["ranks_per_node"] for row in told["places"]} == {1, 2, 4, 8, 16, 32}
    assert all(row["predicted"] > 0 for row in told["places"])
    measured = found(
        "study", "paper", "wombat-fig9", "--ranks", "1", "--threads", "1", "--html", "w.html", cwd=tmp_path
    )
    assert {m["schedule"] for m in measured["measurements"]} == {"guided", "static"}
    assert "Mendygral" in (tmp_path / "w.html").read_text()
