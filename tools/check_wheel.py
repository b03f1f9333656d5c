"""Try a wheel in fresh Debian systems: without compiler and MPI, and with the MPI libraries of Debian.

The script needs root rights, and the Debian packages debootstrap and ca-certificates. Each system is a
folder, in which commands run by chroot: Debian 12 for Python 3.11, and Debian 13 with Python 3.13 for wheels
of the stable ABI. There, pip installs the wheel with the extra `compiler`.
`halocline demo` then shows a first result, and the tests of ranks run. The script prints a line for each
system with the times.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SYSTEMS = {"no MPI": [], "MPICH": ["mpich"], "Open MPI": ["openmpi-bin"]}  # Debian packages
TESTS = ("tests/mpi/test_ranks.py", "tests/mpi/test_communication.py", "tests/mpi/test_bitwise.py")
# The mounts belong to the command only, so that the folder can be removed safely.
ENTER = """for folder in proc sys dev; do mount --rbind /$folder "$0/$folder" || exit 1; done
exec chroot "$0" env -C /root "$@"
"""
CERTIFICATES = ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")  # files that pip needs at some sites


class System:
    """Debian system in a folder.

    Parameters
    ----------
    folder : Path
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, *command: str, check: bool = True, **variables: str) -> tuple[float, str]:
        """Run a command in the system, and return its time in seconds and its output.

        Raises
        ------
        SystemExit
            The command failed.
        """
        words = ["unshare", "--mount", "sh", "-c", ENTER, str(self.folder), *command]
        environment = {**os.environ, "HOME": "/root", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **variables}
        start = time.monotonic()
        done = subprocess.run(
            words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        if check and done.returncode:
            raise SystemExit(
                f"{' '.join(command)} failed with status {done.returncode}:\n{done.stdout[-4000:]}"
            )
        return time.monotonic() - start, done.stdout

    def add(self, *files: Path) -> None:
        """Copy files and folders into the home folder of the system."""
        for file in files:
            target = self.folder / "root" / file.name
            shutil.copytree(file, target) if file.is_dir() else shutil.copy(file, target)


def create_base(folder: Path, release: str, mirror: str | None) -> None:
    """Create a minimal Debian with Python, from a mirror or from the default mirror of debootstrap."""
    packages = "--include=python3-venv,ca-certificates"
    command = ["debootstrap", "--variant=minbase", packages, release, str(folder)]
    subprocess.run([*command, *([mirror] if mirror else [])], check=True)
    for file in (Path("/etc/resolv.conf"), Path("/etc/pip.conf"), *certificates()):
        if file.is_file():
            target = folder / file.relative_to("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)


def certificates() -> list[Path]:
    return [Path(os.environ[name]) for name in CERTIFICATES if os.environ.get(name)]


def try_wheel(system: System, wheel: Path, packages: list[str]) -> str:
    """Install a wheel, run the demo and tests in a system, and return a line with the results."""
    if packages:
        system.run("apt-get", "update", "-qq")
        install = ("apt-get", "install", "-y", "-qq", "--no-install-recommends")
        system.run(*install, *packages, DEBIAN_FRONTEND="noninteractive")
    system.add(wheel, ROOT / "tests", ROOT / "pyproject.toml")
    for program in ("g++", "c++", "clang++", "cmake"):
        if not system.run("which", program, check=False)[1] == "":
            raise SystemExit(
                f"{program} is installed in {system.folder}; expected a system without a compiler"
            )
    system.run("python3", "-m", "venv", "env")
    pip = ("env/bin/pip", "install", "--quiet")
    install_seconds, _ = system.run(*pip, f"{wheel.name}[compiler]")
    size = sum(file.stat().st_size for file in (system.folder / "root" / "env").rglob("*") if file.is_file())
    first_seconds, output = system.run("env/bin/halocline", "demo")
    print(output, flush=True)
    repeat_seconds, _ = system.run("env/bin/halocline", "demo")
    print(system.run("env/bin/halocline", "doctor")[1], flush=True)
    system.run(*pip, "pytest", "pytest-xdist", "hypothesis", "mpmath", "xarray", "zarr")
    _, tests = system.run(
        *("env/bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not long", *TESTS),
        check=False,
    )
    summary = tests.strip().splitlines()[-1]
    if " failed" in summary or " error" in summary or " passed" not in summary:
        raise SystemExit(f"tests failed with {packages or 'no MPI of Debian'}:\n{tests[-6000:]}")
    return (
        f"installed in {install_seconds:.0f} s ({size / 1e6:.0f} MB), demo {first_seconds:.0f} s and "
        f"{repeat_seconds:.0f} s again; tests of ranks: {summary}"
    )


def main() -> None:
    """Try the wheel in each system."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("wheel", type=Path)
    options.add_argument("--mirror", help="mirror of Debian; by default, that of debootstrap")
    options.add_argument("--base", type=Path, help="folder of an existing minimal Debian with Python")
    options.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    arguments = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="halocline-systems-") as name:
        original = arguments.base or Path(name) / "base"
        if arguments.base is None:
            release = "bookworm" if "-cp311-" in arguments.wheel.name else "trixie"
            create_base(original, release, arguments.mirror)
        for system in arguments.systems:
            folder = Path(name) / system.replace(" ", "-")
            subprocess.run(["cp", "-a", str(original), str(folder)], check=True)
            result = try_wheel(System(folder), arguments.wheel, SYSTEMS[system])
            print(f"{system}: {result}", flush=True)
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
