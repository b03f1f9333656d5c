"""The output of commands is complete, or its loss is an error."""

from __future__ import annotations

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
