"""A trade study as a file: which chip, which parameters move, over which kernels, and what is to be decided.

Every field is checked when the file is read; what is wrong is one sentence that names the field and what would be valid.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from simulator.errors import UserError
from simulator.hw.catalog import read_yaml


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, (str, int, float, dict)) else value


Value = int | float | str | list[int | float]
"""An absolute value with or without its unit (``4TB/s``), a factor of the base chip's value (``x1.5``), or a list."""


class Part(BaseModel):
    """A part of a study file; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class KernelEntry(Part):
    """One kernel of the suite: a ``trace`` (.npz), a ``cubin`` with its ``launch``, or a ``tile`` design (a file, or the
    design itself); or all kernels of another file, a ``suite``, at ``weight`` times the weights there.

    ``weight``: share of the workload's time on the base chip. A tile design is built once, for the base chip; ``retune``: the
    best design of the same problem is searched again for each chip.
    """

    name: str | None = None
    trace: str | None = None
    cubin: str | None = None
    launch: str | None = None
    tile: str | dict[str, Any] | None = None
    suite: str | None = None
    kernel: str | None = None
    weight: float = Field(default=1.0, gt=0)
    retune: bool = False

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        given = [name for name in ("trace", "cubin", "tile", "suite") if getattr(self, name)]
        if len(given) != 1:
            has = " and ".join(given) or "none"
            raise ValueError(f"a kernel has exactly one of trace, cubin, tile, suite; this one has {has}")
        if (self.cubin is None) != (self.launch is None):
            raise ValueError("launch goes with cubin: give both, or neither")
        if self.retune and self.tile is None and self.suite is None:
            raise ValueError("retune goes with a tile design; a compiled kernel has its tile built in")
        if isinstance(self.tile, dict) and self.name is None:
            raise ValueError("a tile design that is written out needs a name")
        return self

    @property
    def source(self) -> str:
        if isinstance(self.tile, dict):
            return f"tile design {self.tile.get('kind', '')}".strip()
        return str(self.trace or self.cubin or self.tile or self.suite)


class Suite(Part):
    """A file of kernels for studies and for tuning; ``about``: whose workload it is."""

    about: str = ""
    kernels: list[KernelEntry] = Field(min_length=1)


class Range(Part):
    """From one value to another in ``steps`` values; without ``steps`` any value between (for sampling alone)."""

    start: Value = Field(alias="from")
    stop: Value = Field(alias="to")
    steps: int | None = Field(default=None, ge=2, le=1000)


class Axis(Part):
    """One direction of the design space: one ``path``, several ``paths`` with the same values, or ``linked`` paths
    with a list of values each, which move together. Values: ``values``, or ``range``, or ``log_range``."""

    name: str | None = None
    path: str | None = None
    paths: list[str] | None = Field(default=None, min_length=1)
    linked: dict[str, list[Value]] | None = Field(default=None, min_length=1)
    values: Annotated[list[Value], BeforeValidator(_as_list)] | None = Field(default=None, min_length=1)
    range: Range | None = None
    log_range: Range | None = None
    labels: list[str] | None = None

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        where = [name for name in ("path", "paths", "linked") if getattr(self, name) is not None]
        if len(where) != 1:
            raise ValueError(f"an axis has exactly one of path, paths, linked; this one has {' and '.join(where) or 'none'}")
        forms = [name for name in ("values", "range", "log_range") if getattr(self, name) is not None]
        if len(forms) != (0 if self.linked else 1):
            wanted = "no values beside linked" if self.linked else "exactly one of values, range, log_range"
            raise ValueError(f"this axis needs {wanted}, and has {' and '.join(forms) or 'none'}")
        if self.linked and len({len(values) for values in self.linked.values()}) != 1:
            raise ValueError("linked paths move together: give each the same number of values")
        if self.labels is not None and len(self.labels) != self.n_levels:
            raise ValueError(f"{len(self.labels)} labels for {self.n_levels or 'a continuous range of'} values")
        return self

    @property
    def n_levels(self) -> int | None:
        """Number of values, or None for a continuous range."""
        if self.linked:
            return len(next(iter(self.linked.values())))
        if self.values is not None:
            return len(self.values)
        span = self.range or self.log_range
        return span.steps if span else None

    @property
    def hardware_paths(self) -> list[str]:
        return list(self.linked) if self.linked else self.paths or [str(self.path)]

    @property
    def title(self) -> str:
        return self.name or self.hardware_paths[0]


class Scenario(Part):
    """A named chip: values ``set`` on the base, or on the scenario that it comes ``after`` (step by step)."""

    name: str = Field(min_length=1)
    set: dict[str, Value] = Field(min_length=1)
    after: str | None = None


class Sampling(Part):
    """How the axes are combined. ``full``: every combination; ``lhs``, ``sobol``, ``optimize``: ``points`` of them;
    ``none``: each axis alone, the others at the base."""

    method: Literal["full", "lhs", "sobol", "optimize", "none"] = "full"
    points: int | None = Field(default=None, ge=1, le=100_000)
    seed: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _points_where_needed(self) -> Self:
        needs = self.method in ("lhs", "sobol", "optimize")
        if needs != (self.points is not None):
            raise ValueError(f"method {self.method} {'needs' if needs else 'takes no'} points")
        return self


class SecondOrder(Part):
    """Interactions of the ``top`` parameters over the suite's time, by SALib: ``samples`` trajectories (morris) or
    base samples (sobol)."""

    method: Literal["morris", "sobol"] = "morris"
    top: int = Field(default=5, ge=2, le=30)
    samples: int = Field(default=4, ge=2, le=4096)


class Sensitivity(Part):
    """The tornado: every one of ``parameters`` by -``delta`` and +``delta`` (a fraction) around the base chip."""

    delta: float = Field(default=0.25, gt=0, lt=1)
    parameters: Literal["all"] | list[str] = "all"
    second_order: SecondOrder | None = None


class StudySpec(Part):
    """A whole study. ``proxies``: cost, area, power or whatever as formulas over hardware paths; ``constraints``: comparisons
    over them; ``objectives``: formulas over ``time`` (of the suite, base = 1) and the proxies, to be minimised.
    ``instruction_budget``: warp instructions of one projection, about; ``auto``: for each kernel the smallest that agrees
    with the full one on the base chip."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]*$")
    question: str = ""
    base: Annotated[list[str], BeforeValidator(_as_list)] = Field(min_length=1)
    kernels: list[KernelEntry] = Field(min_length=1)
    axes: list[Axis] = []
    scenarios: list[Scenario] = []
    sampling: Sampling = Sampling()
    proxies: dict[str, str] = {}
    constraints: list[str] = []
    objectives: list[str] = Field(default=["time"], min_length=1)
    sensitivity: Sensitivity | None = Sensitivity()
    instruction_budget: Literal["auto"] | Annotated[int, Field(ge=10_000)] = "auto"

    @field_validator("kernels", mode="before")
    @classmethod
    def _some_kernels(cls, value: Any) -> Any:
        if value in (None, []):
            raise ValueError("the suite is empty: name at least one trace, cubin with launch, or tile design")
        return value

    @field_validator("proxies")
    @classmethod
    def _proxy_names(cls, value: dict[str, str]) -> dict[str, str]:
        for name in value:
            if not name.isidentifier() or name in ("time", "base"):
                raise ValueError(f"'{name}' cannot be the name of a proxy; use a plain word other than time and base")
        return value

    @model_validator(mode="after")
    def _names_are_distinct(self) -> Self:
        _require_distinct("scenario", [scenario.name for scenario in self.scenarios])
        _require_distinct("axis", [axis.title for axis in self.axes])
        _require_distinct("base chip", self.base)
        known: set[str] = set()
        for scenario in self.scenarios:
            if scenario.after is not None and scenario.after not in known:
                raise ValueError(f"scenario '{scenario.name}' comes after '{scenario.after}', which is not an earlier scenario")
            known.add(scenario.name)
        if self.sampling.method == "full":
            continuous = [axis.title for axis in self.axes if axis.n_levels is None]
            if continuous:
                raise ValueError(
                    f"axis '{continuous[0]}' has a range without steps, which full combination cannot visit; give steps"
                )
        return self


def load_spec(path: str | Path) -> StudySpec:
    """The study in a YAML file; UserError with one sentence for anything that is not valid."""
    return parse_spec(read_yaml(Path(path), holds="a study (name, base, kernels, axes, ...)"), str(path))


def load_suite_file(path: Path) -> Suite:
    """The suite in a YAML file; UserError with one sentence for anything that is not valid."""
    try:
        return Suite.model_validate(read_yaml(path, holds="a suite (about, kernels)"))
    except ValidationError as error:
        raise UserError(f"{path}: {_sentence(error, 'suite')}") from error


def parse_spec(document: dict[str, Any], where: str = "study") -> StudySpec:
    """The study in a plain dictionary; ``where`` names it in messages."""
    try:
        return StudySpec.model_validate(document)
    except ValidationError as error:
        raise UserError(f"{where}: {_sentence(error)}") from error


def _sentence(error: ValidationError, what: str = "study") -> str:
    """The first problem: its place, its value, and what would be valid there."""
    errors = error.errors(include_url=False)
    place, kind = _place(errors[0]["loc"]), errors[0]["type"]
    if kind == "missing":
        return f"{place} is missing"
    if kind == "extra_forbidden":
        return f"{place} is not a field of a {what}"
    if kind == "value_error":
        message = errors[0]["msg"].removeprefix("Value error, ")
        return f"{place}: {message}" if place else message
    wanted = dict.fromkeys(item["msg"] for item in errors if _place(item["loc"]) == place)
    return f"{place} is {errors[0]['input']!r}: {' or '.join(text[:1].lower() + text[1:] for text in wanted)}"


def _place(location: Sequence[int | str]) -> str:
    """``('axes', 1, 'values')`` -> ``axes[1].values``; names of types, which a choice of types adds, are left out."""
    text = ""
    for part in location:
        if isinstance(part, str) and ("[" in part or part in ("int", "float", "str", "constrained-int")):
            continue
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _require_distinct(what: str, names: Sequence[str]) -> None:
    twice = next((name for index, name in enumerate(names) if name in names[:index]), None)
    if twice is not None:
        raise ValueError(f"the {what} '{twice}' is given twice; give each a name of its own")
