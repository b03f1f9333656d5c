"""`halocline doctor`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

from halocline.cli.doctor.devices import cuda, mpi_with_devices, opencl
from halocline.cli.doctor.finding import Finding
from halocline.cli.doctor.host import bandwidth, compiler, mpi, native_code, processor
from halocline.cli.output import check_files, first, say, write_json, written
from halocline.run.host.machine import Machine, this_machine

CHECKS: tuple[Callable[[Machine], Iterator[Finding]], ...] = (  # in the order of the report
    *(compiler, native_code, mpi, processor, bandwidth),
    *(cuda, opencl, mpi_with_devices),
)


def examine(json: str | None) -> None:
    """Check and print everything that runs need; end with status 1 where no solve can run."""
    check_files(json)
    if not first():
        return
    findings = []
    for check in CHECKS:
        for finding in check(this_machine()):
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
    """Return a finding as a line of the report, with its further lines below."""
    sign = {"found": "✓", "missing": "✗", "absent": "–"}[finding.state]
    text, *more = [*finding.text.splitlines(), *finding.advice.splitlines()]
    return "\n".join([f"{sign} {finding.name:17} {text}", *(f"{'':20}{line}" for line in more)])
