"""Every family of designs that can be tuned: its problem, its space, its fast screen. A new one is one entry here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pydantic import BaseModel, ValidationError

from simulator.errors import UserError
from simulator.hw.config import HardwareConfig
from simulator.kernels.families import sentence_of
from simulator.tuning import attention_space, convolution_space, gemm_columns, gemm_model, gemm_space, normalization_space
from simulator.tuning.designs import Designs, Estimate


@dataclass(frozen=True)
class Tunable:
    """``problem``: model of what is asked: ``kind``, the integer ``extents``, ``dtype``, and whatever else the design model has
    under the same names; ``space(problem, hw)``: legal designs, one a row; ``estimate(problem, designs, hw)``: their times,
    about; ``design_of(problem, row)`` and back, ``row_of(design)``; ``near``: columns in which near-copies agree, the first two
    being the tile; ``steps``: columns that change together in one step of the search; ``preference(designs)``: reasons to
    take one of equals first; ``requirements(design)``: of which number each extent must be a multiple."""

    problem: type[BaseModel]
    extents: tuple[str, ...]
    space: Callable[[Any, HardwareConfig], Designs]
    estimate: Callable[[Any, Designs, HardwareConfig], Estimate]
    design_of: Callable[[Any, dict[str, int]], BaseModel]
    row_of: Callable[[Any], dict[str, int]]
    near: tuple[str, ...]
    steps: tuple[tuple[str, ...], ...]
    preference: Callable[[Designs], tuple[np.ndarray, ...]]
    requirements: Callable[[Any], dict[str, int]]


_GEMM = Tunable(
    problem=gemm_columns.GemmProblem,
    extents=("m", "n", "k"),
    space=gemm_space.space,
    estimate=gemm_model.estimate,
    design_of=gemm_columns.design_of,
    row_of=gemm_columns.row_of,
    near=gemm_space.NEAR,
    steps=gemm_space.STEPS,
    preference=gemm_space.preference,
    requirements=gemm_space.requirements,
)

TUNABLE = {
    "gemm": _GEMM,
    "convolution": replace(
        _GEMM,
        problem=convolution_space.ConvolutionProblem,
        extents=("batch", "channels", "filters"),
        space=convolution_space.space,
        requirements=convolution_space.requirements,
    ),
    "attention": Tunable(
        problem=attention_space.AttentionProblem,
        extents=("batch", "seq_q", "seq_kv"),
        space=attention_space.space,
        estimate=attention_space.estimate,
        design_of=attention_space.design_of,
        row_of=attention_space.row_of,
        near=attention_space.NEAR,
        steps=attention_space.STEPS,
        preference=attention_space.preference,
        requirements=attention_space.requirements,
    ),
    **{
        kind: Tunable(
            problem=normalization_space.NormalizationProblem,
            extents=("rows", "columns"),
            space=normalization_space.space,
            estimate=normalization_space.estimate,
            design_of=normalization_space.design_of,
            row_of=normalization_space.row_of,
            near=normalization_space.NEAR,
            steps=normalization_space.STEPS,
            preference=normalization_space.preference,
            requirements=normalization_space.requirements,
        )
        for kind in ("layer_norm", "rms_norm", "softmax")
    },
}
"""By ``kind``."""


def tunable(family: str) -> Tunable:
    """The family called ``family``; UserError with the ones that there are."""
    if family not in TUNABLE:
        raise UserError(f"'{family}' is not a family that can be tuned; families: {', '.join(TUNABLE)}")
    return TUNABLE[family]


def family_of_problem(problem: BaseModel) -> Tunable:
    """The family of a problem or of a design."""
    return tunable(str(problem.kind))  # type: ignore[attr-defined]


def parse_problem(values: dict[str, Any], where: str) -> BaseModel:
    """A problem from plain values (``kind`` and the model's fields); UserError names field, value and what is valid."""
    model = tunable(str(values.get("kind"))).problem
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise UserError(f"{where}: {sentence_of(error, model)}") from error


def problem_of(design: BaseModel) -> BaseModel:
    """What a design computes, without how."""
    fields = family_of_problem(design).problem.model_fields
    return parse_problem({name: value for name, value in design.model_dump().items() if name in fields}, "design")


def shape_of(problem: BaseModel) -> dict[str, int]:
    """The extents of a problem or design, in order."""
    return {name: int(getattr(problem, name)) for name in family_of_problem(problem).extents}


def precision_of(problem: BaseModel) -> str:
    """The dtype, and whatever else of a problem is neither an extent nor as usual: ``bf16 bias=true activation=gelu``;
    sections by their numbers, ``filter=3x3``."""
    family = family_of_problem(problem)
    usual = {name: _plain(field.default) for name, field in family.problem.model_fields.items()}
    left_out = {"kind", "dtype", *family.extents}
    words = [str(problem.dtype)]  # type: ignore[attr-defined]
    for name, value in problem.model_dump(mode="json").items():
        if name not in left_out and value != usual[name]:
            text = "x".join(map(str, value.values())) if isinstance(value, dict) else str(value).lower()
            words.append(f"{name}={text}")
    return " ".join(words)


def _plain(value: Any) -> Any:
    return value.model_dump() if isinstance(value, BaseModel) else value


def with_shape(model: BaseModel, shape: dict[str, int]) -> BaseModel:
    """The same problem or design with other extents."""
    return type(model).model_validate(model.model_dump() | shape)


def title(problem: BaseModel) -> str:
    """``gemm 512x512x4096 bf16``."""
    return f"{problem.kind} {'x'.join(map(str, shape_of(problem).values()))} {precision_of(problem)}"  # type: ignore[attr-defined]
