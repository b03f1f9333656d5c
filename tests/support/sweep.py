"""Every option of every command with values that make no sense: each line must work, or end with status 2 and
one message; none may hang or crash.

    python tests/support/sweep.py [LINES] [--seed S]

runs all lines, or so many of them, and prints those that fail. Lines run in processes that are forked from
this one, which has imported what most of them need: that takes longer than to refuse a value.
"""

from __future__ import annotations

import argparse
import os
import random
import shlex
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from hang import HANG

VALUES = (
    *("0", "-1", "7", "1000000000", "3000000000", "100000000000000000000", "-99999999999999999999"),
    *("", " ", "x", "nan", "-inf", "1e9", "0.5", "1,1", "1,,2", "2x2", "a=1", "٣", "'; --", "\udcff"),
)

# Each command with a problem that takes a moment.
BASES = (
    "solve poisson --n 8",
    "study convergence poisson --n 8",
    "study convergence linear-wave --n 16 --dim 1 --set wave=sound",
    "study strong poisson --n 8 --ranks 1",
    "study strong sound-wave --n 8 --steps 1 --ranks 1",
    "study weak sound-wave --n 8 --steps 1 --ranks 1",
    "study overlap heat --n 4 --repeat 1",
    "study overlap poisson --n 8 --repeat 1",
    "study ablation exchange --n 4 --repeat 1 --dim 1",
    "explain poisson --n 8",
    "explain sound-wave --n 8",
    "model poisson --n 64 --machine summit",
    "model heat --n 64 --machine host",
    "model wave --n 64 --machine puhti",
    "study paper umbc-4.1 --not-here",
    "bench exchange --n 4 --repeat 1",
    "run sound-wave --n 8 --steps 1",
    "cases",
    "doctor",
)
# Values that mean something and would keep a machine busy for long, by option.
LONG = {
    "--steps": {"1000000000", "3000000000"},
    "--repeat": {"7"},
}


@dataclass(frozen=True)
class Fault:
    """A line that neither worked nor was refused in order."""

    line: str
    why: str
    out: str
    err: str


def options(words: Sequence[str]) -> Iterator[str]:
    """The names of all options with a value of the command that a line begins with."""
    import typer

    from halocline.cli.app import app

    command: Any = typer.main.get_command(app)
    for word in words:
        known = getattr(command, "commands", None)
        if known is None or word.startswith("-"):
            break
        command = known.get(word) or known["CASE" if "CASE" in known else "run"]
    for parameter in command.params:
        if parameter.param_type_name == "option" and not parameter.is_flag:
            yield parameter.opts[0]


def lines() -> list[tuple[str, ...]]:
    """All command lines."""
    found: list[tuple[str, ...]] = []
    for base in BASES:
        words = tuple(base.split())
        for option in options(words):
            for value in VALUES:
                if value not in LONG.get(option, ()):
                    found.append((*words, option, value))
    found += [tuple(base.split()[:-1]) for base in BASES]
    found += [(*base.split(), "--bogus") for base in BASES]
    found += [(*base.split(), "extra") for base in BASES]
    return found


def start(words: Sequence[str], folder: Path) -> int:
    """Fork a process that runs a line in a folder; its number."""
    child = os.fork()
    if child:
        return child
    status = 99
    try:
        os.setsid()
        os.chdir(folder)
        for number, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(folder / f".{name}", os.O_WRONLY | os.O_CREAT, 0o600), number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        from halocline.cli.main import main

        sys.argv = ["halocline", *words]
        status = main()
        sys.stdout.flush()
    finally:
        os._exit(status)


def judge(words: Sequence[str], folder: Path, status: int, late: bool) -> Fault | None:
    """What is wrong with how a line ended."""
    out, err = ((folder / f".{name}").read_text(errors="replace") for name in ("out", "err"))
    told = err.count("halocline: error:")
    helped = out.lstrip().startswith("Usage:")  # a group without a command prints its help
    why = ""
    if late:
        why = f"no end within {HANG:g} s"
    elif "Traceback" in err or "Traceback" in out:
        why = "a traceback"
    elif os.WIFSIGNALED(status):
        why = f"killed by {signal.Signals(os.WTERMSIG(status)).name}"
    elif os.WEXITSTATUS(status) not in (0, 2):
        why = f"status {os.WEXITSTATUS(status)}"
    elif told != (os.WEXITSTATUS(status) == 2 and not helped):
        why = f"status {os.WEXITSTATUS(status)} and {told} messages"
    return Fault(shlex.join(("halocline", *words)), why, out[-2000:], err[-2000:]) if why else None


def sweep(chosen: Sequence[tuple[str, ...]], at_once: int, place: Path) -> list[Fault]:
    """Run lines, some at a time; those that failed."""
    waiting, running, faults = list(enumerate(chosen)), {}, []
    while waiting or running:
        while waiting and len(running) < at_once:
            number, words = waiting.pop()
            folder = place / str(number)
            folder.mkdir()
            running[start(words, folder)] = (words, folder, time.monotonic() + HANG)
        child, status = os.waitpid(-1, os.WNOHANG)
        if child == 0:
            time.sleep(0.005)
        late = [one for one, (_, _, end) in running.items() if time.monotonic() > end]
        for one in late:
            os.killpg(one, signal.SIGKILL)
            if child != one:
                os.waitpid(one, 0)
        for one in {child, *late} & running.keys():
            words, folder, _ = running.pop(one)
            fault = judge(words, folder, status, one in late)
            if fault is not None:
                faults.append(fault)
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lines", type=int, nargs="?")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    told = parser.parse_args()
    chosen = [words for words in lines() if told.only in " ".join(words)]
    if told.lines is not None:
        chosen = random.Random(told.seed).sample(chosen, told.lines)
    for module in (
        "cli.app",
        "cli.run",
        "cli.commands.studies",
        "problems.problem",
        "study.engine",
    ):
        import_module(f"halocline.{module}")
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="halocline-sweep-") as folder:
        faults = sweep(chosen, len(os.sched_getaffinity(0)), Path(folder))
    for fault in faults:
        print(f"{fault.line}\n    {fault.why}\n{fault.out}{fault.err}".encode(errors="replace").decode())
    print(f"{len(chosen)} lines, {len(faults)} faults, {time.monotonic() - begun:.0f} s")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
