"""Results of a study: tables and sentences, then files, a page and pictures."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halocline.cli.output import say, write, write_json, written
from halocline.run.host.process import command_line

if TYPE_CHECKING:
    from halocline.study.reporting.report import Report

Files = Mapping[str, Any]  # json, csv, html, pictures


def leave(
    report: Report,
    results: Files,
    *,
    title: str,
    lead: str,
    record: Any,
    rows: str = "",
    facts: Mapping[str, str] | None = None,
    commands: Sequence[str] = (),
    drawn: Sequence[Path] = (),
) -> None:
    """Print the report, and write what was asked for.

    Parameters
    ----------
    report : Report
    results : mapping
        The options json, csv, html and pictures.
    title, lead : str
        The heading of the page, and the sentence below it.
    record : object
        For the JSON.
    rows : str
        The CSV.
    facts : mapping of str to str, optional
        Where it was measured, for the page.
    commands : sequence of str
        That were run.
    drawn : sequence of Path
        Pictures that runs have drawn.
    """
    json, csv, html, folder = (results.get(name) for name in ("json", "csv", "html", "pictures"))
    if json != "-":
        for table in report.tables:
            say("\n" + table.text())
        say("\n".join(report.said))
    write_json(json, record)
    if csv:
        write(csv, rows)
    made = []
    if html or folder:
        from halocline.io.style import save, styled
        from halocline.study.reporting.page import page

        with styled():
            figures = report.figures()
            for name, figure in figures.items():
                if folder:
                    made.append(folder / name)
                    save(figure, made[-1])
            if html:
                text = page(
                    report,
                    list(figures.values()),
                    drawn,
                    title=title,
                    lead=lead,
                    facts=facts or {},
                    command=shlex.join(command_line()),
                    commands=commands,
                )
                write(html, text)
    if folder and drawn:
        folder.mkdir(parents=True, exist_ok=True)
        made += [Path(shutil.copy(path, folder)) for path in drawn]
    written([json, csv, html, *made])
