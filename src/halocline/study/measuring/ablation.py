"""What each part of the exchange is worth: the same halos with one thing changed at a time.

The transfer methods are those of C. Pearson et al., Node-Aware Stencil Communication for Heterogeneous
Supercomputers (2020), Figs. 10 to 12: +remote, +colo, +peer, +self.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from halocline.errors import InputError
from halocline.io.table import Table, table_of
from halocline.lang.grid import Grid
from halocline.model.execute import execute
from halocline.plan.communication import COMMUNICATIONS
from halocline.plan.layout import lay_out
from halocline.plan.machine import Machine
from halocline.plan.placement import STRATEGIES as PLACEMENTS
from halocline.plan.traffic import Traffic
from halocline.plan.transfer import SETS, UNFIT_ON_DEVICES
from halocline.ranges import REPEATS
from halocline.run.domain.execution import chosen_devices
from halocline.run.engine.prepared import PassTimer
from halocline.run.ranks.mpi import world
from halocline.run.tuning.patches import in_turn
from halocline.study.measurement import Measurement
from halocline.study.measuring.exchange import Bench, exchange_schedule, into_a_rank, moved
from halocline.study.measuring.overlap import heat
from halocline.words import duration

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WHOLE = "Steps of heat with as many fields of this radius: an exchange alone has nothing to overlap with."
DECOMPOSITIONS = ("optimal", "bisection", "1d-x", "1d-y", "1d-z")


class Variant(NamedTuple):
    """One way of exchanging halos.

    Attributes
    ----------
    group : str
        The name of the property that is changed.
    name : str
    options : mapping
        Of `halocline.study.measuring.exchange.Bench`, or of halocline.Execution for whole steps.
    whole : bool
        Whether whole steps of a program are timed, and not its exchange alone.
    """

    group: str
    name: str
    options: Mapping[str, Any]
    whole: bool = False


def variants(fields: int, radius: int, ndim: int = 3) -> list[Variant]:
    """All that are measured, group by group."""
    made = [Variant("transfer methods", name, {"methods": methods}) for name, methods in SETS.items()]
    made += [
        Variant("edges and corners", "with", {"corners": True}),
        Variant("edges and corners", "without", {"corners": False}),
    ]
    narrow = [radius] + [1] * (fields - 1)
    made += [
        Variant("halos", "uniform", {"radius": radius}),
        Variant("halos", f"per field ({', '.join(map(str, narrow))})", {"radius": narrow}),
    ]
    made += [
        Variant("decompositions", name, {"decomposition": name})
        for name in DECOMPOSITIONS
        if not name.startswith("1d-") or name[3:] in "xyz"[:ndim]
    ]
    made += [
        Variant("halos of a program", "uniform", {"halo": "uniform"}, whole=True),
        Variant("halos of a program", "as read", {"halo": "read"}, whole=True),
        Variant("overlap", "without", {"overlap": False}, whole=True),
        Variant("overlap", "with", {"overlap": True}, whole=True),
    ]
    made += [Variant("communication", name, {"communication": name}, whole=True) for name in COMMUNICATIONS]
    return made


def measure(
    shape: Sequence[int],
    *,
    fields: int = 4,
    radius: int = 3,
    dtype: str = "float32",
    repeats: int = 7,
    on_progress: Callable[[int], None] | None = None,
    **execution: Any,
) -> list[Measurement]:
    """Time all variants in turn, over and over; all ranks call this.

    Parameters
    ----------
    shape : sequence of int
        Cells of the grid, which is periodic.
    fields, radius, dtype, **execution
        Of those things that a variant does not change; see `halocline.study.measuring.exchange.Bench`.
    repeats : int
        Rounds, after one that is not counted.
    on_progress : callable, optional
        Called with the number of rounds done.

    Returns
    -------
    list of dict
        For each variant its `group` and `name`; `parts`, the subdomains along each axis; `messages` that the
        busiest rank sends, None where unknown; `bytes_by_method`, the bytes into the subdomains of the
        busiest rank, with "mpi not packed" apart from "mpi". `seconds` is the median time of one exchange on
        the slowest rank, and `ratio` the seconds of the first variant of the group over these. `predicted`
        is true where a model was run and no rank, and `whole` where a step with its kernels was timed.

    Raises
    ------
    InputError
    """
    REPEATS.check("repeats", repeats)
    common = {"fields": fields, "radius": radius, "dtype": dtype, **execution}
    ready: list[tuple[Variant, PassTimer]] = []
    taken: set[tuple[str, ...]] = set()
    on_devices = chosen_devices(execution.get("device")).interface != "cpu"
    for variant in variants(fields, radius, len(shape)):
        bench: PassTimer
        named = variant.options.get("methods", "").split(",")
        if variant.group == "transfer methods" and (
            (on_devices and not UNFIT_ON_DEVICES.keys().isdisjoint(named))
            or ("peer" not in named and world().mpi is None)
        ):
            continue  # what it names cannot be had here
        try:
            if variant.whole:
                bench = heat(shape, **{**common, **variant.options})
                bench.calibrate()
            else:
                bench = Bench(shape, **{**common, **variant.options})
        except InputError:
            if variant.group != "decompositions":
                raise  # a grid may be too thin for slabs
            continue
        methods = bench.prepared.plan.transfers.methods
        if variant.group == "transfer methods" and methods in taken:
            continue  # nor this
        taken.add(methods)
        ready.append((variant, bench))
    for _, bench in ready:
        bench.run()
    times = in_turn({n: bench.run for n, (_, bench) in enumerate(ready)}, repeats, on_progress)
    found: list[Measurement] = []
    first: dict[str, float] = {}
    for n, (variant, bench) in enumerate(ready):
        seconds = statistics.median(times[n])
        messages, bytes_by_method = moved(bench.prepared)
        record = {
            "group": variant.group,
            "name": variant.name,
            "parts": bench.prepared.plan.decomposition.parts,
            "messages": messages,
            "bytes_by_method": bytes_by_method,
            "seconds": seconds,
            "ratio": first.setdefault(variant.group, seconds) / seconds,
            "predicted": False,
            "whole": variant.whole,
        }
        found.append(record)
    return found


def place(
    machine: Machine, shape: Sequence[int], *, fields: int = 4, radius: int = 3, dtype: str = "float32"
) -> list[Measurement]:
    """Predict the exchange on all devices of one node of a machine for each placement of its subdomains.

    Parameters
    ----------
    machine : Machine
    shape : sequence of int
        Cells of the grid, which is periodic.
    fields, radius, dtype
        See `halocline.study.measuring.exchange.exchange_schedule`.
    """
    grid = Grid(tuple(shape), periodic=True)
    schedule = exchange_schedule(grid, fields, dtype, radius)
    count = len(machine.devices)
    found: list[Measurement] = []
    for placement in sorted(PLACEMENTS, key=("random", "trivial", "aware").index):
        layout = lay_out(
            shape,
            count,
            strategy="bisection",
            traffic=Traffic.of_schedule(schedule),
            thickness=radius,
            placement=placement,
            distance=machine.distance(),
        )
        seconds = execute(schedule, layout, machine).seconds
        record: Measurement = {
            "group": "placement",
            "name": f"{placement}, {machine.name}",
            "parts": layout.decomposition.parts,
            "messages": None,
            "bytes_by_method": {},
            "seconds": seconds,
            "ratio": found[0]["seconds"] / seconds if found else 1.0,
            "predicted": True,
            "whole": False,
        }
        found.append(record)
    return found


def groups_of(found: Sequence[Measurement]) -> dict[str, list[Measurement]]:
    """Return the variants of each group."""
    groups: dict[str, list[Measurement]] = {}
    for measured in found:
        groups.setdefault(measured["group"], []).append(measured)
    return groups


def _unit(measured: Measurement) -> str:
    """Return the name of what takes the seconds of a record."""
    return "a step" if measured["whole"] else "an exchange"


def table(found: Sequence[Measurement]) -> list[Table]:
    """Return one table for each group."""
    tables = []
    for group, members in groups_of(found).items():
        first = members[0]
        columns: dict[str, Callable[[Measurement], str]] = {
            "": lambda m: m["name"],
            "subdomains": lambda m: " x ".join(map(str, m["parts"])),
            "messages": lambda m: "" if m["messages"] is None else f"{m['messages']}",
            "into a rank": into_a_rank,
            _unit(first): lambda m: duration(m["seconds"]),
            f"faster than\n{first['name']}": lambda m: f"{m['ratio']:.2f}",
        }
        note = "Predicted by running the plan on the machine file." if first["predicted"] else ""
        note = WHOLE if first["whole"] else note
        tables.append(table_of(group.capitalize(), members, columns, left=2, note=note))
    return tables


def plot(found: Sequence[Measurement]) -> Figure:
    """Draw the time of every variant, group by group."""
    from matplotlib.figure import Figure

    from halocline.io.style import COLOURS, MUTED

    groups = groups_of(found)
    heights = [len(members) for members in groups.values()]
    figure = Figure(figsize=(8.4, 0.9 + 0.42 * len(found)), layout="constrained")
    all_axes = figure.subplots(len(groups), 1, height_ratios=heights, squeeze=False)[:, 0]
    for axes, (group, members) in zip(all_axes, groups.items(), strict=True):
        predicted, places = members[0]["predicted"], range(len(members))
        axes.barh(places, [1e3 * m["seconds"] for m in members], color=MUTED if predicted else COLOURS[0])
        axes.set_yticks(places, [m["name"] for m in members])
        axes.invert_yaxis()
        axes.set_title(group.capitalize() + (" (predicted)" if predicted else ""), loc="left")
        axes.set_xlim(0, None)
    figure.supxlabel("milliseconds an exchange, or a step where kernels run too")
    return figure


def verdicts(found: Sequence[Measurement]) -> list[str]:
    """Return a sentence for each group: its fastest variant, and how much slower the others are."""
    sentences = []
    for group, members in groups_of(found).items():
        best = min(members, key=lambda m: m["seconds"])
        how = f"is {'predicted to be ' * best['predicted']}fastest, {duration(best['seconds'])} {_unit(best)}"
        others = [m["seconds"] for m in members if m is not best]
        more = statistics.median(others) / best["seconds"] if others else 1.0
        sentences.append(
            f"{group.capitalize()}: {best['name']} {how}; the others take {more:.2f} times as long (median)."
        )
    return sentences
