"""Check and build a release: wheels, source distribution and notes in dist. Publishing is a separate step.

The tag v0.1.0 of HEAD makes it version 0.1.0. With --rehearse, the script builds a development version of any
commit: it does not check the tag, the state of the source folder, and the notes.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from release_notes import CHANGELOG, release_notes
from wheels import MACHINES

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"


def output(*command: str) -> str:
    """Return the output of a command in the source folder."""
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def tagged_version() -> str:
    """Return the version in the tag of HEAD.

    Raises
    ------
    SystemExit
        HEAD has no tag of a version, or more than one.
    """
    tags = output("git", "tag", "--points-at", "HEAD", "v[0-9]*").split()
    if len(tags) != 1:
        raise SystemExit(
            f"HEAD has {len(tags)} tags of versions; a release has one, for example from git tag v0.1.0. "
            "Without a tag: make release RELEASE=--rehearse"
        )
    return tags[0].removeprefix("v")


def problems(version: str) -> list[str]:
    """Return the reasons why the source folder is not that of a release."""
    reasons = []
    if output("git", "status", "--porcelain"):
        reasons.append("the source folder has changes: commit or remove them")
    # test_packaging.py compares the version of the conda recipe with this one
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    if cited is None or cited[1] != version:
        reasons.append(f"CITATION.cff has another version; expected version: {version}")
    try:
        release_notes(CHANGELOG.read_text(), version)
    except ValueError as error:
        reasons.append(str(error))
    if len(pythons()) < 2:
        reasons.append("wheels need Python 3.11 in .venv, and python3.12 or a newer Python on PATH")
    return reasons


def pythons() -> list[str]:
    """Return this Python and, for the wheel of 3.12 and newer versions, the first newer Python on PATH."""
    newer = next(filter(None, (shutil.which(f"python3.{minor}") for minor in (12, 13, 14))), None)
    return [sys.executable, *([newer] if newer and sys.version_info < (3, 12) else [])]


def main() -> None:
    """Check the source folder, and build the release."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rehearse", action="store_true", help="build without the checks of a release")
    options.add_argument("--machines", nargs="+", choices=MACHINES, default=[os.uname().machine])
    arguments = options.parse_args()
    if arguments.rehearse:
        version, reasons = output(sys.executable, "-m", "setuptools_scm"), []
    else:
        version = tagged_version()
        reasons = problems(version)
    if reasons:
        raise SystemExit("\n".join([f"this is not release {version}:", *reasons]))
    shutil.rmtree(DIST, ignore_errors=True)
    build = [sys.executable, "tools/wheels.py", "--to", str(DIST), "--machines", *arguments.machines]
    subprocess.run([*build, "--pythons", *pythons()], cwd=ROOT, check=True)
    files = sorted(str(file) for file in DIST.iterdir())
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *files], cwd=ROOT, check=True)
    if not arguments.rehearse:
        (DIST / "notes.md").write_text(f"{release_notes(CHANGELOG.read_text(), version)}\n")
    wheels = [file for file in files if file.endswith(f"{os.uname().machine}.whl")]
    if wheels and os.geteuid() == 0 and shutil.which("debootstrap"):
        for wheel in wheels:
            subprocess.run([sys.executable, "tools/check_wheel.py", wheel], cwd=ROOT, check=True)
    else:
        print("not tried in new systems: this needs a wheel for this machine, root rights and debootstrap")
    print(f"release {version} is in {DIST}")


if __name__ == "__main__":
    main()
