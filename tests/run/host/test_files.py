"""Files that a command writes: they keep permissions, links and names, and each lost output is an error."""

from __future__ import annotations

import json
import os
import re
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import preloaded
from halocline.errors import RunError
from halocline.run.host import files
from halocline.run.host.files import not_writable_reason, write_file
from hang import HANG
from shells import RUN, in_shell
from suites import cases


def check(path: Path) -> None:
    """Write to a path that may be written."""
    assert not_writable_reason(path) == ""
    write_file(path, "new")
    assert not list(path.parent.glob(".halocline-*"))


def test_a_plain_file_is_replaced_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text("old")
    path.chmod(0o600)
    before = path.stat().st_ino
    with path.open() as reader:
        check(path)
        assert reader.read() == "old"  # a reader sees all of the old or all of the new file
    status = path.stat()
    assert (path.read_text(), stat.S_IMODE(status.st_mode)) == ("new", 0o600)
    assert status.st_ino != before


def test_a_new_file_has_the_mode_of_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        check(tmp_path / "deep" / "er" / "r.json")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "deep" / "er" / "r.json").stat().st_mode) == 0o640


@pytest.mark.parametrize("exists", [True, False])
def test_links_are_followed(tmp_path: Path, exists: bool) -> None:
    (tmp_path / "away").mkdir()
    target, link = tmp_path / "away" / "target", tmp_path / "link"
    link.symlink_to("middle")
    (tmp_path / "middle").symlink_to(Path("away") / "target")
    if exists:
        target.write_text("old")
    check(link)
    assert link.is_symlink()
    assert (tmp_path / "middle").is_symlink()
    assert target.read_text() == "new"


def test_hard_links_are_preserved(tmp_path: Path) -> None:
    path, other = tmp_path / "r.json", tmp_path / "other"
    path.write_text("a longer old text")
    other.hardlink_to(path)
    check(path)
    assert other.read_text() == "new"
    assert path.stat().st_nlink == 2


def test_a_pipe_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    assert not_writable_reason(pipe) == ""

    def late() -> None:
        time.sleep(0.3)
        read.append(pipe.read_bytes())

    reader = threading.Thread(target=late)
    reader.start()
    large = bytes(1 << 20)  # more than the capacity of a pipe
    write_file(pipe, large)
    reader.join(HANG)
    assert read == [large]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    monkeypatch.setattr(files, "PATIENCE", 0.2)
    with pytest.raises(RunError, match=r"pipe: no process read the pipe within 0.2 seconds"):
        write_file(pipe, "new")


def test_a_file_keeps_its_group_and_the_rights_of_users(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.touch(mode=0o640)
    if os.geteuid() == 0:
        os.chown(path, -1, 4242)
    group = path.stat().st_gid
    check(path)
    assert (path.stat().st_gid, stat.S_IMODE(path.stat().st_mode)) == (group, 0o640)
    # version 2: owner, user 4243, group, mask, others
    entries = [(1, 6, -1), (2, 6, 4243), (4, 4, -1), (16, 6, -1), (32, 0, -1)]
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
    try:
        os.setxattr(path, "system.posix_acl_access", acl)
    except OSError:
        return  # a file system without access control lists
    check(path)
    assert os.getxattr(path, "system.posix_acl_access") == acl


def test_a_mounted_file_is_written_in_place(tmp_path: Path) -> None:
    private = ["unshare", "--user", "--map-root-user", "--mount"]
    if subprocess.run([*private, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount anything")
    for name in ("inside", "outside"):
        (tmp_path / name).write_text("an old text that is longer")
    mount = f'mount --bind {tmp_path}/outside {tmp_path}/inside && exec "$@"'
    text = f"""if True:
    from pathlib import Path
    from halocline.run.host.files import not_writable_reason, write_file
    path = Path({str(tmp_path)!r}, "inside")
    assert not_writable_reason(path) == ""
    write_file(path, "new")
    """
    subprocess.run([*private, "sh", "-c", mount, "sh", sys.executable, "-c", text], check=True, timeout=HANG)
    assert (tmp_path / "outside").read_text() == "new"
    assert sorted(os.listdir(tmp_path)) == ["inside", "outside"]


def test_a_socket_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # names of sockets must be short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("s")
        assert not_writable_reason(Path("s")) == "it is a socket"


@cases("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"], default=["/dev/stdout"])
def test_an_open_stream_is_written_at_its_position(tmp_path: Path, name: str) -> None:
    line = f"{{ echo before; halocline {RUN} --json {name}; echo after; }} >> log"
    (tmp_path / "log").write_text("earlier\n")
    status, _, err = in_shell(line, tmp_path)
    assert status == 0, err
    text = (tmp_path / "log").read_text()
    assert text.startswith("earlier\nbefore\n")
    assert text.endswith("}\nafter\n")
    printed, record = text[: text.index("{")], text[text.index("{") : text.rindex("}") + 1]
    assert re.search(rf"^checksum +{json.loads(record)['checksum']}$", printed, re.MULTILINE)


def test_device_files_are_not_replaced() -> None:
    check(Path(os.devnull))
    with pytest.raises(RunError, match="cannot write /dev/full: No space left on device"):
        write_file(Path("/dev/full"), "new")
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


def test_unwritable_files_are_detected_before_the_run(tmp_path: Path) -> None:
    assert not_writable_reason(tmp_path) == "it is a folder"
    (tmp_path / "file").touch()
    assert not_writable_reason(tmp_path / "file" / "below") == "Not a directory"
    assert not_writable_reason(tmp_path / ("n" * 300)) == "File name too long"
    (tmp_path / "loop").symlink_to("loop")
    assert not_writable_reason(tmp_path / "loop") == "Too many levels of symbolic links"
    longest = tmp_path / ("n" * 250)  # the temporary file must not have a longer name
    check(longest)


def test_a_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.json"
    path.write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(RunError, match="No space left on device"):
        write_file(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["r.json"]


@pytest.mark.parametrize("ranks", [1, 2])
def test_results_of_a_command_follow_symbolic_links(tmp_path: Path, ranks: int) -> None:
    (tmp_path / "kept").mkdir()
    names = ["r.json", "s.csv", "t.json"]
    for name in names:
        (tmp_path / "kept" / name).touch(mode=0o600)
        (tmp_path / name).symlink_to(Path("kept") / name)
    line = f"{RUN} --ranks {ranks} --every 1 --json r.json --csv s.csv --trace t.json"
    done = preloaded.halocline(*line.split(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for name in names:
        assert (tmp_path / name).is_symlink()
        status = (tmp_path / "kept" / name).stat()
        assert status.st_size > 0
        assert stat.S_IMODE(status.st_mode) == 0o600
    assert json.loads((tmp_path / "kept" / "r.json").read_text())["steps"] == 1
