"""Shared-memory segments: sufficient space for the start of MPI, and files of earlier runs."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from halocline.errors import RunError
from halocline.run.host import segments


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that replaces /dev/shm."""
    monkeypatch.setattr(segments, "FOLDER", tmp_path)
    monkeypatch.delenv("UCX_TLS", raising=False)
    return tmp_path


def start(ranks: int, free: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prepare the start of the given number of ranks with the given number of free bytes."""
    monkeypatch.setattr(segments, "room", lambda: free)
    segments.prepare({"MPI_LOCALNRANKS": str(ranks)})


def test_one_rank_reports_for_its_node() -> None:
    assert segments.first_of_node(3, {"MPI_LOCALRANKID": "0"})
    assert not segments.first_of_node(0, {"MPI_LOCALRANKID": "1"})
    assert segments.first_of_node(0, {})
    assert not segments.first_of_node(2, {})


def test_too_little_shared_memory_is_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RunError, match=f"2114688 bytes of shared memory for 2 ranks, but {folder} has 99 "):
        start(2, 99, monkeypatch)
    assert segments.lack(1, segments.NEEDED) == ""
    assert "for 1 rank," in segments.lack(1, segments.NEEDED - 1)


def test_scarce_shared_memory_is_left_to_mpi(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start(1, segments.TAKEN, monkeypatch)
    assert "UCX_TLS" not in os.environ
    start(1, segments.NEEDED, monkeypatch)
    assert os.environ["UCX_TLS"] == "^posix"


def test_segments_of_this_run_count_as_available(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new, old = folder / "mpich_new", folder / "mpich_old"
    for path in (new, old):
        path.write_bytes(bytes(2 * segments.NEEDED))
    before = time.time() - 2 * segments.START
    os.utime(old, (before, before))
    start(2, 4096, monkeypatch)
    new.unlink()
    with pytest.raises(RunError, match="has 4096 bytes available"):
        start(2, 4096, monkeypatch)


def test_other_launchers_and_systems_are_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "FOLDER", Path("/no/such/folder"))
    assert segments.room() is None
    segments.prepare({"MPI_LOCALNRANKS": "4"})
    monkeypatch.setattr(segments, "room", lambda: 1)
    segments.prepare({})
