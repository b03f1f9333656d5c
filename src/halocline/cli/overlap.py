"""`halocline study overlap`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

from halocline.cli.output import check_files, say, write_json, written
from halocline.cli.progress import progress
from halocline.cli.ranks import spread
from halocline.cli.texts import cells_of

if TYPE_CHECKING:
    from halocline.problems.step_bench import StepBench


def heat(
    *,
    n: int,
    dim: int,
    radius: int,
    fields: int,
    dtype: str,
    repeat: int,
    ranks: int | None,
    json: str | None,
    execution: Mapping[str, Any],
) -> None:
    """Measure explicit steps, and report."""
    spread(ranks)
    from halocline.run.ranks.mpi import world
    from halocline.timing import overlap
    from halocline.timing.exchange import weak_shape
    from halocline.words import counted

    shape = weak_shape(n, world().size, dim)
    what = f"Heat: {counted(fields, dtype + ' field')} of {'x'.join(map(str, shape))} cells, radius {radius}"
    how: dict[str, Any] = {"radius": radius, "fields": fields, "dtype": dtype}
    _show(partial(overlap.heat, shape, **how), what, {"shape": shape, **how}, repeat, json, execution)


def case(
    name: str,
    *,
    n: str | None,
    dim: int | None,
    settings: Sequence[str],
    order: int | None,
    scheme: str | None,
    method: str | None,
    repeat: int,
    ranks: int | None,
    json: str | None,
    execution: Mapping[str, Any],
) -> None:
    """Measure steps or iterations of a case or a file, and report."""
    from halocline.problems.problem import problem_of

    options: dict[str, Any] = {"dim": dim, "order": order, "scheme": scheme, "method": method}
    ready = problem_of(name, cells_of(n), settings, **options)
    spread(ranks)
    _, facts = ready.description
    _show(ready.bench, ready.title, facts, repeat, json, execution)


def _show(
    make: Callable[..., StepBench],
    what: str,
    facts: Mapping[str, Any],
    repeat: int,
    json: str | None,
    execution: Mapping[str, Any],
) -> None:
    from halocline.run.devices.devices import devices_in_use, where
    from halocline.run.ranks.mpi import world
    from halocline.timing import overlap

    check_files(json)
    shown = progress("whole steps and parts of them in turn", f"of {repeat} rounds")
    with devices_in_use() as met, shown as on_progress:
        found = overlap.measure(make, repeats=repeat, on_progress=on_progress, **execution)
    places = met(world())
    record = {**facts, "repeats": repeat, "devices": [asdict(place) for place in places]}
    if json != "-":
        first = found[0]
        ran = where(first.ranks, first.threads, places)
        say(f"{what}, {ran}, subdomains {' x '.join(map(str, first.parts))}\n")
        say(overlap.table(found).text())
        say("\n".join(overlap.verdict(found)))
    write_json(json, {**record, "methods": [asdict(own) for own in found]})
    written([json])
