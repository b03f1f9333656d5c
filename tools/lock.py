"""Write the lock files: the newest versions that satisfy pyproject.toml, each with all its requirements.

Run by `make lock`, with the oldest Python that Halocline supports.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

HEAD = "# Written by `make lock`: what Halocline is built, run and tested with.\n"
HEAD_DEV = "# Written by `make lock`: what checks the code and builds the documentation.\n"


def freeze(requirements: list[str]) -> list[str]:
    """Return the packages of a new environment with these requirements, with their versions."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [f"{folder}/bin/python", "-m", "pip", "--quiet"]
        subprocess.run([*pip, "install", *requirements], check=True)
        done = subprocess.run([*pip, "freeze"], check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def main() -> None:
    root = Path(__file__).resolve().parents[1]
    project = tomllib.loads((root / "pyproject.toml").read_text())
    groups = project["dependency-groups"]
    lock = freeze([*project["project"]["dependencies"], *groups["build"], *groups["test"]])
    dev = [line for line in freeze([*lock, *groups["dev"]]) if line not in lock]
    (root / "requirements.lock").write_text(HEAD + "".join(f"{line}\n" for line in lock))
    (root / "requirements-dev.lock").write_text(HEAD_DEV + "".join(f"{line}\n" for line in dev))


if __name__ == "__main__":
    main()
