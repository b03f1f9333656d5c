"""Study of vector lengths and compilers (Mendygral et al. 2017, Section 3.1.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from halocline.compile.cxx import VECTOR_BITS
from halocline.compile.processor import widest_vector
from halocline.errors import InputError
from halocline.run.domain.execution import chosen_devices
from halocline.study.kernels import COMPILERS, VECTOR_LENGTHS
from halocline.study.measurement import Measurement
from halocline.study.measuring.instructions import with_instructions
from halocline.study.reporting import columns as c
from halocline.study.reporting import vectors
from halocline.study.study import Run, Study, StudyRequest


class Vectors(Study):
    """Study that counts the instructions of each kernel library."""

    def option_sets(self, request: StudyRequest) -> list[dict[str, Any]]:
        """Return the environments of all combinations of compilers and vector lengths.

        The default vector lengths are those of this CPU.
        """
        device = chosen_devices(request.command.device)
        if device.interface != "cpu":
            raise InputError(f"--device {device}: vector lengths apply only to CPUs. Use --device cpu.")
        lengths = ",".join(str(bits) for bits in VECTOR_BITS if bits <= (widest_vector() or 128))
        study_options = {**request.study_options, "vectors": request.study_options.get("vectors") or lengths}
        sets = super().option_sets(replace(request, study_options=study_options))
        return [
            {"environment": {**request.command.environment, **options_of_set["environment"]}}
            for options_of_set in sets
        ]

    def add_derived_results(self, runs: Sequence[Run], measurements: list[Measurement]) -> list[Measurement]:
        """Return the measurements with the number of instructions per cell and step."""
        return with_instructions(runs, measurements)


STUDY = Vectors(
    "vectors",
    title="Vector lengths",
    about="Compare compilers, and vector lengths from 64 to 512 bits.",
    help="The study runs kernels for each compiler and each vector length (HALOCLINE_VECTORS; 64 bits means "
    "scalar code), as in Fig. 3 and Table 4 of Mendygral et al. 2017. The report contains the time of a cell "
    "update, the number of instructions and the share of the peak. The first runs compile the kernels.",
    examples=("halocline study vectors blast --n 64,64,64 --threads 1",),
    contents=(c.SAME_BITS, vectors.CONTENTS),
    varied_options=(COMPILERS, VECTOR_LENGTHS),
    ranks="1",
)
