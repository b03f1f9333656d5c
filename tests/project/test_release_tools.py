"""Tools of a release: its version, the notes of a version, and the documentation of several versions."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from source import ROOT

CHANGELOG = """# Changelog

All changes.

## [Unreleased]

### Added

- A new option.

## [0.2.0] - 2027-01-31

### Fixed

- A fault, see [the guide](guide.md).

## 0.1.0

## [0.0.1]

- First version.

[0.2.0]: https://example.org/0.2.0
"""


def run(tool: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "tools" / tool, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def changelog(tmp_path: Path) -> Path:
    path = tmp_path / "CHANGELOG.md"
    path.write_text(CHANGELOG)
    return path


@pytest.mark.parametrize(
    ("version", "notes"),
    [
        ("Unreleased", "### Added\n\n- A new option.\n"),
        ("0.2.0", "### Fixed\n\n- A fault, see [the guide](guide.md).\n"),
        ("v0.2.0", "### Fixed\n\n- A fault, see [the guide](guide.md).\n"),
        ("0.0.1", "- First version.\n"),
    ],
)
def test_the_notes_are_the_section_of_the_version(version, notes, changelog):
    done = run("release_notes.py", version, changelog)
    assert (done.returncode, done.stdout, done.stderr) == (0, notes, "")


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("0.3.0", "no section of version 0.3.0. Existing sections: Unreleased, 0.2.0, 0.1.0, 0.0.1"),
        ("0.2", "no section of version 0.2. Existing sections"),
        ("0.1.0", "the section of version 0.1.0 in the changelog is empty"),
    ],
)
def test_a_version_without_notes_is_an_error(version, message, changelog):
    done = run("release_notes.py", version, changelog)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_the_changelog_of_the_project_has_notes():
    assert "### Added" in run("release_notes.py", "Unreleased").stdout


def test_a_missing_changelog_or_version_is_an_error(tmp_path):
    assert "No such file" in run("release_notes.py", "0.1.0", tmp_path / "absent.md").stderr
    assert "release_notes.py VERSION" in run("release_notes.py").stderr


def test_a_release_is_a_tagged_commit_with_its_version_in_the_citation(tmp_path):
    def git(*arguments: str) -> None:
        of_user = ("-c", "user.name=a", "-c", "user.email=a")
        subprocess.run(["git", *of_user, *arguments], cwd=tmp_path, check=True, capture_output=True)

    def release() -> str:
        done = subprocess.run(
            [sys.executable, tmp_path / "tools" / "release.py"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 1
        return done.stderr

    (tmp_path / "tools").mkdir()
    for name in ("release.py", "release_notes.py", "wheels.py"):
        shutil.copy(ROOT / "tools" / name, tmp_path / "tools")
    (tmp_path / "CITATION.cff").write_text("version: 0.1.0\n")
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "--message", "All")
    assert "HEAD has 0 tags of versions; a release has one" in release()
    git("tag", "v0.2.0")
    git("tag", "other")
    (tmp_path / "CITATION.cff").write_text("version: 0.1.0")
    lines = release().splitlines()
    assert lines[0] == "this is not release 0.2.0:"
    assert "the source folder has changes: commit or remove them" in lines
    assert "CITATION.cff has another version; expected version: 0.2.0" in lines
    git("tag", "v0.3.0")
    assert "HEAD has 2 tags of versions" in release()


def test_versions_of_the_documentation_are_listed_newest_first(tmp_path):
    built, folder = tmp_path / "built", tmp_path / "versions"
    (built / ".doctrees").mkdir(parents=True)
    for version in ("0.9.0", "main", "0.10.0", "0.10.0rc1", "v0.11.0"):
        (built / "index.html").write_text(f"page of {version}")
        done = run("docs_versions.py", built, folder, version)
        assert (done.returncode, done.stderr) == (0, "")
    page = (folder / "index.html").read_text()
    places = [
        page.index(f'href="{name}/index.html"')
        for name in ("v0.11.0", "0.10.0", "0.10.0rc1", "0.9.0", "main")
    ]
    assert places == sorted(places)
    assert (folder / "0.9.0" / "index.html").read_text() == "page of 0.9.0"
    assert not (folder / "main" / ".doctrees").exists()


@pytest.mark.parametrize("version", ["../up", "", "."])
def test_a_version_is_the_name_of_a_folder(version, tmp_path):
    (tmp_path / "index.html").write_text("")
    assert run("docs_versions.py", tmp_path, tmp_path / "versions", version).returncode == 2
    assert not (tmp_path / "versions").exists()


def test_documentation_must_be_built_first(tmp_path):
    assert "Run make docs first" in run("docs_versions.py", tmp_path, tmp_path / "versions", "1.0").stderr
