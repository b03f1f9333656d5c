"""Ablation of the exchange: times of an exchange of halos, with one option changed at a time.

The transfer methods are those of C. Pearson et al., Node-Aware Stencil Communication for Heterogeneous
Supercomputers (2020), Figs. 7 and 8. The sets of transfer methods are those of Fig. 12 (+remote, +colo,
+peer, +kernel), and one further set with mailboxes.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from halocline.errors import InputError
from halocline.io.table import Table, table_of
from halocline.lang.grid import AXES, Grid
from halocline.model.execute import execute
from halocline.plan.communication import COMMUNICATIONS
from halocline.plan.layout import lay_out
from halocline.plan.machine import Machine
from halocline.plan.placement import STRATEGIES as PLACEMENTS
from halocline.plan.traffic import Traffic
from halocline.plan.transfer import MAILBOXES, SETS, UNFIT_ON_DEVICES
from halocline.ranges import REPEATS
from halocline.run.domain.execution import chosen_devices
from halocline.run.engine.prepared import PassTimer
from halocline.run.ranks.mpi import world
from halocline.run.tuning.patches import run_in_turn
from halocline.study.measurement import Measurement, group_by
from halocline.study.measuring.exchange import Bench, busiest_rank_traffic, exchange_schedule, received_text
from halocline.study.measuring.overlap import heat
from halocline.words import duration

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEP_NOTE = (
    "Times of whole steps of the heat equation, because an exchange alone has no computation to overlap."
)
STEP_GROUPS = ("halos of a program", "overlap", "communication")  # groups that time whole steps
DECOMPOSITIONS = ("optimal", "bisection", "1d-x", "1d-y", "1d-z")


def variants(fields: int, radius: int, ndim: int = 3) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the options of all timed variants, by group and name.

    Options of the groups in STEP_GROUPS are those of `halocline.Execution`. All other options are those of
    `halocline.study.measuring.exchange.Bench`.
    """
    narrow_radii = [radius] + [1] * (fields - 1)
    decompositions = [
        name for name in DECOMPOSITIONS if not name.startswith("1d-") or name[3:] in AXES[:ndim]
    ]
    return {
        "transfer methods": {name: {"methods": methods} for name, methods in (SETS | MAILBOXES).items()},
        "edges and corners": {"with": {"corners": True}, "without": {"corners": False}},
        "halos": {
            "uniform": {"radius": radius},
            f"per field ({', '.join(map(str, narrow_radii))})": {"radius": narrow_radii},
        },
        "decompositions": {name: {"decomposition": name} for name in decompositions},
        "halos of a program": {"uniform": {"halo": "uniform"}, "as read": {"halo": "read"}},
        "overlap": {"without": {"overlap": False}, "with": {"overlap": True}},
        "communication": {name: {"communication": name} for name in COMMUNICATIONS},
    }


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
    """Time all variants in turn, in several rounds. All ranks must call this function.

    Parameters
    ----------
    shape : sequence of int
        Number of cells along each axis of the grid, which is periodic.
    fields, radius, dtype, **execution
        Common options; see `halocline.study.measuring.exchange.Bench`. A variant may change some of them.
    repeats : int
        Number of rounds, after one round that does not count.
    on_progress : callable, optional
        Function that is called with the number of completed rounds.

    Returns
    -------
    list of dict
        Record of each variant, with these keys:

        - `group`, `name`: group and name of the variant.
        - `parts`: number of subdomains along each axis.
        - `messages`: number of messages that the busiest rank sends; None if unknown.
        - `bytes_by_method`: bytes that the subdomains of the busiest rank receive, by transfer method. The
          bytes of MPI messages that are not packed have the separate key "mpi not packed".
        - `seconds`: median time of one exchange on the slowest rank.
        - `ratio`: `seconds` of the first variant of the group, divided by `seconds` of this variant.
        - `predicted`: True if the time comes from the model instead of a run.
        - `whole`: True if whole steps with their kernels were timed.

    Raises
    ------
    InputError
        An option is invalid.
    """
    REPEATS.check("repeats", repeats)
    common_options = {"fields": fields, "radius": radius, "dtype": dtype, **execution}
    benches: dict[tuple[str, str], PassTimer] = {}
    known_methods: set[tuple[str, ...]] = set()
    bench: PassTimer
    on_devices = chosen_devices(execution.get("device")).interface != "cpu"
    groups = variants(fields, radius, len(shape)).items()
    for group, name, changed_options in (
        (group, *variant) for group, variants_of_group in groups for variant in variants_of_group.items()
    ):
        options = common_options | changed_options
        method_names = options.get("methods", "").split(",")
        if group == "transfer methods" and (
            (on_devices and not UNFIT_ON_DEVICES.keys().isdisjoint(method_names))
            or ("peer" not in method_names and world().mpi is None)
        ):
            continue  # the set contains an unavailable method
        try:
            bench = heat(shape, **options) if group in STEP_GROUPS else Bench(shape, **options)
        except InputError:
            if group != "decompositions":
                raise  # only variants of the decomposition may fail: the grid may be too thin for slabs
            continue
        if group in STEP_GROUPS:
            bench.calibrate()
        methods = bench.prepared.plan.transfers.methods
        if group == "transfer methods" and methods in known_methods:
            continue  # another set has the same available methods
        known_methods.add(methods)
        benches[group, name] = bench
    for bench in benches.values():
        bench.run()
    records: list[Measurement] = []
    times = run_in_turn({variant: bench.run for variant, bench in benches.items()}, repeats, on_progress)
    for (group, name), bench in benches.items():
        parts, traffic = bench.prepared.plan.decomposition.parts, busiest_rank_traffic(bench.prepared)
        records.append(_record(records, group, name, parts, statistics.median(times[group, name]), traffic))
    return records


def _record(
    earlier_records: Sequence[Measurement],
    group: str,
    name: str,
    parts: tuple[int, ...],
    seconds: float,
    traffic: tuple[int | None, dict[str, int]],
    *,
    predicted: bool = False,
) -> Measurement:
    """Return the record of a variant; see `measure` for the keys.

    Parameters
    ----------
    earlier_records : sequence of dict
        Records of the earlier variants.
    traffic : (int or None, dict)
        Number of messages, and bytes by transfer method, as returned by `busiest_rank_traffic`.
    """
    first = next((other["seconds"] for other in earlier_records if other["group"] == group), seconds)
    messages, bytes_by_method = traffic
    return {
        "group": group,
        "name": name,
        "parts": parts,
        "messages": messages,
        "bytes_by_method": bytes_by_method,
        "seconds": seconds,
        "ratio": first / seconds,
        "predicted": predicted,
        "whole": group in STEP_GROUPS,
    }


def predict_placements(
    machine: Machine, shape: Sequence[int], *, fields: int = 4, radius: int = 3, dtype: str = "float32"
) -> list[Measurement]:
    """Predict the time of an exchange on the devices of one node, for each placement of the subdomains.

    Parameters
    ----------
    machine : Machine
    shape : sequence of int
        Number of cells along each axis of the grid, which is periodic.
    fields, radius, dtype
        See `halocline.study.measuring.exchange.exchange_schedule`.
    """
    grid = Grid(tuple(shape), periodic=True)
    schedule = exchange_schedule(grid, fields, dtype, radius)
    count = len(machine.devices)
    records: list[Measurement] = []
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
        seconds, parts = execute(schedule, layout, machine).seconds, layout.decomposition.parts
        name = f"{placement}, {machine.name}"
        records.append(_record(records, "placement", name, parts, seconds, (None, {}), predicted=True))
    return records


GROUP = itemgetter("group")  # function that returns the group of a record


def _unit(record: Measurement) -> str:
    """Return the unit of a time: "per step" or "per exchange"."""
    return "per step" if record["whole"] else "per exchange"


def table(records: Sequence[Measurement]) -> list[Table]:
    """Return one table for each group."""
    tables = []
    for group, members in group_by(records, GROUP).items():
        first = members[0]
        columns: dict[str, Callable[[Measurement], str]] = {
            "": lambda m: m["name"],
            "subdomains": lambda m: " x ".join(map(str, m.get("parts", ()))),
            "messages": lambda m: "" if m["messages"] is None else f"{m['messages']}",
            "bytes into the\nbusiest rank": received_text,
            f"time\n{_unit(first)}": lambda m: duration(m["seconds"]),
            f"speed-up over\n{first['name']}": lambda m: f"{m['ratio']:.2f}",
        }
        note = "Predicted by the model from the plan and the machine file." if first["predicted"] else ""
        note = STEP_NOTE if first["whole"] else note
        tables.append(table_of(group.capitalize(), members, columns, left=2, note=note))
    return tables


def plot(records: Sequence[Measurement]) -> Figure:
    """Return a figure of the time of every variant, with a panel for each group."""
    from matplotlib.figure import Figure

    from halocline.io.style import COLOURS, MUTED

    groups = group_by(records, GROUP)
    heights = [len(members) for members in groups.values()]
    figure = Figure(figsize=(8.4, 0.9 + 0.42 * len(records)), layout="constrained")
    all_axes = figure.subplots(len(groups), 1, height_ratios=heights, squeeze=False)[:, 0]
    for axes, (group, members) in zip(all_axes, groups.items(), strict=True):
        is_predicted, positions = members[0]["predicted"], range(len(members))
        times = [1e3 * m["seconds"] for m in members]
        axes.barh(positions, times, color=MUTED if is_predicted else COLOURS[0])
        axes.set_yticks(positions, [m["name"] for m in members])
        axes.invert_yaxis()
        axes.set_title(group.capitalize() + (" (predicted)" if is_predicted else ""), loc="left")
        axes.set_xlim(0, None)
    figure.supxlabel("milliseconds per exchange, or per step in the groups that time whole steps")
    return figure


def verdicts(records: Sequence[Measurement]) -> list[str]:
    """Return a sentence for each group, which compares its fastest variant with the other variants."""
    sentences = []
    for group, members in group_by(records, GROUP).items():
        best = min(members, key=lambda m: m["seconds"])
        result = (
            f"is {'predicted to be ' * best['predicted']}fastest, {duration(best['seconds'])} {_unit(best)}"
        )
        other_times = [m["seconds"] for m in members if m is not best]
        ratio = statistics.median(other_times) / best["seconds"] if other_times else 1.0
        sentences.append(
            f"{group.capitalize()}: {best['name']} {result}; the others take {ratio:.2f} times as long "
            "(median)."
        )
    return sentences
