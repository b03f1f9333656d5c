"""Register of the tables and figures of five papers, with the command or a reason for each entry."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True)
class Entry:
    """Table, figure or listing of a paper.

    Attributes
    ----------
    paper : str
        Short name of the paper, such as "umbc". It is the first part of the names of its data files.
    result : str
        Number of the entry in the paper, such as "Fig. 12 (a)".
    kind : {"result", "computed", "set-up", "schematic", "listing"}
        Kind of the entry. A "result" is a measurement, and "computed" is the result of a formula. A "set-up"
        consists of facts on machines and problems. A "schematic" is a drawing, and a "listing" is source
        code.
    subject : str
        Description of the entry.
    command : str
        Command of `halocline` that reproduces the entry; empty if there is none.
    reason : str
        Reason for the absence of a command; empty if there is one.
    """

    paper: str
    result: str
    kind: str
    subject: str
    command: str
    reason: str


with files("halocline.papers").joinpath("register.csv").open() as _file:
    REGISTER = tuple(Entry(**row) for row in csv.DictReader(_file))
