"""Count the files of the package that a call enters.

    python tools/entered_files.py run cavity-2d --check
    python tools/entered_files.py --checkpoint

The first form measures a command of `halocline`. The second form measures one call
`sim.run(until=..., checkpoint=...)` of a small simulation that has run before. A file is entered when one of
its functions is called; code that runs while a module is imported does not count. The last line has the
number of files.
"""

from __future__ import annotations

import argparse
import inspect
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import halocline as hc

PACKAGE = Path(hc.__file__).parent


@contextmanager
def counting_calls() -> Iterator[Counter[str]]:
    """Yield the number of calls into each file of the package, which is complete when the block has ended."""
    calls: Counter[str] = Counter()
    package = f"{PACKAGE}/"
    depth: Counter[int] = Counter()  # modules that each thread is importing

    def on_event(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(package):
            return
        if code.co_name == "<module>" and is_import(frame):
            depth[threading.get_ident()] += 1 if event == "call" else -1
        elif event == "call" and code.co_flags & inspect.CO_NEWLOCALS and not depth[threading.get_ident()]:
            calls[code.co_filename.removeprefix(package)] += 1

    threading.setprofile(on_event)
    sys.setprofile(on_event)
    try:
        yield calls
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def is_import(frame: FrameType) -> bool:
    """Return True if the import system runs a module; the package itself runs the file of a problem."""
    return frame.f_back is not None and frame.f_back.f_code.co_filename.startswith("<frozen importlib")


def run_command(arguments: list[str]) -> Counter[str]:
    """Return the calls of a command of `halocline`, which reports its own errors."""
    from halocline.cli.main import main

    with counting_calls() as calls, suppress(SystemExit):
        sys.argv = ["halocline", *arguments]
        main()
    return calls


def run_checkpoint() -> Counter[str]:
    """Return the calls of `sim.run` with a checkpoint."""
    grid = hc.Grid((16, 16), periodic=True)
    T = grid.field("T")
    sim = hc.Simulation(grid, lambda T: {T: hc.laplacian(T)}, scheme=hc.RK3(), dt=1e-4, threads=1)
    sim[T] = 1.0
    sim.run(until=1e-3)
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = hc.Checkpoint(Path(folder, "checkpoints"))
        with counting_calls() as calls:
            sim.run(until=2e-3, checkpoint=checkpoint)
    return calls


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--checkpoint", action="store_true", help="measure sim.run with a checkpoint")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="arguments of halocline")
    options = parser.parse_args()
    if options.checkpoint == bool(options.command):
        parser.error("give --checkpoint, or the arguments of a command such as: run cavity-2d --check")
    calls = run_checkpoint() if options.checkpoint else run_command(options.command)
    for file, count in sorted(calls.items()):
        print(f"{count:8,} {file}")
    print(f"{len(calls)} files entered, {calls.total():,} calls")


if __name__ == "__main__":
    main()
