"""Find or create a Python with Halocline, on a machine that may have no network: for `make gpu-check`.

The tool uses the environment of `make build` if it exists. Otherwise it creates build/gpu/venv from the
running Python, whose packages remain visible, with the wheels of a folder (`--wheels`), and builds native
code with the available tools. As a program it prints the path of that Python; reports and missing packages
are printed to stderr.
"""

from __future__ import annotations

import argparse
import os
import shutil
import site
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / "build" / "gpu"
WORKS = "import halocline, halocline._native, numpy; print(halocline._native.__file__)"
NEEDED = {  # to build or to run anything
    "numpy": "numpy",
    "nanobind": "nanobind",
}
WANTED = {  # the consequence of a missing package
    "mpi4py": "runs on several ranks",
    "typer": "the command halocline",
    "rich": "the command halocline",
    "pydantic": "machine files",
    "scipy": "placement on more than 8 slots",
    "matplotlib": "pictures",
    "pynvml": "links between devices (nvidia-ml-py)",
}


class Lacking(Exception):
    """Error without any Python with Halocline: the reason, and the next step."""


def say(text: str) -> None:
    """Print a text for people on stderr, since stdout is for programs."""
    print(text, file=sys.stderr, flush=True)


def run(*command: object, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the root of the source and return its output."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(
        list(map(str, command)),
        cwd=ROOT,
        env=environment | variables,
        capture_output=True,
        text=True,
        check=False,
    )


def works(python: Path) -> bool:
    """Return True if a Python imports Halocline with its native code."""
    return python.exists() and run(python, "-c", WORKS).returncode == 0


def has(python: Path, module: str) -> bool:
    """Return True if a Python finds a module."""
    find = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    return run(python, "-c", find).returncode == 0


def find_or_make(wheels: Path | None) -> Path:
    """Return a Python that imports Halocline.

    Raises
    ------
    Lacking
    """
    build_python = ROOT / ".venv" / "bin" / "python"
    if (ROOT / ".venv" / "installed").exists() and run(build_python, "--version").returncode == 0:
        done = run("make", "build")
        if works(build_python):
            if done.returncode:
                say(f".venv is taken as it is: make build failed ({last(done)})")
            return build_python
        say(f".venv is of no use here: {last(done)}")
    if sys.version_info < (3, 11):  # noqa: UP036, since this runs outside of the environment
        raise Lacking(
            f"{sys.executable} is Python {sys.version.split()[0]}; expected 3.11 or newer (PYTHON=...)"
        )
    python = make_environment(wheels)
    build(python)
    lacking = [f"{module} ({use})" for module, use in WANTED.items() if not has(python, module)]
    if lacking:
        say(f"missing, so that some things are left out: {', '.join(lacking)}")
    return python


def make_environment(wheels: Path | None) -> Path:
    """Create build/gpu/venv with the packages of this Python and the wheels of a folder."""
    place = PLACE / "venv"
    python = place / "bin" / "python"
    if not python.exists():
        venv.create(place, system_site_packages=True, with_pip=False)
        # the parent may be an environment itself, whose packages a new one does not see
        packages = [*site.getsitepackages(), *(path for path in sys.path if path.endswith("-packages"))]
        (packages_of(python) / "parent.pth").write_text(
            "".join(f"{path}\n" for path in dict.fromkeys(packages))
        )
    result = sorted(wheels.glob("*.whl")) if wheels else []
    if wheels and not result:
        say(f"there are no wheels in {wheels}")
    if result:
        done = pip(python, "install", "--no-index", "--no-deps", "--force-reinstall", *result)
        if done.returncode:
            raise Lacking(f"the wheels in {wheels} cannot be installed: {last(done)}")
    return python


def packages_of(python: Path) -> Path:
    """Return the folder of a Python's own packages."""
    result = run(python, "-c", "import sysconfig; print(sysconfig.get_path('platlib'))")
    return Path(result.stdout.strip())


def pip(python: Path, *command: object) -> subprocess.CompletedProcess[str]:
    """Run the pip of this Python in the environment of another Python."""
    line = (sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", *command)
    return run(*line, PATH=programs_of(python))


def programs_of(python: Path) -> str:
    """Return the search path of programs, with the folders of both Pythons first."""
    return f"{python.parent}:{Path(sys.executable).parent}:{os.environ.get('PATH', '')}"


def build(python: Path) -> None:
    """Build native code, and let the environment find Halocline."""
    missing = [package for module, package in NEEDED.items() if not has(python, module)]
    programs = {"cmake": "CMake 3.20 or newer", "g++": "g++ 12 or newer"}
    path = programs_of(python)
    if shutil.which("clang++", path=path):
        del programs["g++"]
    missing += [
        description for program, description in programs.items() if not shutil.which(program, path=path)
    ]
    header = run(python, "-c", "import sysconfig; print(sysconfig.get_path('include'))").stdout.strip()
    if not (Path(header) / "Python.h").exists():
        missing.append(f"the headers of Python ({header}/Python.h)")
    find = "from importlib.metadata import distribution; distribution('mpich')"
    if not shutil.which("mpiexec", path=path) and run(python, "-c", find).returncode:
        missing.append("an MPI: mpiexec, or the package mpich")
    if missing:
        raise Lacking(
            f"native code cannot be built, without {', '.join(missing)}; bring packages as wheels: "
            "`pip download -d .whl ...` where there is a network, and WHEELS=.whl here"
        )
    folder = PLACE / "native"
    reason = "scikit-build-core is missing"
    if has(python, "scikit_build_core"):
        done = pip(
            python,
            "install",
            "--no-index",
            "--no-deps",
            "--no-build-isolation",
            f"--config-settings=build-dir={folder}",
            "--editable",
            ROOT,
        )
        if done.returncode == 0 and works(python):
            return
        reason = last(done if done.returncode else run(python, "-c", WORKS))
    say(f"built with CMake alone, since pip does not ({reason})")
    target = packages_of(python)
    for command in (
        ("cmake", "-S", ROOT, "-B", f"{folder}-cmake", f"-DPython_EXECUTABLE={python}"),
        ("cmake", "--build", f"{folder}-cmake", "-j", os.cpu_count() or 1),
        ("cmake", "--install", f"{folder}-cmake", "--prefix", target),
    ):
        done = run(*command, PATH=path)
        if done.returncode:
            raise Lacking(f"native code cannot be built: {' '.join(map(str, command[:2]))}: {last(done)}")
    for source in (ROOT / "src" / "halocline").iterdir():
        link = target / "halocline" / source.name
        if not link.exists() and source.name != "__pycache__":
            link.symlink_to(source)
    if not works(python):
        raise Lacking(f"Halocline was built, but cannot be imported: {last(run(python, '-c', WORKS))}")


def last(done: subprocess.CompletedProcess[str]) -> str:
    """Return the last line of the output of a command, an error if it has one."""
    lines = (done.stdout + done.stderr).strip().splitlines() or [f"status {done.returncode}"]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines)[-1].strip()


def parse(arguments: Sequence[str] | None = None) -> Path | None:
    """Return the folder of wheels, if the command line names one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wheels", type=Path, help="a folder with wheels of packages that are missing here")
    result: Path | None = parser.parse_args(arguments).wheels
    return result


if __name__ == "__main__":
    try:
        print(find_or_make(parse()))
    except Lacking as error:
        raise SystemExit(str(error)) from None
