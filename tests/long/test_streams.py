"""The output of commands is complete, or its loss is an error."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from shells import RUN, in_shell


def printed_checksum(out: str) -> str:
    """Return the checksum that a run printed."""
    (line,) = (line for line in out.splitlines() if "checksum" in line)
    return line


@pytest.mark.parametrize("redirection", ["2>&-", "2> /dev/full"])
@pytest.mark.parametrize("ranks", [1, 2])
def test_a_lost_warning_does_not_lose_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ranks: int, redirection: str
) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setenv("HALOCLINE_CACHE", str(cache))
    status, out, _ = in_shell(f"halocline {RUN}", tmp_path)
    assert status == 0
    expected = printed_checksum(out)
    libraries = list(cache.glob("*.so"))
    assert libraries
    for library in libraries:
        library.write_bytes(b"")
    status, out, _ = in_shell(f"halocline {RUN} --ranks {ranks} {redirection}", tmp_path)
    assert (status, printed_checksum(out)) == (1, expected)


def test_results_are_printed_before_a_failed_write_of_a_file(tmp_path: Path) -> None:
    for line in ("solve poisson --n 16", RUN, "bench exchange --n 4 --repeat 1"):
        status, out, err = in_shell(f"halocline {line} --json /dev/full", tmp_path)
        assert status == 1
        assert len(out.splitlines()) > 3, out
        assert err == "halocline: error: cannot write /dev/full: No space left on device\n"


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_closed_error_stream_loses_no_results(tmp_path: Path, ranks: int) -> None:
    status, out, _ = in_shell(f"halocline {RUN} --ranks {ranks} 2>&-", tmp_path)
    assert status == 0
    alone = out
    # the message about a file is lost, so the status reports it; the file and the output are complete
    status, out, _ = in_shell(f"halocline {RUN} --ranks {ranks} --json r.json 2>&-", tmp_path)
    assert status == 1
    record = json.loads((tmp_path / "r.json").read_text())
    assert record["steps"] == 1
    line = re.compile(rf"^checksum +{record['checksum']}$", re.MULTILINE)
    assert line.search(alone)
    assert line.search(out)
    status, out, _ = in_shell(f"halocline {RUN} --ranks {ranks} --order 3 2>&-", tmp_path)
    assert (status, out) == (2, "")
    assert in_shell(f"halocline {RUN} --ranks {ranks} <&-", tmp_path)[0] == 0
