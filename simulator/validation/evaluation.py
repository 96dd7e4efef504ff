"""Predictions beside measurements: every figure of the error tables, computed once and only rendered elsewhere."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from simulator.hw.config import HardwareConfig
from simulator.validation.baselines import Formulas, formula_predictions
from simulator.validation.errors import (
    Agreement,
    ErrorSummary,
    agreement,
    duration_bucket,
    duration_buckets,
    grouped,
    signed_errors,
    summarize,
)
from simulator.validation.measured import labels, numbers
from simulator.validation.predictions import PREFIX, SUPPORTED

TIME_COLUMNS = (("ncu_time_ns", 1e-3), ("coldclean_median_us", 1.0), ("median_us", 1.0))
"""Measured durations in order of preference, and their factor to microseconds."""

MEASURED_NAME = {"predicted_bank_conflicts": "smem_bank_conflicts"}
"""Predicted columns whose measured column has another name."""

TOLERANCE_PERCENT = {"warp_insts": 0.1, "smem_wavefronts": 2.0, "smem_bank_conflicts": 2.0}
OTHER_TOLERANCE_PERCENT = 10.0
FIT_SPLIT = "fit"


@dataclass(frozen=True)
class SplitEvaluation:
    """Errors of one split. ``n_with_cubin``, ``n_supported``: cases that could and that did get a prediction.
    ``baselines``: name of a formula -> family -> summary, over the cases that the formula and we both predict."""

    n_with_cubin: int
    n_supported: int
    total: ErrorSummary | None
    families: dict[str, ErrorSummary]
    buckets: dict[str, ErrorSummary]
    agreements: list[Agreement]
    baselines: dict[str, dict[str, ErrorSummary]]


@dataclass(frozen=True)
class Evaluation:
    """A whole run. ``reasons``: why cases are unsupported, with their number; ``splits``: empty if unmeasured."""

    n_cases: int
    n_supported: int
    reasons: dict[str, int]
    splits: dict[str, SplitEvaluation] = field(default_factory=dict)


def evaluate(
    measured: pd.DataFrame,
    predicted: pd.DataFrame,
    hw: HardwareConfig | None = None,
    whole_file: pd.DataFrame | None = None,
) -> Evaluation:
    """Error tables of ``predicted``, whose rows are those of ``measured``; with ``hw``, formulas beside them, fitted on
    the fit split of ``whole_file`` (default: of ``measured``)."""
    supported = (predicted["status"] == SUPPORTED).to_numpy()
    reasons = Counter(str(reason) for reason in predicted["reason"][~supported])
    formulas = _formulas(measured, measured if whole_file is None else whole_file, hw)
    has_cycles = bool(np.isfinite(numbers(measured, "cycles")).any())
    return Evaluation(
        n_cases=len(predicted),
        n_supported=int(supported.sum()),
        reasons=dict(reasons.most_common()),
        splits=_splits(measured, predicted, formulas) if has_cycles else {},
    )


def _formulas(measured: pd.DataFrame, whole_file: pd.DataFrame, hw: HardwareConfig | None) -> Formulas:
    if hw is None:
        return {}
    return formula_predictions(measured, whole_file[np.asarray(labels(whole_file, "split")) == FIT_SPLIT], hw)


def _splits(measured: pd.DataFrame, predicted: pd.DataFrame, formulas: Formulas) -> dict[str, SplitEvaluation]:
    names = np.asarray(labels(measured, "split"), dtype=object)
    return {str(name): _split(measured, predicted, formulas, names == name) for name in sorted(set(names))}


def _split(measured: pd.DataFrame, predicted: pd.DataFrame, formulas: Formulas, chosen: np.ndarray) -> SplitEvaluation:
    cycles = numbers(measured, "cycles")
    cycles = np.where(cycles > 0, cycles, np.nan)
    errors = np.where(chosen, signed_errors(numbers(predicted, "predicted_cycles"), cycles), np.nan)
    families = labels(measured, "kernel")
    both = {name: np.where(np.isnan(errors), np.nan, signed_errors(values, cycles)) for name, values in formulas.items()}
    with_cubin = (measured["cubin"].astype(str).str.strip() != "").to_numpy()
    return SplitEvaluation(
        n_with_cubin=int((chosen & with_cubin).sum()),
        n_supported=int((chosen & (predicted["status"] == SUPPORTED).to_numpy()).sum()),
        total=summarize(errors),
        families=grouped(errors, families),
        buckets=_buckets(measured, errors),
        agreements=_agreements(measured[chosen], predicted[chosen]),
        baselines={name: _with_total(values, families) for name, values in both.items()},
    )


def _with_total(errors: np.ndarray, families: list[str]) -> dict[str, ErrorSummary]:
    total = summarize(errors)
    return grouped(errors, families) | ({"all": total} if total is not None else {})


def _buckets(measured: pd.DataFrame, errors: np.ndarray) -> dict[str, ErrorSummary]:
    times = np.full(len(measured), np.nan)
    for column, factor in TIME_COLUMNS:
        times = np.where(np.isnan(times), numbers(measured, column) * factor, times)
    names = [duration_bucket(time) if np.isfinite(time) else "" for time in times]
    found = grouped(errors, names)
    return {name: found[name] for name in duration_buckets() if name in found}


def _agreements(measured: pd.DataFrame, predicted: pd.DataFrame) -> list[Agreement]:
    """Each predicted counter that was also measured; stall ratios are compared elsewhere."""
    found = []
    for column in predicted.columns:
        counter = MEASURED_NAME.get(column, column.removeprefix(PREFIX))
        if not column.startswith(PREFIX) or counter == "cycles" or counter.startswith("stall_"):
            continue
        tolerance = TOLERANCE_PERCENT.get(counter, OTHER_TOLERANCE_PERCENT)
        found.append(agreement(counter, numbers(predicted, column), numbers(measured, counter), tolerance))
    return [item for item in found if item is not None]
