"""HTML page of a study, in a single file without scripts, which can also be printed."""

from __future__ import annotations

import io
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halocline.io.table import Table
from halocline.study.measurement import Measurement
from halocline.study.measuring.command import devices_of
from halocline.study.reporting.report import Report
from halocline.words import amount

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OPTIONS = (  # options of the measurements that the page lists
    *("method", "rtol", "decomposition", "patch", "max_iterations"),
    *("scheme", "dtype", "steps", "warm_up", "settings"),
)


def page(report: Report, figures: Sequence[Figure], pictures: Sequence[Path], **texts: Any) -> str:
    """Return the text of the HTML page of a report.

    Parameters
    ----------
    report : Report
    figures : sequence of Figure
    pictures : sequence of Path
        PNG files that the page contains.
    **texts
        Texts of the page:

        - `title`: heading.
        - `lead`: sentence below the heading.
        - `facts`: machine and software of the measurements by name, if any exist.
        - `command`: command that created the page.
        - `commands`: commands that this command ran as separate processes.
    """
    from jinja2 import Environment, PackageLoader

    environment = Environment(loader=PackageLoader("halocline.study.reporting", "."), autoescape=True)
    return environment.get_template("page.html").render(
        report=report,
        groups=groups(report.tables),
        figures=[svg(figure) for figure in figures],
        pictures=[(path.stem, b64encode(path.read_bytes()).decode()) for path in pictures],
        **texts,
    )


def groups(tables: Sequence[Table]) -> list[list[Table]]:
    """Return groups of tables. A table with a heading begins a group."""
    groups: list[list[Table]] = []
    for table in tables:
        if table.heading or not groups:
            groups.append([])
        groups[-1].append(table)
    return groups


def svg(figure: Figure) -> str:
    """Return a figure as an SVG element. Its text has the font of the page."""
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    return re.sub(r"font(-family)?: [^;\"]*sans-serif", _without_family, text)


def _without_family(match: re.Match[str]) -> str:
    """Return the style of a font without its families, such as "font-size: 10px"."""
    size = re.search(r"[\d.]+px", match[0])
    return f"font-size: {size[0]}" if size else "font-family: inherit"


def facts_of_machine(machine: Mapping[str, Any]) -> dict[str, str]:
    """Return the properties of a machine and its software as texts, by name.

    The argument is the result of `halocline.run.host.machine.Machine.as_dict`.
    """
    caches = ", ".join(f"L{c['level']} {c['bytes'] // 1024:,} KiB" for c in machine["caches"])
    return {
        "host": f"{machine['host']}, {machine['system']}",
        "processor": f"{machine['cpu']}: {machine['cores']} cores, {machine['simd_bits']}-bit vectors",
        "caches": caches,
        "memory": f"{amount(machine['memory_bytes'] or 0)}, {machine['numa_nodes']} NUMA node(s)",
        "compiler": f"{machine['compiler']}: {machine['compiler_version']}",
        "MPI": f"{machine['mpi_version']}",
        "source": f"Halocline {machine.get('version') or '?'}, commit {machine['commit'] or 'unknown'}",
    }


def facts_of_measurements(measurements: Sequence[Measurement]) -> dict[str, str]:
    """Return the machine and software of the measurements, and their common options, as texts by name."""
    first = measurements[0]
    common = [k for k in OPTIONS if first.get(k) and all(m.get(k) == first[k] for m in measurements)]
    common = [k for k in common if k != "scheme" or "method" not in common]  # for solves, both are equal
    return {
        **facts_of_machine(first["machine"]),
        **({"devices": devices_of(measurements[-1])} if first["devices"] else {}),
        "environment": ", ".join(f"{k}={v or 'not set'}" for k, v in first["environment"].items()),
        "options": ", ".join(f"{k.replace('_', ' ')} {first[k]}" for k in common),
        "time": f"{measurements[0]['started']} to {measurements[-1]['started']}",
    }
