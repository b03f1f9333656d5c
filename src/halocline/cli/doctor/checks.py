"""The checks of `halocline doctor`, in the order of its report."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from halocline.cli.doctor.devices import cuda, mpi_with_devices, opencl
from halocline.cli.doctor.finding import Finding
from halocline.cli.doctor.host import bandwidth, compiler, mpi, native_code, processor
from halocline.run.host.machine import Machine

CHECKS: tuple[Callable[[Machine], Iterator[Finding]], ...] = (
    *(compiler, native_code, mpi, processor, bandwidth),
    *(cuda, opencl, mpi_with_devices),
)


def line(finding: Finding) -> str:
    """Return a finding as a line of the report, with its further lines below."""
    sign = {"found": "✓", "missing": "✗", "absent": "–"}[finding.state]
    text, *more = [*finding.text.splitlines(), *finding.advice.splitlines()]
    return "\n".join([f"{sign} {finding.name:17} {text}", *(f"{'':20}{line}" for line in more)])
