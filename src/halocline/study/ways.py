"""Comparison of variants of a run: communication, decomposition, MPI library and thread binding.

A variant is a set of options with which a problem is run. The papers on the cavity code of Virginia Tech
(Tables 3, 4 and Figs. 4 to 13) and UMBC HPCF-2018-10 (Tables 4.1 to 4.3) compare such variants.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from halocline.errors import InputError
from halocline.io.table import Table
from halocline.plan.communication import COMMUNICATIONS
from halocline.run.host.mpi_library import PACKAGE
from halocline.study.layout import AFFINITIES
from halocline.study.measurement import Measurement, is_solve, mpi_library, ranks_of_node
from halocline.study.reporting import columns as c
from halocline.study.reporting import quantities as q
from halocline.study.reporting.plots import Panel, draw
from halocline.study.reporting.report import NODES, RANKS, Axis, Contents, Group, by_layout, pivot_table
from halocline.study.study import SUBDOMAIN_OPTIONS, VariedOption
from halocline.words import joined

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _library(text: str) -> str:
    if text != PACKAGE and not Path(text).is_file():
        raise InputError(f"--mpis: there is no file {text}; expected package, or paths of MPI libraries")
    return text


COMPARED_OPTIONS = (
    VariedOption(
        "communication",
        "--communication V,V,...",
        "Communication presets: " + ", ".join(COMMUNICATIONS) + "; see `halocline run --help`.",
        words=tuple(COMMUNICATIONS),
        determined_conditions=("halo", "packing", "overlap", "methods"),
    ),
    VariedOption(
        "gpudirect",
        "--gpudirect on,off",
        "Pass device memory to MPI (on), or copy messages to host memory first (off). This option requires "
        "--communication, and has an effect only on devices.",
        words=("on", "off"),
    ),
    VariedOption(
        "decomposition",
        "--decomposition D,D,...",
        "Decompositions of the grid: optimal, 1d-x, 1d-z, 2d, 3d and all others in `halocline run --help`, "
        "or the number of parts along each axis, such as 4x2.",
    ),
    VariedOption(
        "mpi",
        "--mpis L,L,...",
        "MPI libraries, such as package (MPICH from the Python package mpich) and "
        "/usr/lib/x86_64-linux-gnu/libmpi.so.40 (Open MPI of Debian).",
        convert=_library,
    ),
    VariedOption(
        "environment",
        "--affinity A,A,...",
        "Thread bindings. [bold]close[/]: OMP_PROC_BIND=close with OMP_PLACES=cores. [bold]spread[/]: "
        "OMP_PROC_BIND=spread with OMP_PLACES=cores. [bold]threads[/]: OMP_PROC_BIND=close with "
        "OMP_PLACES=threads. [bold]scatter[/]: KMP_AFFINITY=scatter, for the OpenMP libraries of Intel and "
        "LLVM, but not libgomp. [bold]none[/]: no binding. Default: the setting of the environment.",
        words=tuple(AFFINITIES),
        convert=lambda name: dict(AFFINITIES[name]),
    ),
)


def _environment(measurement: Measurement) -> str:
    """Return the name of the thread binding, and the other environment variables, as text."""
    set_variables = {name: value for name, value in measurement["environment"].items() if value is not None}
    binding = {name: set_variables.pop(name) for name in AFFINITIES["none"] if name in set_variables}
    variables_by_name = {
        name: {k: v for k, v in variables.items() if v} for name, variables in AFFINITIES.items()
    }
    names = [name for name, variables in variables_by_name.items() if variables == binding]
    other_variables = binding | set_variables if not names else set_variables
    return " ".join(
        (*(f"binding {name}" for name in names), *(f"{k}={v}" for k, v in other_variables.items()))
    )


def _growth(measurement: Measurement) -> str:
    return f"growth {measurement['growth']}" if measurement.get("growth") else ""


def _methods_used(measurement: Measurement) -> str:
    methods = measurement.get("methods_used")
    return "methods not recorded" if methods is None else f"by {', '.join(methods) or 'no message'}"


# functions that return the text for a measurement, by the keys in which variants may differ
VARIANT_TEXTS = {
    "communication": lambda m: m.get("communication") or "default",
    "gpudirect": lambda m: "GPUDirect" if m.get("gpudirect") == "on" else "no GPUDirect",
    "decomposition": lambda m: str(m.get("decomposition") or "optimal"),
    "mpi": lambda m: mpi_library(m)[:40],
    "python": lambda m: str(m.get("python") or "this Python"),
    "device": lambda m: str(m.get("device") or "cpu").partition(":")[0],
    "environment": _environment,
    "growth": _growth,
}
OBSERVED_TEXTS = {  # functions for observed keys, used only if no other key distinguishes two runs
    "parts": lambda m: " x ".join(map(str, m["parts"])) if m.get("parts") else "subdomains not recorded",
    "methods_used": _methods_used,
}
# keys that also have an effect on a single subdomain
SINGLE_SUBDOMAIN_KEYS = ("mpi", "python", "device", "environment")


def varied_keys(group: Group) -> list[str]:
    """Return the keys of VARIANT_TEXTS in which the measurements of a group differ.

    The result also contains the keys of OBSERVED_TEXTS in which otherwise equal measurements differ. Options
    that act between subdomains are compared only for runs on several subdomains. The key "python" is omitted
    if the MPI libraries differ.
    """
    with_subdomains = group.select(lambda m: q.subdomains(m) > 1).members or group.members
    names = [
        name
        for name, text_of in VARIANT_TEXTS.items()
        if len(
            set(map(text_of, with_subdomains if name in (*SUBDOMAIN_OPTIONS, "growth") else group.members))
        )
        > 1
    ]
    names = [name for name in names if name != "python" or "mpi" not in names]
    equal_groups = group.split(
        lambda m: (
            q.grid(m),
            by_layout(m),
            f"{m['only']}",
            m["halo"],
            *(VARIANT_TEXTS[name](m) for name in names),
        )
    )
    return names + [
        name
        for name, text_of in OBSERVED_TEXTS.items()
        if any(len(set(map(text_of, equal_group.members))) > 1 for equal_group in equal_groups)
    ]


def unless_varied(contents: Contents) -> Contents:
    """Return contents that are omitted if the group compares several variants."""
    return replace(
        contents, select_group=lambda group: Group([]) if varied_keys(group) else contents.select_group(group)
    )


def labels(group: Group) -> dict[int, str]:
    """Return the variant of each measurement as text, by the `id` of the measurement.

    Runs on one subdomain get the text "one subdomain" if the runs differ only in options that act between
    subdomains.
    """
    names = varied_keys(group)
    functions = VARIANT_TEXTS | OBSERVED_TEXTS
    texts = {id(m): joined(*(functions[name](m) for name in names)) for m in group.members}
    single_subdomain = [m for m in group.members if q.subdomains(m) == 1]
    if len({texts[id(m)] for m in single_subdomain}) == 1 and {*names} <= {*SUBDOMAIN_OPTIONS, "growth"}:
        texts |= {id(m): "one subdomain" for m in single_subdomain}
    return texts


def _base(measurement: Measurement, group: Group) -> Measurement | None:
    """Return the fastest run on one subdomain with equal threads, MPI library, thread binding and device.

    The result is None if there is no such run.
    """
    single_subdomain = group.with_same_threads(measurement).select(lambda m: q.subdomains(m) == 1)
    candidates = (
        m
        for m in single_subdomain.members
        if all(VARIANT_TEXTS[k](m) == VARIANT_TEXTS[k](measurement) for k in SINGLE_SUBDOMAIN_KEYS)
    )
    return min(candidates, key=q.pace, default=None)


def _time(measurement: Measurement, group: Group) -> str:
    return q.nanoseconds(q.ns(measurement))


def _rate(measurement: Measurement, group: Group) -> str:
    """Return ssspnt as text, followed by the efficiency relative to one subdomain in brackets."""
    base = _base(measurement, group)
    share = "" if base is None else f" ({q.percent(measurement['ssspnt'] / base['ssspnt'])})"
    return f"{q.text(measurement['ssspnt'])}{share}"


def _sizes(group: Group, variant_names: dict[int, str]) -> Iterator[tuple[str, Group]]:
    """Yield the size and the measurements of each table.

    A table contains all grids with the same n. If a variant has several grids on one layout, each table
    contains only one grid.
    """
    for size in group.split(lambda m: (m["n"], m["threads"])):
        text = f"n = {size.first['n']}"
        cells = size.split(lambda m: (by_layout(m), variant_names[id(m)]))
        if all(len(cell.split(q.grid)) == 1 for cell in cells):
            yield text, size
        else:
            yield from ((f"{text}, {q.size(grid.first)}", grid) for grid in size.split(q.grid))


def _rows(group: Group, variant_names: dict[int, str]) -> Axis:
    """Return the axis of the rows: the variants, and the ranks per node if the number of nodes varies."""
    order = list(dict.fromkeys(variant_names.values()))

    def per_node(m: Measurement) -> int:
        return ranks_of_node(m) if len(group.split(q.nodes)) > 1 else 0

    return Axis(
        lambda m: (order.index(variant_names[id(m)]), per_node(m)),
        lambda m: variant_names[id(m)] + (f", {per_node(m)} per node" if per_node(m) else ""),
    )


def _tables(group: Group) -> Iterator[Table]:
    variant_names = labels(group)
    columns = NODES if len(group.split(q.nodes)) > 1 else RANKS
    for cells, size in _sizes(group, variant_names):
        table = partial(pivot_table, rows=_rows(group, variant_names), columns=columns, head="variant")
        if is_solve(size.first):
            heading = q.heading(size.first)
            yield table("Wall clock, HH:MM:SS and seconds", size, c.wall_clock, heading=heading)
        else:
            heading = f"{cells}: {q.case_text(size.first)}"
            yield table("Nanoseconds per cell and step", size, _time, heading=heading)
            has_base = any(q.subdomains(m) == 1 for m in size.members)
            note = (
                "ssspnt is 1e-7 cells steps / (np seconds), where np is the number of cores or devices (Eq. "
                "6 of the cavity code). In brackets: efficiency relative to one subdomain"
                + ("." if has_base else " (which was not measured).")
            )
            if all(m["ssspnt"] for m in size.members):
                yield table("ssspnt and efficiency", size, _rate, note=q.wrap_notes(note))
        references = {q.layout(m): m for m in reversed(size.members)}

        def ratio(m: Measurement, g: Group, references: dict[str, Measurement] = references) -> str:
            return f"{q.pace(m) / q.pace(references[q.layout(m)]):.2f}"

        yield table("Time relative to the first row on the same number of ranks", size, ratio)


def _sentences(group: Group) -> Iterator[str]:
    variant_names = labels(group)
    for size in group.split(lambda m: (m["n"], m["threads"])):
        last = size.split(by_layout)[-1]
        slowest, best = max(last.members, key=q.pace), last.best
        if slowest is not best:
            ratio = q.pace(slowest) / q.pace(best)
            yield (
                f"n = {best['n']}, {q.layout(best)}: fastest is {variant_names[id(best)]}; "
                f"{variant_names[id(slowest)]} takes {ratio:.2f} times as long."
            )
    gpudirect_runs = [m for m in group.members if m.get("gpudirect") == "on"]
    if gpudirect_runs and not any("gpu_aware" in (m.get("methods_used") or ()) for m in gpudirect_runs):
        yield (
            "GPUDirect was requested, but MPI cannot send from device memory on this machine. The runs did "
            "not use GPUDirect."
        )


def _figure(group: Group) -> Figure | None:
    steps = group.select(lambda m: m["ssspnt"])
    variant_names = labels(group)
    if not steps.members:
        return None
    order = list(dict.fromkeys(variant_names.values()))
    return draw(
        [
            Panel(
                size,
                lambda m, g: m["ssspnt"],
                f"n = {size.first['n']}",
                "ssspnt",
                line=lambda m: order.index(variant_names[id(m)]),
                label=lambda line: variant_names[id(line.first)],
                log=False,
            )
            for size in steps.split(lambda m: m["n"])
        ]
    )


VARIANT_COMPARISON = Contents(
    _tables,
    _sentences,
    {"ways.png": _figure},
    select_group=lambda group: (
        runs if varied_keys(runs := c.with_first_order(c.whole_runs(group))) else Group([])
    ),
)
