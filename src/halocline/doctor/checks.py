"""All that is looked at, in the order of the report."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from halocline.doctor.devices import cuda, mpi_with_devices, opencl
from halocline.doctor.finding import Finding
from halocline.doctor.host import bandwidth, compiler, mpi, native_code, processor
from halocline.run.host.machine import Machine

CHECKS: tuple[Callable[[Machine], Iterator[Finding]], ...] = (
    *(compiler, native_code, mpi, processor, bandwidth),
    *(cuda, opencl, mpi_with_devices),
)
