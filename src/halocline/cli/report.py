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
    record: Any,
    rows: str = "",
    drawn: Sequence[Path] = (),
    **texts: Any,
) -> None:
    """Print the report, and write what was asked for.

    Parameters
    ----------
    report : Report
    results : mapping
        The options json, csv, html and pictures.
    record : object
        For the JSON.
    rows : str
        The CSV.
    drawn : sequence of Path
        Pictures that runs have drawn.
    **texts
        Those of `halocline.study.reporting.page.page`, but its command.
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
                command = shlex.join(command_line())
                write(html, page(report, list(figures.values()), drawn, command=command, **texts))
    if folder and drawn:
        folder.mkdir(parents=True, exist_ok=True)
        made += [Path(shutil.copy(path, folder)) for path in drawn]
    written([json, csv, html, *made])
