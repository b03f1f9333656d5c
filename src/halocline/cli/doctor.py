"""`halocline doctor`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from halocline.cli.output import check_files, first, say, write_json, written

if TYPE_CHECKING:
    from halocline.doctor.finding import Finding


def examine(json: str | None) -> None:
    """Look at everything, print it, and end with status 1 where no solve can run."""
    from halocline.doctor.checks import CHECKS
    from halocline.run.host.machine import this_machine

    check_files(json)
    if not first():
        return
    findings = []
    for look in CHECKS:
        for finding in look(this_machine()):
            findings.append(finding)
            if json != "-":
                say(line(finding))
    able = all(f.state == "found" for f in findings if f.needed)
    found = [finding.as_dict() for finding in findings]
    write_json(json, {"able": able, "findings": found, "machine": this_machine().as_dict()})
    if json != "-":
        if able:
            say("\nA solve can run. Try: halocline solve poisson --n 512")
        else:
            say("\nNo solve can run yet: see what is missing above.")
        written([json])
    if not able:
        sys.exit(1)


def line(finding: Finding) -> str:
    """A finding as a line of the report, and what belongs to it below."""
    sign = {"found": "✓", "missing": "✗", "absent": "–"}[finding.state]
    text, *more = [*finding.text.splitlines(), *finding.advice.splitlines()]
    return "\n".join([f"{sign} {finding.name:17} {text}", *(f"{'':20}{line}" for line in more)])
