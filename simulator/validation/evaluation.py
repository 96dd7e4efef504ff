"""Predictions beside measurements: every figure of the error tables, computed once and only rendered elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from simulator.hw.config import HardwareConfig
from simulator.projection.interval import duration_bucket, duration_buckets
from simulator.validation.baselines import Formulas, formula_predictions
from simulator.validation.counters import agreements
from simulator.validation.errors import Agreement, ErrorSummary, Worst, grouped, signed_errors, summarize, worst
from simulator.validation.measured import labels, numbers
from simulator.validation.predictions import SUPPORTED
from simulator.validation.ranking import PROBLEM, rankings

TIME_COLUMNS = (("ncu_time_ns", 1e-3), ("coldclean_median_us", 1.0), ("median_us", 1.0))
"""Measured durations in order of preference, and their factor to microseconds."""

FIT_SPLIT, REPORTED_SPLIT = "fit", "check"
ALL = "all"
FEWEST_CONFIGS = 8
"""Shapes with fewer measured configurations are not ranked."""


@dataclass(frozen=True)
class SplitEvaluation:
    """Errors of one split. ``n_with_cubin``, ``n_supported``: cases that could and that did get a prediction; ``compiled``: the
    former by family. ``families``, ``buckets`` (measured duration), ``classes`` (of the projection): errors of the cycles;
    ``times``: of the time by family, at the modelled clock; ``worst``: of any of these groups.
    ``baselines``: name of a formula -> family -> summary, over the cases that the formula and we both predict.
    ``rankings``: problems with several configurations, see ``simulator.validation.ranking``."""

    n_with_cubin: int
    n_supported: int
    compiled: dict[str, int]
    total: ErrorSummary | None
    families: dict[str, ErrorSummary]
    buckets: dict[str, ErrorSummary]
    classes: dict[str, ErrorSummary]
    times: dict[str, ErrorSummary]
    worst: dict[str, Worst]
    agreements: list[Agreement]
    baselines: dict[str, dict[str, ErrorSummary]]
    rankings: list[dict[str, Any]]


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
    cycles = positive(numbers(measured, "cycles"))
    errors = np.where(chosen, signed_errors(numbers(predicted, "predicted_cycles"), cycles), np.nan)
    time_errors = signed_errors(numbers(predicted, "predicted_ncu_time_ns"), positive(numbers(measured, "ncu_time_ns")))
    families, durations, classes = labels(measured, "kernel"), _durations(measured), labels(predicted, "kernel_class", "")
    both = {name: np.where(np.isnan(errors), np.nan, signed_errors(values, cycles)) for name, values in formulas.items()}
    with_cubin = chosen & (measured["cubin"].astype(str).str.strip() != "").to_numpy()
    by_class = grouped(errors, classes)
    by_class.pop("", None)
    return SplitEvaluation(
        n_with_cubin=int(with_cubin.sum()),
        n_supported=int((chosen & (predicted["status"] == SUPPORTED).to_numpy()).sum()),
        compiled=dict(Counter(name for name, is_one in zip(families, with_cubin, strict=True) if is_one)),
        total=summarize(errors),
        families=grouped(errors, families),
        buckets=_in_order(grouped(errors, durations)),
        classes=by_class,
        times=_with_total(np.where(chosen, time_errors, np.nan), families),
        worst=_worst(errors, measured["id"].astype(str).tolist(), families, durations, classes),
        agreements=agreements(measured[chosen], predicted[chosen]),
        baselines={name: _with_total(values, families) for name, values in both.items()},
        rankings=_rankings(measured[chosen], predicted[chosen]),
    )


def positive(values: np.ndarray) -> np.ndarray:
    """``values`` with NaN where they are not above zero."""
    return np.where(values > 0, values, np.nan)


def _with_total(errors: np.ndarray, families: list[str]) -> dict[str, ErrorSummary]:
    total = summarize(errors)
    return grouped(errors, families) | ({ALL: total} if total is not None else {})


def _durations(measured: pd.DataFrame) -> list[str]:
    """Duration class of each case, empty where no time was measured."""
    times = np.full(len(measured), np.nan)
    for column, factor in TIME_COLUMNS:
        times = np.where(np.isnan(times), numbers(measured, column) * factor, times)
    return [duration_bucket(time) if np.isfinite(time) else "" for time in times]


def _in_order(found: dict[str, ErrorSummary]) -> dict[str, ErrorSummary]:
    return {name: found[name] for name in duration_buckets() if name in found}


def _worst(errors: np.ndarray, ids: Sequence[str], *groupings: Sequence[str]) -> dict[str, Worst]:
    found = {ALL: worst(errors, ids)}
    for groups in groupings:
        names = np.asarray(groups, dtype=object)
        found |= {name: worst(np.where(names == name, errors, np.nan), ids) for name in sorted(set(groups) - {""})}
    return {name: item for name, item in found.items() if item is not None}


def _rankings(measured: pd.DataFrame, predicted: pd.DataFrame) -> list[dict[str, Any]]:
    if not set(PROBLEM) <= set(measured.columns):
        return []
    table = measured[list(PROBLEM)].assign(
        cycles=positive(numbers(measured, "cycles")), predicted_cycles=numbers(predicted, "predicted_cycles")
    )
    return [
        {str(name): value for name, value in row.items()} for row in rankings(table.dropna(), FEWEST_CONFIGS).to_dict("records")
    ]
