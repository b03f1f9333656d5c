"""One HTML page that holds a whole study: no file beside it, no script, fit for print."""

from __future__ import annotations

import io
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halocline.io.table import Table
from halocline.study.measurement import Measurement
from halocline.study.measuring.command import devices_of
from halocline.words import amount

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OPTIONS = (  # of measurements
    *("method", "rtol", "decomposition", "patch", "max_iterations"),
    *("scheme", "steps", "warm_up", "settings"),
)


@dataclass(frozen=True)
class Page:
    """A study as a page.

    Parameters
    ----------
    title, lead : str
        The heading, and a sentence below it.
    said : sequence of str
        What the study shows, in sentences.
    tables : sequence of Table
    figure : Figure or sequence of Figure
    pictures : sequence of (title, file)
        PNG files that go into the page.
    facts : mapping of str to str
        Where it was measured, and with what.
    command : str
        That made the page.
    commands : sequence of str
        That it ran, each as a process of its own.
    footer : str
        What the numbers mean.
    """

    title: str
    lead: str
    said: Sequence[str]
    tables: Sequence[Table]
    figure: Figure | Sequence[Figure]
    pictures: Sequence[tuple[str, Path]]
    facts: Mapping[str, str]
    command: str
    commands: Sequence[str] = ()
    footer: str = ""

    def html(self) -> str:
        """The text of the page."""
        from jinja2 import Environment, PackageLoader

        figures = self.figure if isinstance(self.figure, Sequence) else [self.figure]
        files = Environment(loader=PackageLoader("halocline.study.reporting", "."), autoescape=True)
        return files.get_template("page.html").render(
            page=self,
            figures=[svg(figure) for figure in figures],
            groups=groups(self.tables),
            pictures=[(title, b64encode(path.read_bytes()).decode()) for title, path in self.pictures],
        )


def groups(tables: Sequence[Table]) -> list[list[Table]]:
    """The tables under each heading."""
    made: list[list[Table]] = []
    for table in tables:
        if table.heading or not made:
            made.append([])
        made[-1].append(table)
    return made


def svg(figure: Figure) -> str:
    """A figure as an element of a page; its text takes the page's font."""
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    return re.sub(r"font(-family)?: [^;\"]*sans-serif", _without_family, text)


def _without_family(match: re.Match[str]) -> str:
    """`font: 10px 'DejaVu Sans', sans-serif` keeps its size and loses its families."""
    size = re.search(r"[\d.]+px", match[0])
    return f"font-size: {size[0]}" if size else "font-family: inherit"


def facts_of_machine(machine: Mapping[str, Any]) -> dict[str, str]:
    """A machine, as `halocline.run.host.machine.Machine.as_dict` describes it, and its software."""
    caches = ", ".join(f"L{c['level']} {c['bytes'] // 1024:,} KiB" for c in machine["caches"])
    return {
        "host": f"{machine['host']}, {machine['system']}",
        "processor": f"{machine['cpu']}: {machine['cores']} cores, {machine['simd_bits']}-bit vectors",
        "caches": caches,
        "memory": f"{amount(machine['memory_bytes'] or 0)}, {machine['numa_nodes']} NUMA node(s)",
        "compiler": f"{machine['compiler']}: {machine['compiler_version']}",
        "MPI": f"{machine['mpi_version']}",
        "source": f"commit {machine['commit'] or 'unknown'}",
    }


def facts_of_measurements(measurements: Sequence[Measurement]) -> dict[str, str]:
    """Machine, software and the options that all measurements share, each fact once."""
    one = measurements[0]
    shared = [k for k in OPTIONS if one.get(k) and all(m.get(k) == one[k] for m in measurements)]
    shared = [k for k in shared if k != "scheme" or "method" not in shared]  # one thing of a linear problem
    return {
        **facts_of_machine(one["machine"]),
        **({"devices": devices_of(measurements[-1])} if one["devices"] else {}),
        "environment": ", ".join(f"{k}={v or 'not set'}" for k, v in one["environment"].items()),
        "options": ", ".join(f"{k.replace('_', ' ')} {one[k]}" for k in shared),
        "time": f"{measurements[0]['started']} to {measurements[-1]['started']}",
    }
