"""One HTML page that holds a whole study: no file beside it, no script, fit for print."""

from __future__ import annotations

import io
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halocline.study.measure import Measurement, devices_of
from halocline.study.table import Table, amount

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE = """
:root { --ink: #1c2b33; --muted: #5f717c; --faint: #d7dfe4; --wash: #f5f8f9; --accent: #0072b2; }
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: white;
  font: 16px/1.55 system-ui, "Segoe UI", "Helvetica Neue", Helvetica, Arial, sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 3.5rem 1.5rem 5rem; }
header { border-top: 4px solid var(--accent); padding-top: 1.2rem; margin-bottom: 2.2rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .4rem; font-weight: 650; letter-spacing: -.01em; }
h2 { font-size: 1.15rem; margin: 2.8rem 0 .8rem; font-weight: 650; }
.lead { color: var(--muted); margin: 0; }
ul.said { padding: .9rem 1.2rem .9rem 2.2rem; margin: 0 0 2rem; background: var(--wash); border-radius: 6px; }
figure { margin: 0 0 2rem; }
figure.table { overflow-x: auto; }
.tables { display: grid; grid-template-columns: repeat(auto-fit, minmax(26rem, 1fr)); column-gap: 3rem; }
.tables table { width: 100%; }
figcaption { font-weight: 600; margin-bottom: .5rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .93rem; min-width: 40%; }
th { font-weight: 600; color: var(--muted); vertical-align: bottom; border-bottom: 1.5px solid var(--ink); }
th, td { text-align: right; padding: .32rem .7rem; white-space: nowrap; }
th.name, td.name { text-align: left; }
th:first-child, td:first-child { padding-left: 0; }
tbody tr { border-bottom: 1px solid var(--faint); }
tr.muted td { color: var(--muted); font-style: italic; }
.note { color: var(--muted); font-size: .88rem; margin: .5rem 0 0; }
svg { max-width: 100%; height: auto; display: block; font-family: inherit; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(20rem, 1fr)); gap: 1.2rem; }
.pair img { width: 100%; height: auto; display: block; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1.4rem; margin: 0;
  font-size: .93rem; }
dt { color: var(--muted); } dd { margin: 0; overflow-wrap: anywhere; }
pre { background: var(--wash); padding: .8rem 1rem; border-radius: 6px; white-space: pre-wrap;
  font-size: .86rem; line-height: 1.45; margin: 0; }
footer { margin-top: 3rem; padding-top: 1rem; border-top: 1px solid var(--faint); color: var(--muted);
  font-size: .88rem; }
@media print { main { padding: 0; max-width: none; } figure, tr { break-inside: avoid; }
  h2 { break-after: avoid; } body { font-size: 11pt; } }
"""


CLOCK = (
    "Time is wall clock from a barrier before the solve to one after it. "
    "Memory that is observed is VmRSS of the host, summed over the ranks, 1 GB = 1024³ bytes."
)

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
        figures = self.figure if isinstance(self.figure, Sequence) else [self.figure]
        parts = [
            f"<header><h1>{escape(self.title)}</h1>\n<p class='lead'>{escape(self.lead)}</p></header>",
            _list(self.said),
            *(f"<figure>{svg(figure)}</figure>" for figure in figures),
            *_groups(self.tables),
            _pictures(self.pictures),
            "<h2>Where this was measured</h2>",
            _facts(self.facts),
            "<h2>How to do it again</h2>",
            f"<pre>{escape(self.command)}</pre>",
        ]
        if self.commands:
            parts.append('<p class="note">It runs these, each as a process of its own:</p>')
            parts.append("<pre>" + escape("\n".join(self.commands)) + "</pre>")
        body = "\n".join(part for part in parts if part)
        return (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{escape(self.title)}</title>\n<style>{STYLE}</style>\n</head>\n<body><main>\n{body}\n"
            f"<footer>{escape(self.footer)}</footer>\n"
            "</main></body>\n</html>\n"
        )


def _groups(tables: Sequence[Table]) -> list[str]:
    """The tables under each heading, side by side where they fit."""
    groups: list[list[Table]] = []
    for table in tables:
        if table.heading or not groups:
            groups.append([])
        groups[-1].append(table)
    made = []
    for group in groups:
        heading = f"<h2>{escape(group[0].heading)}</h2>\n" if group[0].heading else ""
        kind = "tables" if len(group) > 1 else "single"
        made.append(f'{heading}<div class="{kind}">' + "\n".join(t.html() for t in group) + "</div>")
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


def _list(sentences: Sequence[str]) -> str:
    if not sentences:
        return ""
    return '<ul class="said">' + "".join(f"<li>{escape(s)}</li>" for s in sentences) + "</ul>"


def _pictures(pictures: Sequence[tuple[str, Path]]) -> str:
    found = "".join(
        f'<figure><img alt="{escape(title)}" src="data:image/png;base64,'
        f'{b64encode(path.read_bytes()).decode()}"></figure>'
        for title, path in pictures
    )
    return f'<div class="pair">{found}</div>' if found else ""


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
    return {
        **facts_of_machine(one["machine"]),
        **({"devices": devices_of(measurements[-1])} if one["devices"] else {}),
        "environment": ", ".join(f"{k}={v or 'not set'}" for k, v in one["environment"].items()),
        "options": ", ".join(f"{k.replace('_', ' ')} {one[k]}" for k in shared),
        "time": f"{measurements[0]['started']} to {measurements[-1]['started']}",
    }


def _facts(facts: Mapping[str, str]) -> str:
    return "<dl>" + "".join(f"<dt>{k}</dt><dd>{escape(v)}</dd>" for k, v in facts.items()) + "</dl>"
