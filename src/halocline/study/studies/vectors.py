"""Vector lengths and compilers: time and instructions of an update (Mendygral et al. 2017, Section 3.1.1)."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import Any

from halocline.compile.driver import VECTOR_BITS, VECTORS
from halocline.errors import InputError
from halocline.run.domain.execution import chosen_devices
from halocline.run.host.machine import this_machine
from halocline.study.measurement import Measurement
from halocline.study.measuring.instructions import with_instructions
from halocline.study.reporting import columns as c
from halocline.study.reporting import vectors
from halocline.study.study import Asked, Run, Study, Sweep

BITS = Sweep("vectors", "--vectors B,B,...", "", words=tuple(map(str, VECTOR_BITS)))


def _variants(asked: Asked) -> list[dict[str, Any]]:
    device = chosen_devices(asked.command.device)
    if device.interface != "cpu":
        raise InputError(f"--device {device}: vectors are those of the processor; use --device cpu")
    has = [str(bits) for bits in VECTOR_BITS if bits <= (this_machine().simd_bits or 128)]
    lengths = BITS.values(asked.given.get("vectors") or ",".join(has))
    paths = [path.strip() for path in (asked.given.get("compilers") or "").split(",")]
    for path in filter(None, paths):
        if shutil.which(path) is None:
            raise InputError(
                f"--compilers: {path} is no program on the PATH; give names or paths of compilers"
            )
    own = [{**asked.command.environment, **({"CXX": path} if path else {})} for path in paths]
    return [{"environment": {**chosen, VECTORS: bits}} for chosen in own for bits in lengths]


class Vectors(Study):
    """Study that counts the instructions of each kernel library."""

    def finish(self, runs: Sequence[Run], measurements: list[Measurement]) -> list[Measurement]:
        return with_instructions(runs, measurements)


STUDY = Vectors(
    "vectors",
    title="Vector lengths",
    about="Vectors of 64 to 512 bits: time of an update, instructions, share of the peak.",
    help="Kernels for each vector length (HALOCLINE_VECTORS; 64 bits is scalar code) by each compiler, as in "
    "Fig. 3 and Table 4 of Mendygral et al. 2017. The first runs compile them.",
    examples=("halocline study vectors blast --n 64,64,64 --threads 1",),
    contents=(c.SAME_BITS, vectors.CONTENTS),
    variants=_variants,
    options=(
        (BITS.form, "Bits of a vector; by default all that this machine has.", None),
        ("--compilers P,P,...", "C++ compilers, each a name or path as CXX takes it.", None),
    ),
    ranks="1",
)
