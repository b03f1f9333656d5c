"""Values that the texts of options mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from halocline.cli.options import Execution, Keeping, take
from halocline.errors import InputError
from halocline.ranges import POINTS, is_whole
from halocline.run.output.checkpoint import Checkpoint
from halocline.run.output.every import Every
from halocline.run.output.output import Output
from halocline.run.tuning.patches import BY_CACHES, TUNE


def refuse(options: Mapping[str, object], why: str) -> None:
    """Raise InputError for the first option with a value; None and False mean that it is not given."""
    for name, value in options.items():
        if value is not None and value is not False:
            text = "" if value is True else f" {value}"
            raise InputError(f"--{name.replace('_', '-')}{text}: {why}")


def cells_of(text: str | None) -> list[int] | None:
    """The numbers of cells that --n asks for."""
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise InputError(f"--n {text}: expected whole numbers of cells from 1, such as 64 or 64,64,32")
    return [int(part) for part in parts]


def check_part(only: str, others: Mapping[str, object]) -> None:
    """Raise InputError where --only names no part of a step, or for another option that needs a result."""
    from halocline.problems.run_options import PARTS

    if only not in PARTS:
        raise InputError(f"--only {only}: expected one of {', '.join(PARTS)}")
    for option, value in others.items():
        why = f"with --only {only} a fixed number of steps is timed, and the fields hold nonsense"
        refuse({option: value}, f"{why}; leave --{option} out")


def execution_of(values: dict[str, Any]) -> dict[str, Any]:
    """Remove the options of `Execution` from the values of all options, and return what they mean."""
    meaning = {"patch": patch_edges, "overlap": overlap_of, "gpudirect": is_on, "balance": balance_of}
    return {
        name: meaning[name](value) if name in meaning else value
        for name, value in take(Execution, values).items()
    }


def balance_of(text: str | None) -> Every | None:
    """Return the interval of --balance."""
    return None if text is None else Every.parse("--balance", often(text))


def is_on(text: str) -> bool:
    """Return True for on and False for off."""
    if text not in ("on", "off"):
        raise InputError(f"--gpudirect {text}: expected on or off")
    return text == "on"


def overlap_of(text: str) -> bool | str:
    """The choice that --overlap names."""
    if text not in ("auto", "on", "off"):
        raise InputError(f"--overlap {text}: expected auto, on or off")
    return text if text == "auto" else text == "on"


def patch_edges(text: str | None) -> list[int] | int | str | None:
    """The patch that --patch asks for."""
    if text is None or text in (TUNE, BY_CACHES):
        return text
    parts = text.split(",")
    if not all(map(is_whole, parts)):
        expected = f"expected whole numbers of cells, such as 64 or 32,256; or {TUNE}, or {BY_CACHES}"
        raise InputError(f"--patch {text}: {expected}")
    edges = [POINTS.check(f"--patch {text}: an edge", int(part)) for part in parts]
    return edges[0] if len(edges) == 1 else edges


def keeping_of(values: dict[str, Any], *, of_file: bool = False) -> dict[str, Any]:
    """Remove the options of `Keeping` from the values of all options, and return those of `RunOptions`.

    Parameters
    ----------
    values : dict
    of_file : bool
        True for the options of a file, which may have output and checkpoints of its own.

    Raises
    ------
    InputError
        A value is out of range, or an option has no effect without another one.
    """
    asked = Keeping(**take(Keeping, values))
    of_both = {name: getattr(asked, name) or None for name in ("overwrite", "io_threads", "io_ranks")}
    of_checkpoints = {name: getattr(asked, name) for name in ("checkpoint_every", "keep", "time_limit")}
    if asked.output is None:
        refuse({"output_every": asked.output_every}, "give --output STORE.zarr too")
    if asked.checkpoint is None:
        refuse(of_checkpoints, "give --checkpoint FOLDER too")
    if not (of_file or asked.output or asked.checkpoint):
        refuse(of_both, "give --output STORE.zarr or --checkpoint FOLDER too")
    how = {"overwrite": asked.overwrite, "io_threads": asked.io_threads}
    of_checkpoints["every"] = often(of_checkpoints.pop("checkpoint_every"))
    return {
        "output": _made(Output, "output", asked.output, how | {"every": often(asked.output_every)}),
        "checkpoint": _made(Checkpoint, "checkpoint", asked.checkpoint, how | of_checkpoints),
        **{name: getattr(asked, name) for name in ("resume", "overwrite", "io_threads", "io_ranks")},
    }


def _made(kind: type[Any], option: str, path: Any, how: dict[str, Any]) -> Any:
    """Return the output or the checkpoints that an option asks for; None where it is not given."""
    try:
        given = {name: value for name, value in how.items() if value is not None}
        return None if path is None else kind(path, **given)
    except InputError as error:
        raise InputError(f"--{option} {path}: {error}") from None


def often(text: str | None) -> int | float | str | None:
    """Return the interval of an option: "50" and "50 steps" count steps, "0.5" is simulated time.

    Any other text is returned as it is, such as the wall-clock time "30 min".
    """
    if text is None or text.strip().isdecimal():
        return None if text is None else int(text)
    try:
        return float(text)
    except ValueError:
        return text
