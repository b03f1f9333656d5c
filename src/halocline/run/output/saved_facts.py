"""Validation models for the facts of a checkpoint.

The module is imported only when a checkpoint is read. Other runs start faster without the validation library.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field


def _exact(text: str) -> str:
    """Return the text of a number; raise ValueError if it is not the result of `float.hex`."""
    try:
        float.fromhex(text)
    except (ValueError, OverflowError):
        raise ValueError("Input should be a hexadecimal number such as '0x1.8p+1'") from None
    return text


Exact = Annotated[str, AfterValidator(_exact)]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True)


class SavedField(_Part):
    """Description of a field of a checkpoint."""

    dtype: str
    location: str
    checksum: str


class SavedBlocks(_Part):
    """Active blocks; see `halocline.lang.blocks.Blocks`."""

    counts: list[Annotated[int, Field(ge=1)]]
    active: Annotated[str, Field(pattern="^([0-9a-f]{2})*$")]


class SavedCase(_Part):
    """Problem of a run; see `halocline.problems.problem.Problem.facts`."""

    name: str
    n: list[Annotated[int, Field(ge=1)]]
    settings: dict[str, float | str] = Field(alias="given")
    order: int | None = None
    scheme: str | None = None
    dtype: str = "float64"


class SavedRow(_Part):
    """Row of the diagnostics of a case."""

    step: Annotated[int, Field(ge=0)]


class SavedIdentity(_Part):
    """Texts of the grid and the equations of a run."""

    grid: str
    equations: str


class SavedFacts(_Part):
    """Facts of a checkpoint; see `halocline.run.output.checkpoint.Checkpoints`."""

    identity: SavedIdentity
    parameters: dict[str, Exact]
    time: Exact
    values: dict[str, Exact]
    scalars: dict[str, Exact]
    ran_with: dict[str, Exact]
    fields: dict[str, SavedField]
    run: str
    version: str
    creation_time: str = Field(alias="made")
    command: list[str]
    step: Annotated[int, Field(ge=0)]
    blocks: SavedBlocks | None = None
    case: SavedCase | None = None
    series: list[SavedRow] = Field(default=[])
    method: str | None = None
    history: list[list[Exact]] = Field(default=[])
    rhs_square: Exact | None = None
