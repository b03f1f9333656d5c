"""`halocline run`."""

from __future__ import annotations

import os
import runpy
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from halocline.cli.output import check_files, note, write_json, written
from halocline.cli.ranks import spread
from halocline.errors import InputError
from halocline.run.devices import DEVICE_VARIABLE, chosen_here, places_met
from halocline.run.execution import chosen_devices
from halocline.run.machine import this_machine
from halocline.run.mpi import report, world
from halocline.run.streams import is_lost_output


def script(
    file: Path,
    *,
    ranks: int | None,
    io_ranks: int = 0,
    threads: int | None,
    device: str | None,
    json: str | None,
    arguments: Sequence[str],
) -> None:
    """Run a Python file as `python FILE` does, on as many ranks as asked for."""
    if not file.is_file():
        raise InputError(f"there is no file {file}" if not file.exists() else f"{file} is no file")
    choice = chosen_devices(device)
    spread(ranks, io_ranks)
    with world().agreement(f"find devices {str(choice)!r}"):
        chosen_here(choice, DEVICE_VARIABLE if device is None else "")
    check_files(json)
    environment = {} if device is None else {DEVICE_VARIABLE: str(choice)}
    if threads is not None:
        environment["OMP_NUM_THREADS"] = str(threads)
    begun = time.monotonic()
    try:
        with _as_main(file, arguments, environment), places_met() as met:
            runpy.run_path(str(file), run_name="__main__")
    except SystemExit as end:
        if end.code not in (None, 0):
            raise
    except Exception as error:
        if isinstance(error, OSError) and is_lost_output(error):
            raise
        # the story begins where the user's own text does
        step = error.__traceback__
        while step is not None and step.tb_frame.f_code.co_filename != str(file):
            step = step.tb_next
        error.__traceback__ = step
        raise SystemExit(report(error)) from None
    if device is not None:
        ran = met.devices(world())
        if not all(map(choice.names, ran)):
            note(f"--device {choice}: {file} chose otherwise, and ran on {', '.join(ran)}")
    if json is not None:
        record = {"file": str(file), "arguments": list(arguments), "ranks": world().size, "threads": threads}
        record |= {"device": str(choice), "devices": [asdict(place) for place in met(world())]}
        record |= {"seconds": time.monotonic() - begun, "machine": this_machine().as_dict()}
        write_json(json, record)
        written([json])


@contextmanager
def _as_main(file: Path, arguments: Sequence[str], chosen: Mapping[str, str]) -> Iterator[None]:
    """Arguments, import path and environment as `python FILE` would find them, and as they were after it."""
    before = sys.argv, sys.path[:], {name: os.environ.get(name) for name in chosen}
    sys.argv = [str(file), *arguments]
    sys.path.insert(0, str(file.resolve().parent))
    os.environ.update(chosen)
    try:
        yield
    finally:
        sys.argv, sys.path[:], environment = before
        for name, value in environment.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
