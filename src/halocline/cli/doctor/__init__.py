"""Diagnosis of an installation: findings on its parts, with advice on missing parts."""

from halocline.cli.doctor.devices import cuda, mpi_with_devices, opencl
from halocline.cli.doctor.host import bandwidth, compiler, mpi, native_code, processor

CHECKS = (  # in the order of the report
    *(compiler, native_code, mpi, processor, bandwidth),
    *(cuda, opencl, mpi_with_devices),
)
