"""Command `halocline doctor`."""

import sys
from typing import Annotated

from halocline.cli import options
from halocline.cli.commands import command, group
from halocline.cli.output import check_files, is_first_rank, report_written, say, write_json

app = group("")


@command(app, "doctor")
def doctor(json: Annotated[str | None, options.JSON] = None) -> None:
    """Check the installation and report missing parts with advice.

    The checks cover the compiler, MPI, cores, memory bandwidth, the cache folder and GPUs. The exit status is
    0 if a solve can run; otherwise it is 1.

    Examples
    --------
    halocline doctor
    halocline doctor --json machine.json
    """
    from halocline.cli.doctor import CHECKS
    from halocline.cli.doctor.finding import line
    from halocline.run.host.machine import this_machine

    check_files(json)
    if not is_first_rank():
        return
    findings = []
    for check in CHECKS:
        for finding in check(this_machine()):
            findings.append(finding)
            if json != "-":
                say(line(finding))
    is_able = all(f.state == "found" for f in findings if f.is_required)
    facts = {"able": is_able, "findings": [finding.as_dict() for finding in findings]}
    write_json(json, {**facts, "machine": this_machine().as_dict()})
    if json != "-":
        if is_able:
            say("\nA solve can run. Try: halocline solve poisson --n 512")
        else:
            say("\nNo solve can run yet. Install the parts marked ✗ above.")
        report_written([json])
    if not is_able:
        sys.exit(1)
