"""Conversion of option texts to values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from halocline.cli.options import Execution, StorageOptions, take_options
from halocline.errors import InputError
from halocline.ranges import POINTS, is_whole
from halocline.run.output.checkpoint import Checkpoint
from halocline.run.output.every import Every
from halocline.run.output.output import Output
from halocline.run.tuning.patches import BY_CACHES, TUNE


def reject(options: Mapping[str, object], reason: str) -> None:
    """Raise InputError for the first option with a value other than None and False."""
    for name, value in options.items():
        if value is not None and value is not False:
            text = "" if value is True else f" {value}"
            raise InputError(f"--{name.replace('_', '-')}{text}: {reason}")


def cells_of(text: str | None) -> list[int] | None:
    """Return the numbers of cells that --n sets."""
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise InputError(f"--n {text}: expected positive whole numbers of cells, such as 64 or 64,64,32")
    return [int(part) for part in parts]


def check_part(only: str, other_options: Mapping[str, object]) -> None:
    """Raise InputError for an unknown part in --only, or if another option needs a result of the run."""
    from halocline.problems.run_options import PARTS

    if only not in PARTS:
        raise InputError(f"--only {only}: expected one of {', '.join(PARTS)}")
    for option, value in other_options.items():
        reason = f"--only {only} measures a fixed number of steps, and the fields are then invalid"
        reject({option: value}, f"{reason}. Leave --{option} out.")


def execution_of(values: dict[str, Any]) -> dict[str, Any]:
    """Remove the options of `Execution` from a mapping of option values, and return their values."""
    meaning = {"patch": patch_edges, "overlap": overlap_of, "gpudirect": is_on, "balance": balance_of}
    return {
        name: meaning[name](value) if name in meaning else value
        for name, value in take_options(Execution, values).items()
    }


def balance_of(text: str | None) -> Every | None:
    """Return the interval of --balance."""
    return None if text is None else Every.parse("--balance", interval_of(text))


def is_on(text: str) -> bool:
    """Return True for on and False for off."""
    if text not in ("on", "off"):
        raise InputError(f"--gpudirect {text}: expected on or off")
    return text == "on"


def overlap_of(text: str) -> bool | str:
    """Return the value of --overlap: "auto", True or False."""
    if text not in ("auto", "on", "off"):
        raise InputError(f"--overlap {text}: expected auto, on or off")
    return text if text == "auto" else text == "on"


def patch_edges(text: str | None) -> list[int] | int | str | None:
    """Return the value of --patch: edge lengths in cells, or the name of a method."""
    if text is None or text in (TUNE, BY_CACHES):
        return text
    parts = text.split(",")
    if not all(map(is_whole, parts)):
        expected = f"expected whole numbers of cells, such as 64 or 32,256; or {TUNE}, or {BY_CACHES}"
        raise InputError(f"--patch {text}: {expected}")
    edges = [POINTS.check(f"--patch {text}: an edge", int(part)) for part in parts]
    return edges[0] if len(edges) == 1 else edges


def storage_options(values: dict[str, Any], *, of_file: bool = False) -> dict[str, Any]:
    """Remove the options of `StorageOptions` from a mapping, and return options of `RunOptions`.

    Parameters
    ----------
    values : dict
        Option values by name.
    of_file : bool
        True for a problem file, which may write output and checkpoints itself.

    Raises
    ------
    InputError
        A value is out of range, or an option requires another option that is missing.
    """
    options = StorageOptions(**take_options(StorageOptions, values))
    of_both = {name: getattr(options, name) or None for name in ("overwrite", "io_threads", "io_ranks")}
    of_checkpoints = {name: getattr(options, name) for name in ("checkpoint_every", "keep", "time_limit")}
    if options.output is None:
        reject({"output_every": options.output_every}, "add --output STORE.zarr")
    if options.checkpoint is None:
        reject(of_checkpoints, "add --checkpoint FOLDER")
    if not (of_file or options.output or options.checkpoint):
        reject(of_both, "add --output STORE.zarr or --checkpoint FOLDER")
    common = {"overwrite": options.overwrite, "io_threads": options.io_threads}
    of_checkpoints["every"] = interval_of(of_checkpoints.pop("checkpoint_every"))
    return {
        "output": _output_settings(
            Output, "output", options.output, common | {"every": interval_of(options.output_every)}
        ),
        "checkpoint": _output_settings(Checkpoint, "checkpoint", options.checkpoint, common | of_checkpoints),
        **{name: getattr(options, name) for name in ("resume", "overwrite", "io_threads", "io_ranks")},
    }


def _output_settings(kind: type[Any], option: str, path: Any, options: dict[str, Any]) -> Any:
    """Return the `Output` or `Checkpoint` that an option declares; None without a path."""
    try:
        settings = {name: value for name, value in options.items() if value is not None}
        return None if path is None else kind(path, **settings)
    except InputError as error:
        raise InputError(f"--{option} {path}: {error}") from None


def interval_of(text: str | None) -> int | float | str | None:
    """Return the interval of an option: steps for "50", simulated time for "0.5".

    Any other text is returned unchanged, such as "50 steps" and the wall-clock time "30 min".
    """
    if text is None or text.strip().isdecimal():
        return None if text is None else int(text)
    try:
        return float(text)
    except ValueError:
        return text
