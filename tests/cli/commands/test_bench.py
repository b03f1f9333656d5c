"""The command `halocline bench`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from halocline.cli.app import run
from halocline.errors import InputError
from halocline.study.measuring.exchange import PASSES
from step_measurements import run_json


def test_the_command_measures_an_exchange(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    record = tmp_path / "exchange.json"
    line = f"bench exchange --n 24 --fields 2 --repeat 2 --threads 1 --no-corners --json {record}"
    assert run(line.split()) == 0
    assert "Exchange of 2 float32 fields of 24x24x24 cells, radius 3, sides" in capfd.readouterr().out
    record_data = json.loads(record.read_text())
    assert record_data["bytes_by_method"] == {"self": 6 * 24 * 24 * 3 * 2 * 4}
    with pytest.raises(InputError, match="scaling 'big' is unknown"):
        run([*line.split(), "--scaling", "big"])


def test_a_complete_grid_shape_is_accepted(tmp_path: Path) -> None:
    record = tmp_path / "exchange.json"
    line = f"bench exchange --n 12,8,10 --fields 1 --repeat 1 --threads 1 --json {record}"
    assert run(line.split()) == 0
    record_data = json.loads(record.read_text())
    assert (record_data["shape"], record_data["scaling"], record_data["trace"]) == (
        [12, 8, 10],
        "strong",
        None,
    )
    for more, words in (
        ("--scaling weak", "--scaling weak: --n 12,8,10 sets the whole grid. Leave --scaling out."),
        ("--dim 2", "--n 12,8,10: expected one number, or 2 numbers for --dim 2"),
        ("--timeline t.png", "--timeline t.png: the timeline shows the trace. Add --trace FILE."),
        ("--placement near", "placement 'near' is unknown; known: aware, trivial, random"),
    ):
        with pytest.raises(InputError, match=re.escape(words)):
            run([*line.split(), *more.split()])


def test_a_trace_is_drawn(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    files = f"--trace {tmp_path / 't.json'} --timeline {tmp_path / 't.png'} --json {tmp_path / 'r.json'}"
    line = f"bench exchange --n 12 --fields 1 --repeat 1 --threads 1 --subdomains-per-rank 2 {files}"
    assert run(line.split()) == 0
    assert re.search(
        r"^trace +packing or unpacking 0% of the time, 1.00 simultaneous op", capfd.readouterr().out, re.M
    )
    assert (tmp_path / "t.png").stat().st_size > 5000
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert sum(e.get("cat") == "copy" for e in events) >= PASSES
    shares = json.loads((tmp_path / "r.json").read_text())["trace"]
    assert shares["launching"] == 0


def test_one_rank_sends_messages_to_itself_by_mpi(tmp_path: Path) -> None:
    words = "bench exchange --n 8 --fields 1 --repeat 1 --threads 1 --ranks 1 --methods mpi"
    record_data = run_json(*words.split(), cwd=tmp_path)
    assert (record_data["ranks"], list(record_data["bytes_by_method"])) == (1, ["mpi"])
