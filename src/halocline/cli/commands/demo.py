"""Command `halocline demo`."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated, Any

from halocline.cli.commands import command, group
from halocline.cli.options import place, result_option
from halocline.cli.output import check_files, say
from halocline.errors import InputError, RunError
from halocline.run.ranks.library import launcher

app = group("")
CASE = "convection"
SETTINGS = ("--dim", "2", "--n", "96", "--set", "rayleigh=3e4", "--set", "amplitude=0.3", "--steps", "3000")
FIELD = "s"


@command(app, "demo")
def demo(
    target: Annotated[Path, result_option("--to FOLDER", place("folder"))] = Path("halocline-demo"),
) -> None:
    """Show a first result: convection in a gas, on one rank and on two ranks, with the same bits.

    The first run compiles its kernels. The second run takes them from the cache.

    Parameters
    ----------
    target
        Folder of the pictures and of the results as JSON.

    Examples
    --------
    halocline demo
    """
    parent = launcher()
    if parent is not None and parent.size != 1:  # `srun --pty` starts one process
        raise InputError("halocline demo starts its own ranks; run it without mpiexec and srun")
    if target.exists() and not target.is_dir():
        raise InputError(f"--to: {target} is a file; expected a folder")
    check_files(target / "1.json")
    say(f"{CASE}: a gas heated from below, on one rank and on two ranks\n")
    say(f"{'ranks':>5}  {'total':>8}  {'steps':>8}  {'million cells/s':>15}  checksum")
    first = _run(1, target)
    second = _run(2, target, "--pictures", str(target))
    if first["checksum"] != second["checksum"]:
        raise RunError(
            "the checksums differ, although they must be equal; report this with the output of "
            "`halocline doctor`"
        )
    say(
        f"\nThe results are bit-for-bit identical. Picture of the entropy: {target / FIELD}.png\n\nNext:\n"
        "  halocline new mine && halocline run mine.py   a problem of your own, from a copy of a case\n"
        f"  halocline explain {CASE} --ranks 64       what Halocline derives from the equations\n"
        "  halocline cases                               the cases, each with parameters to set"
    )


def _run(ranks: int, folder: Path, *options: str) -> dict[str, Any]:
    """Run the case on a number of ranks, print a line of the table, and return the results."""
    file = folder / f"{ranks}.json"
    words = [CASE, *SETTINGS, "--ranks", str(ranks), "--threads", "1"]
    command = [sys.executable, "-m", "halocline.cli", "run", *words, *options, "--json", str(file)]
    start = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise RunError(
            f"`halocline run {' '.join(words)}` failed with status {done.returncode}; "
            "`halocline doctor` shows what is missing"
        )
    result: dict[str, Any] = json.loads(file.read_text())
    seconds, total = result["seconds"], time.monotonic() - start
    rate = result["cells"] * result["steps"] / seconds / 1e6
    say(f"{ranks:5}  {total:6.1f} s  {seconds:6.1f} s  {rate:15.1f}  {result['checksum']}")
    return result
