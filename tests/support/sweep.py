"""Sweep over every option of every command with meaningless values.

Each line must work, or end with status 2 and one message; none may hang or crash.

    python tests/support/sweep.py [LINES] [--seed S]

runs all lines, or the given number of them, and prints those that fail. Lines run in processes that are
forked from this one, which has imported most modules: imports take longer than the rejection of a value.
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

# Each command with a short problem.
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
# Valid values that would keep a machine busy for long, by option.
LONG = {
    "--steps": {"1000000000", "3000000000"},
    "--repeat": {"7"},
}


@dataclass(frozen=True)
class Fault:
    """A line that neither worked nor was rejected properly."""

    line: str
    reason: str
    out: str
    err: str


def options(words: Sequence[str]) -> Iterator[str]:
    """Yield the names of all options with a value, for the command at the start of a line."""
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
    """Return all command lines."""
    command_lines: list[tuple[str, ...]] = []
    for base in BASES:
        words = tuple(base.split())
        for option in options(words):
            for value in VALUES:
                if value not in LONG.get(option, ()):
                    command_lines.append((*words, option, value))
    command_lines += [tuple(base.split()[:-1]) for base in BASES]
    command_lines += [(*base.split(), "--bogus") for base in BASES]
    command_lines += [(*base.split(), "extra") for base in BASES]
    return command_lines


def start(words: Sequence[str], folder: Path) -> int:
    """Fork a process that runs a line in a folder, and return its number."""
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
    """Return the fault of a finished line, or None."""
    out, err = ((folder / f".{name}").read_text(errors="replace") for name in ("out", "err"))
    message_count = err.count("halocline: error:")
    printed_help = out.lstrip().startswith("Usage:")  # a group without a command prints its help
    reason = ""
    if late:
        reason = f"no end within {HANG:g} s"
    elif "Traceback" in err or "Traceback" in out:
        reason = "a traceback"
    elif os.WIFSIGNALED(status):
        reason = f"killed by {signal.Signals(os.WTERMSIG(status)).name}"
    elif os.WEXITSTATUS(status) not in (0, 2):
        reason = f"status {os.WEXITSTATUS(status)}"
    elif message_count != (os.WEXITSTATUS(status) == 2 and not printed_help):
        reason = f"status {os.WEXITSTATUS(status)} and {message_count} messages"
    return Fault(shlex.join(("halocline", *words)), reason, out[-2000:], err[-2000:]) if reason else None


def sweep(lines: Sequence[tuple[str, ...]], at_once: int, place: Path) -> list[Fault]:
    """Run lines, some of them concurrently, and return their faults."""
    waiting, running, faults = list(enumerate(lines)), {}, []
    while waiting or running:
        while waiting and len(running) < at_once:
            number, words = waiting.pop()
            folder = place / str(number)
            folder.mkdir()
            running[start(words, folder)] = (words, folder, time.monotonic() + HANG)
        child, status = os.waitpid(-1, os.WNOHANG)
        if child == 0:
            time.sleep(0.005)
        late = [process for process, (_, _, end) in running.items() if time.monotonic() > end]
        for process in late:
            os.killpg(process, signal.SIGKILL)
            if child != process:
                os.waitpid(process, 0)
        for process in {child, *late} & running.keys():
            words, folder, _ = running.pop(process)
            fault = judge(words, folder, status, process in late)
            if fault is not None:
                faults.append(fault)
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lines", type=int, nargs="?")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    selected = [words for words in lines() if arguments.only in " ".join(words)]
    if arguments.lines is not None:
        selected = random.Random(arguments.seed).sample(selected, arguments.lines)
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
        faults = sweep(selected, len(os.sched_getaffinity(0)), Path(folder))
    for fault in faults:
        print(f"{fault.line}\n    {fault.reason}\n{fault.out}{fault.err}".encode(errors="replace").decode())
    print(f"{len(selected)} lines, {len(faults)} faults, {time.monotonic() - begun:.0f} s")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
