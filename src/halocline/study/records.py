"""Validation of measurement files: models of the records that `halocline study report` reads.

Only this command imports the module, because the import of the validation library is slow.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from math import prod
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from halocline.errors import InputError
from halocline.plan.traffic import Traffic
from halocline.ranges import AXES, NODES, ORDER, POINTS, RANKS, STEPS, THREADS, Range
from halocline.study.measurement import Measurement
from halocline.study.reporting.theory import StepExchanges
from halocline.study.study import studies
from halocline.words import validation_message

MIN_MEASURED, MAX_MEASURED = 1e-12, 1e12  # range of times in seconds, and of other measured numbers
MIN_MAGNITUDE, MAX_MAGNITUDE = (
    1e-100,
    1e100,
)  # range of the numbers of a problem; the ratios of two numbers in this range are finite
T = TypeVar("T")


def _in_range(numbers: Range) -> Any:
    """Return the constraint that a number lies in a range."""
    return Field(ge=numbers.least, le=numbers.most)


def _ratios_are_finite(value: float) -> bool:
    """Return True if the ratios of this number to other valid numbers are finite."""
    return value == 0 or MIN_MAGNITUDE <= abs(value) <= MAX_MAGNITUDE


def _check_ratios(value: float) -> float:
    if not _ratios_are_finite(value):
        raise ValueError(f"Input should be a finite number, but it is {value!r}")
    return value


Count = Annotated[int, Field(ge=1, le=2**63)]
Cells = Annotated[int, _in_range(POINTS)]
Amount = Annotated[int, Field(ge=0, le=2**63)]
Positive = Annotated[float, Field(ge=MIN_MEASURED, le=MAX_MEASURED)]
NotNegative = Annotated[float, Field(ge=0.0, le=MAX_MEASURED)]
Error = Annotated[float, Field(ge=0.0, le=MAX_MAGNITUDE)]
Order = Annotated[int, Field(ge=1, le=ORDER.most)]


class _Model(BaseModel):
    """Base class of the models. It rejects values that need a conversion, and infinite numbers."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class Place(_Model):
    """Device of a subdomain; see `halocline.run.devices.devices.OnDevice`."""

    model_config = ConfigDict(extra="forbid")
    rank: Amount
    subdomain: Amount
    device: str
    name: str
    driver: str


class CacheFacts(_Model):
    """Cache of a core; see `halocline.run.host.machine.Cache`."""

    level: Amount
    bytes: Amount


class MachineFacts(_Model):
    """Machine and software of a run; see `halocline.run.host.machine.Machine`."""

    host: str
    system: str
    cpu: str | None
    cores: Count
    hardware_threads: Count
    numa_nodes: Amount | None
    simd_bits: Amount | None
    memory_bytes: Amount | None
    caches: list[CacheFacts]
    compiler: str | None
    compiler_version: str | None
    mpi_library: str | None
    mpi_version: str | None
    commit: str | None


class OptionFacts(_Model):
    """Options that a study varies. Reports show options without a declared type as text."""

    model_config = ConfigDict(extra="allow")
    environment: dict[str, str | None] = Field(default={})


class RunFacts(_Model):
    """Record of a run. Keys that no table reads are not validated.

    Keys with a default may be missing in records of earlier versions and of some commands.
    """

    study: str
    case: str
    n: Cells
    shape: Annotated[list[Cells], Field(min_length=AXES.least, max_length=AXES.most)]
    cells: Count
    ranks: Annotated[int, _in_range(RANKS)]
    threads: Annotated[int, _in_range(THREADS)]
    nodes: Annotated[int, _in_range(NODES)] | None = None
    hosts: Annotated[int, _in_range(NODES)] | None = None
    ranks_of_node: Count | None = None
    parts: list[Count] = Field(default=[])
    methods_used: list[str] = Field(default=[])
    decomposition: str | None = None
    communication: str | None = None
    gpudirect: str | None = None
    device: str | None = None
    python: str | None = None
    ranks_per_node: Count | None = None
    cores_or_devices: Count = 1
    devices: list[Place]
    seconds: Positive
    times: Annotated[list[Positive], Field(min_length=1)]
    repeats: Count = 1
    steps: Annotated[int, _in_range(STEPS)]
    order: Annotated[int, _in_range(ORDER)] | None
    scheme: str | None
    dtype: str | None = None
    settings: str | None = None
    only: Literal["compute", "exchange", "synchronisation"] | None
    halo: Literal["read", "faces", "edges", "uniform"]
    patch: str | None = None
    schedule: str | None = None
    growth: Amount | None = None
    checksum: str | None
    ns_per_cell_step: Positive
    ssspnt: NotNegative | None
    share_of_bound: NotNegative | None
    joules_per_cell_step: Positive | None
    varied: OptionFacts = OptionFacts()
    base: OptionFacts = OptionFacts()
    watts: Positive | None = None
    ulps: NotNegative | None = None
    automatic: dict[str, float] = Field(default={})
    automatic_for: list[Cells] = Field(default=[])
    command: str
    started: str
    environment: dict[str, str | None]
    machine: MachineFacts

    @model_validator(mode="after")
    def _consistent(self) -> RunFacts:
        if self.cells != prod(self.shape):
            raise ValueError(f"cells is {self.cells}; expected {prod(self.shape)}, as shape is {self.shape}")
        if self.automatic and not self.automatic_for:
            raise ValueError("automatic_for: Field required, as automatic has values")
        if self.ranks > self.cells:
            raise ValueError(f"ranks is {self.ranks}; expected at most {self.cells}, as many as cells")
        return self


class InstructionFacts(_Model):
    """Number of floating-point instructions per cell and step."""

    scalar: NotNegative
    vector: NotNegative


class StepFacts(RunFacts):
    """Record of the steps of a case or file."""

    flops_per_cell_step: NotNegative
    share_of_peak: NotNegative | None
    joules_of: list[str]
    instructions: InstructionFacts | None = None


class SolveFacts(RunFacts):
    """Record of a linear solve."""

    ns_per_cell_step: Positive | None  # type: ignore[assignment]  # None without iterations
    checksum: str
    dof: Count
    dim: Annotated[int, _in_range(AXES)]
    method: str
    iterations: Annotated[int, _in_range(STEPS)]
    bandwidth_share: NotNegative | None


class ConvergedFacts(SolveFacts):
    """Record of a linear solve in a convergence study."""

    rtol: Annotated[float, Field(gt=0.0, le=1.0)]
    converged: bool
    error_max: Error | None
    memory_bytes: Amount


class ErrorFacts(StepFacts):
    """Record of a run whose error is compared with the errors on other grids."""

    panel: str
    line: str
    expected_order: Order | None
    error: Error | None
    error_is: Annotated[str, Field(min_length=1)]
    time: float | None


class ExtrapolatedFacts(_Model):
    """Facts about extrapolated numbers; see `halocline.study.reporting.extrapolation.facts`."""

    names: Annotated[list[str], Field(min_length=1)]
    published: dict[str, Annotated[float, AfterValidator(_check_ratios)]]
    source: str
    noise: NotNegative
    steps: Annotated[int, _in_range(STEPS)] | None


class SteadyFacts(StepFacts):
    """Record of a run to a steady state, with the quantities that the study extrapolates."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Any]
    panel: str
    line: str
    expected_order: Order
    spacing: Annotated[float, Field(ge=MIN_MAGNITUDE, le=MAX_MAGNITUDE)]
    extrapolated: ExtrapolatedFacts

    @model_validator(mode="after")
    def _has_numbers(self) -> SteadyFacts:
        for name in self.extrapolated.names:
            value: Any = self.__pydantic_extra__.get(name)
            is_number = isinstance(value, float | int) and not isinstance(value, bool)
            if not is_number or not _ratios_are_finite(value):
                raise ValueError(f"{name}: Input should be a finite number, but it is {value!r}")
        return self


class ExchangeFacts(RunFacts):
    """Record of the exchange of halos without steps."""

    fields: Count
    radius: Amount
    dtype: str
    methods: list[str]
    methods_asked: str
    unavailable: dict[str, str] = Field(default={})
    bytes_by_method: dict[str, Amount]


class PlacementFacts(RunFacts):
    """Record of the exchange of halos with a placement of subdomains on devices."""

    placement: str
    links: str
    link_time: NotNegative | None


class TrafficFacts(_Model):
    """Bytes of an exchange; see `halocline.plan.traffic.Traffic`."""

    weights: tuple[tuple[tuple[Annotated[int, Field(ge=-1, le=1)], ...], Count], ...]
    layers: tuple[tuple[Amount, Amount], ...]


class ExchangedFacts(_Model):
    """Exchanges of a step; see `halocline.study.reporting.theory.StepExchanges`."""

    traffic: TrafficFacts
    thickness: tuple[Amount, ...]
    periodic: Annotated[tuple[bool, ...], Field(min_length=AXES.least, max_length=AXES.most)]

    @model_validator(mode="after")
    def _has_one_number_of_axes(self) -> ExchangedFacts:
        axes = len(self.periodic)
        lengths = {
            "thickness": len(self.thickness),
            "traffic.layers": len(self.traffic.layers),
            **{
                f"traffic.weights.{n}": len(direction)
                for n, (direction, _) in enumerate(self.traffic.weights)
            },
        }
        for name, length in lengths.items():
            if length != axes:
                raise ValueError(f"{name} has {length} axes; expected {axes}, as periodic has")
        return self


class TheoryFacts(_Model):
    """Constants of the closed formula; see `halocline.study.reporting.theory.Theory`."""

    exchanged: tuple[tuple[Annotated[int, _in_range(ORDER)] | None, ExchangedFacts], ...] = ()


def _facts_of(record: Mapping[str, Any]) -> type[RunFacts]:
    """Return the model of a record, which depends on its study and its keys."""
    study = studies().get(record["study"])
    runs_to_end = study is not None and study.runs_to_end
    if not record.keys().isdisjoint(("dof", "converged")):
        return ConvergedFacts if runs_to_end else SolveFacts
    if runs_to_end:
        return SteadyFacts if "extrapolated" in record else ErrorFacts
    models: dict[str, type[RunFacts]] = {"exchange": ExchangeFacts, "placement": PlacementFacts}
    return models.get(record["study"], StepFacts)


def read(path: Path) -> tuple[list[Measurement], dict[int | None, StepExchanges] | None]:
    """Return the measurements of a file, and the exchanges of a step for each order of differences.

    The exchanges are None if the file contains no constants of the closed formula.

    Raises
    ------
    InputError
        The file cannot be read, contains no measurements of a study, or contains an invalid record.
    """
    try:
        data = json.loads(path.read_text())
    # a ValueError means that the file is not text, is not JSON, or contains a number with too many digits
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"cannot read {path}: {error}") from None
    measurements = data.get("measurements") if isinstance(data, dict) else data
    if not isinstance(measurements, list):
        raise InputError(
            f"{path} contains no measurements of a study. Expected a file that the option --json of a study "
            "wrote."
        )
    facts = data if isinstance(data, dict) else {}
    for number, record in enumerate(measurements, 1):
        label = f"{path}, record {number}"
        if not isinstance(record, dict) or not isinstance(record.get("study"), str):
            raise InputError(
                f"{label} is not a measurement of a study. Expected a file that the option --json of a study "
                "wrote."
            )
        _validate(_facts_of(record).model_validate, record, label)
    exchanged = None
    if "theory" in facts:
        # A strict model accepts a JSON array as a tuple, but no Python list.
        text = json.dumps(facts["theory"])
        theory = _validate(TheoryFacts.model_validate_json, text, f"{path}, theory")
        exchanged = {
            order: StepExchanges(
                Traffic(entry.traffic.weights, entry.traffic.layers), entry.thickness, entry.periodic
            )
            for order, entry in theory.exchanged
        }
        axes = {len(exchange.periodic) for exchange in exchanged.values()}
        for number, record in enumerate(measurements, 1):
            if axes - {len(record["shape"])}:
                raise InputError(
                    f"{path}, record {number}: 'shape' is {record['shape']}, but 'theory' describes a grid "
                    f"with {', '.join(map(str, sorted(axes)))} axes. Measure the study again."
                )
    for key, value in _invalid_values(facts or measurements):
        raise InputError(f"{path}: {key} is {value!r}; expected a finite number or a valid text")
    return measurements, exchanged


def _validate(validate: Callable[[Any], T], record: Any, label: str) -> T:
    try:
        return validate(record)
    except ValidationError as error:
        first, *further_errors = error.errors()
        count_text = f" (and {len(further_errors)} more)" if further_errors else ""
        raise InputError(
            f"{label}: {validation_message(first)}{count_text}. Measure the study again, or leave the file "
            "out."
        ) from None


def _invalid_values(value: Any, position: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the position and value of each infinite or NaN number and of each text with invalid Unicode."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _invalid_values(key, f"key {key!r}")
            yield from _invalid_values(item, f"{position}.{key}".lstrip("."))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _invalid_values(item, f"{position}.{number}".lstrip("."))
    elif (isinstance(value, float) and not math.isfinite(value)) or (
        isinstance(value, str) and any("\ud800" <= c <= "\udfff" for c in value)
    ):
        yield position, value
