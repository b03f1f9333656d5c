"""What tuning leaves in files of the cache, as it must stand there.

Imported where there is such a file: most runs have none, and start sooner without the library that checks it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class KeptPatch(BaseModel):
    """See `halocline.run.tuning.patches.Tuned`."""

    model_config = ConfigDict(strict=True)
    patch: list[Annotated[int, Field(ge=1)]] | None
    gain: Annotated[float, Field(ge=1, allow_inf_nan=False)]
    tried: Annotated[int, Field(ge=1)]


class KeptStrategy(BaseModel):
    """See `halocline.compile.strategy.Strategy`."""

    model_config = ConfigDict(strict=True)
    reads: Literal["direct", "queue", "planes"]
    group: list[int] | None
    march: int | None
    stages: Literal["group", "memory"]
    unroll: int
    resident: int


class KeptKernels(BaseModel):
    """See `halocline.run.tuning.kernels.TunedKernels`."""

    model_config = ConfigDict(strict=True)
    strategy: KeptStrategy | None
    gain: float
    tried: int
