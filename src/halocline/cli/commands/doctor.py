"""The command `halocline doctor`."""

import sys
from typing import Annotated

from halocline.cli import options
from halocline.cli.commands import command, group
from halocline.cli.output import check_files, first, say, write_json, written

app = group("")


@command(app, "doctor")
def doctor(json: Annotated[str | None, options.JSON] = None) -> None:
    """Look whether everything is there: compiler, MPI, cores, memory bandwidth, cache folder, GPUs. Says what
    to do about what is missing; exit status 0 where a solve can run.

    Examples
    --------
    halocline doctor
    halocline doctor --json machine.json
    """
    from halocline.cli.doctor import CHECKS
    from halocline.cli.doctor.finding import line
    from halocline.run.host.machine import this_machine

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
    facts = {"able": able, "findings": [finding.as_dict() for finding in findings]}
    write_json(json, {**facts, "machine": this_machine().as_dict()})
    if json != "-":
        if able:
            say("\nA solve can run. Try: halocline solve poisson --n 512")
        else:
            say("\nNo solve can run yet: see what is missing above.")
        written([json])
    if not able:
        sys.exit(1)
