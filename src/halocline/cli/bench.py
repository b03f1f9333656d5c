"""`halocline bench`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from halocline.cli.output import check_files, say, write_json, written
from halocline.cli.progress import progress
from halocline.cli.ranks import spread
from halocline.errors import InputError


def exchange(
    *,
    n: int,
    dim: int,
    scaling: str,
    radius: int,
    fields: int,
    dtype: str,
    corners: bool,
    repeat: int,
    ranks: int | None,
    json: str | None,
    execution: Mapping[str, Any],
) -> None:
    """Time the exchange, and report."""
    spread(ranks)
    from halocline.run.devices.devices import where
    from halocline.run.ranks.mpi import world
    from halocline.timing.exchange import measure, weak_shape
    from halocline.words import amount, counted, duration

    check_files(json)
    growth = {"strong": 1, "weak": world().size}
    if scaling not in growth:
        raise InputError(f"scaling {scaling!r} is unknown; known are {', '.join(growth)}")
    shape = weak_shape(n, growth[scaling], dim)
    with progress(f"{counted(fields, 'field')}, radius {radius}", f"of {repeat} runs") as on_progress:
        found = measure(
            shape,
            radius=radius,
            fields=fields,
            dtype=dtype,
            corners=corners,
            repeats=repeat,
            on_progress=on_progress,
            **execution,
        )
    kind = "sides, edges and corners" if corners else "sides"
    what = f"{counted(fields, dtype + ' field')} of {'x'.join(map(str, shape))} cells"
    ran = where(found.ranks, found.threads, found.devices)
    lines = [
        f"Exchange of {what}, radius {radius}, {kind}",
        "",
        f"{'ranks':12} {ran}, subdomains {'x'.join(map(str, found.parts))}",
        *(
            f"{method:12} {amount(size)} into the subdomains of the busiest rank"
            for method, size in found.bytes_by_method.items()
        ),
        f"{'time':12} {duration(found.seconds)} an exchange, {found.rate / 1e9:.2f} GB/s of the busiest rank",
    ]
    if json != "-":
        say("\n".join(lines))
    write_json(json, {**asdict(found), "scaling": scaling, "rate": found.rate})
    written([json])
