"""Output of the results of a study: tables, sentences, data files, a page and pictures."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halocline.cli.output import report_written, say, write, write_json
from halocline.run.host.process import command_line

if TYPE_CHECKING:
    from halocline.study.reporting.report import Report

Files = Mapping[str, Any]  # json, csv, html, pictures


def write_report(
    report: Report,
    results: Files,
    *,
    record: Any,
    rows: str = "",
    run_pictures: Sequence[Path] = (),
    **texts: Any,
) -> None:
    """Print a report, and write the requested files.

    Parameters
    ----------
    report : Report
    results : mapping
        Options json, csv, html and pictures.
    record : object
        Data for the JSON.
    rows : str
        Text of the CSV file.
    run_pictures : sequence of Path
        Picture files that the runs of the study have written.
    **texts
        Other arguments of `halocline.study.reporting.page.page`, except its command.
    """
    json, csv, html, folder = (results.get(name) for name in ("json", "csv", "html", "pictures"))
    if json != "-":
        for table in report.tables:
            say("\n" + table.text())
        say("\n".join(report.sentences))
    write_json(json, record)
    if csv:
        write(csv, rows)
    picture_files = []
    if html or folder:
        from halocline.io.style import save, styled
        from halocline.study.reporting.page import page

        with styled():
            figures = report.figures()
            for name, figure in figures.items():
                if folder:
                    picture_files.append(folder / name)
                    save(figure, picture_files[-1])
            if html:
                command = shlex.join(command_line())
                write(html, page(report, list(figures.values()), run_pictures, command=command, **texts))
    if folder and run_pictures:
        folder.mkdir(parents=True, exist_ok=True)
        picture_files += [Path(shutil.copy(path, folder)) for path in run_pictures]
    report_written([json, csv, html, *picture_files])
