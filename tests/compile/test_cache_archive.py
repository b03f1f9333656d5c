"""Archives of compiled code: another machine runs it without a compiler, and damage is detected."""

from __future__ import annotations

import io
import os
import re
import tarfile
from pathlib import Path

import pytest

from halocline.cli.app import run as command
from halocline.compile.cache import cache_folder
from halocline.compile.cache_archive import Contents, contents, export_code, import_code
from halocline.compile.driver import compile_library
from halocline.errors import CompileError, InputError

SOURCE = '#include "halocline/abi.h"\nextern "C" int answer() { return 42; }\n'


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an archive with one library. The current cache is empty, and there is no compiler."""
    monkeypatch.setenv("HALOCLINE_CACHE", str(tmp_path / "first"))
    compile_library(SOURCE)
    (tmp_path / "first" / "tuned.json").write_text("{}")
    exported = export_code(tmp_path / "code.tar.gz")
    assert exported == contents()
    assert exported.files == 1
    monkeypatch.setenv("HALOCLINE_CACHE", str(tmp_path / "second"))
    monkeypatch.setenv("CXX", "/nowhere/c++")
    with pytest.raises(CompileError, match="no C"):
        compile_library(SOURCE)
    return tmp_path / "code.tar.gz"


def test_imported_code_needs_no_compiler(archive: Path) -> None:
    assert import_code(archive) == contents()
    library = compile_library(SOURCE)
    assert library.parent == cache_folder()
    assert sorted(file.name for file in library.parent.iterdir()) == [library.name, f"{library.name}.sha256"]
    assert import_code(archive) == contents()  # again


def test_code_is_imported_with_a_permissive_umask(archive: Path) -> None:
    before = os.umask(0)
    try:
        assert import_code(archive) == contents()
    finally:
        os.umask(before)
    assert contents().files == 1
    assert compile_library(SOURCE).parent == cache_folder()


def test_reports_on_cuda_code_are_part_of_an_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from halocline.compile.cache import publish

    cache = tmp_path / "cache"
    monkeypatch.setenv("HALOCLINE_CACHE", str(cache))
    cache.mkdir()
    code = cache / f"{'0' * 32}-12.9.cubin"
    (cache / "new").write_bytes(b"code")
    publish(cache / "new", code)
    code.with_suffix(".log").write_text("registers")
    export_code(tmp_path / "code.tar")
    for file in cache.iterdir():
        file.unlink()
    assert import_code(tmp_path / "code.tar") == Contents(1, 4)
    assert code.with_suffix(".log").read_text() == "registers"


def changed(archive: Path, name_ends: str, content: bytes | None) -> None:
    """Replace a member of an archive, or remove it."""
    with tarfile.open(archive) as before:
        members = {m.name: before.extractfile(m).read() for m in before}  # type: ignore[union-attr]
    (name,) = [name for name in members if name.endswith(name_ends)]
    with tarfile.open(archive, "w:gz") as after:
        for member, data in members.items():
            if member == name and content is None:
                continue
            info = tarfile.TarInfo(member)
            data = content if member == name and content is not None else data
            info.size = len(data)
            after.addfile(info, io.BytesIO(data))


@pytest.mark.parametrize(
    ("name", "content"), [(".so", b"other code"), (".so", b""), (".sha256", b"\xff"), (".sha256", None)]
)
def test_damaged_archives_are_rejected(archive: Path, name: str, content: bytes | None) -> None:
    changed(archive, name, content)
    with pytest.raises(InputError, match=r"code\.tar\.gz is damaged: \w+-.*\.so does not match its digest"):
        import_code(archive)
    assert not cache_folder().exists()


def test_members_outside_the_cache_are_not_written(archive: Path, tmp_path: Path) -> None:
    for name in ("../escaped.so", "/tmp/escaped.so", "kernels.so"):
        other = tmp_path / "other.tar"
        with tarfile.open(other, "w") as opened:
            info = tarfile.TarInfo(name)
            info.size = 4
            opened.addfile(info, io.BytesIO(b"code"))
        with pytest.raises(InputError, match=r"other\.tar contains no compiled code; expected an archive of"):
            import_code(other)
    assert not (tmp_path / "escaped.so").exists()


@pytest.mark.parametrize("suffix", ["tar.gz", "tar.xz"])
def test_damaged_code_is_never_imported(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Damage of the padding at the end is not detected, but the code is then complete."""
    monkeypatch.setenv("HALOCLINE_CACHE", str(tmp_path / "cache"))
    library = compile_library(SOURCE)
    export_code(tmp_path / f"code.{suffix}")
    content = (tmp_path / f"code.{suffix}").read_bytes()
    damaged, messages = tmp_path / f"damaged.{suffix}", []
    for number, place in enumerate(range(20, len(content) - 20, len(content) // 40)):
        monkeypatch.setenv("HALOCLINE_CACHE", str(tmp_path / f"cache-{number}"))
        flipped = bytes(byte ^ 0xFF for byte in content[place : place + 8])
        for wrong in (content[:place] + flipped + content[place + 8 :], content[:place]):
            damaged.write_bytes(wrong)
            try:
                import_code(damaged)
            except InputError as error:
                messages.append(str(error))
            else:
                assert (cache_folder() / library.name).read_bytes() == library.read_bytes()
    assert len(messages) >= 40
    expected = re.compile(r"cannot be read as an archive|is damaged|contains no compiled code")
    assert all(map(expected.search, messages))


def test_an_export_that_fails_keeps_the_earlier_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HALOCLINE_CACHE", str(tmp_path / "cache"))
    compile_library(SOURCE)
    target = tmp_path / "code.tar"
    target.write_bytes(b"earlier")

    def fails(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(tarfile.TarFile, "addfile", fails)
    with pytest.raises(OSError, match="disk full"):
        export_code(target, overwrite=True)
    assert target.read_bytes() == b"earlier"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "code.tar"]


@pytest.mark.parametrize("content", [b"", b"no archive", None])
def test_files_that_are_no_archives_are_rejected(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "file.tar"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InputError, match=r"file\.tar cannot be read as an archive of compiled code"):
        import_code(file)


def test_an_empty_cache_and_wrong_names_are_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALOCLINE_CACHE", str(tmp_path / "empty"))
    with pytest.raises(InputError, match=r"expected a file name that ends in \.tar, \.tar\.gz or \.tar\.xz"):
        export_code(tmp_path / "code.zip")
    with pytest.raises(InputError, match="has no compiled code to export; run a program first"):
        export_code(tmp_path / "code.tar")
    assert not (tmp_path / "code.tar").exists()


def test_the_commands(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["cache", "import", str(archive)]) == 0
    assert command(["cache", "info"]) == 0
    *_, added, report = capsys.readouterr().out.splitlines()
    assert added.startswith(f"{archive}: 1 file of compiled code, ")
    assert report.startswith(f"{cache_folder()}: 1 file of compiled code, ")
    again = archive.with_name("again.tar")
    assert command(["cache", "export", str(again)]) == 0
    with pytest.raises(InputError, match=r"again\.tar exists; use another name, or --overwrite"):
        command(["cache", "export", str(again)])
    assert command(["cache", "export", str(again), "--overwrite"]) == 0
    assert os.path.getsize(again) > contents().bytes
