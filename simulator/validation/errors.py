"""How far predictions are from measurements. Pure functions on arrays; errors are in per cent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

PERCENT, POINTS = "%", "points"


@dataclass(frozen=True)
class ErrorSummary:
    """Errors of ``n`` cases in per cent: ``mape`` mean absolute, ``median`` of the absolute error, ``bias`` mean
    signed (positive: predicted too slow), ``p90`` of the absolute error; ``within_10`` and ``within_20``: share of the
    cases whose absolute error is at most that, in per cent."""

    n: int
    mape: float
    median: float
    bias: float
    p90: float
    within_10: float
    within_20: float


@dataclass(frozen=True)
class Worst:
    """The case of a group that is furthest off: its ``id`` and its signed ``error`` in per cent."""

    id: str
    error: float


@dataclass(frozen=True)
class Agreement:
    """How well a counter agrees over ``n`` cases: ``tolerance``, ``median`` and ``p90`` absolute error in ``unit``: per cent
    of what was measured, or points of a share; None if that case missed a measured zero; ``within``: share of the cases
    inside the tolerance in per cent."""

    counter: str
    n: int
    tolerance: float
    within: float
    median: float | None
    p90: float | None
    unit: str = PERCENT


def signed_errors(predicted: np.ndarray, measured: np.ndarray) -> np.ndarray:
    """100 * (predicted / measured - 1), one per case; NaN where either is missing.

    A measured zero has no relative error: 0 if the prediction is zero too, infinite otherwise.
    """
    predicted = np.asarray(predicted, np.float64)
    measured = np.asarray(measured, np.float64)
    known = np.isfinite(predicted) & np.isfinite(measured)
    error = np.full(predicted.shape, np.nan)
    positive = known & (measured > 0)
    error[positive] = 100.0 * (predicted[positive] / measured[positive] - 1.0)
    zero = known & (measured == 0)
    error[zero] = np.where(predicted[zero] == 0, 0.0, np.inf)
    return error


def summarize(errors: np.ndarray) -> ErrorSummary | None:
    """Summary of signed errors in per cent, without the NaN ones; None when nothing is left."""
    known = errors[~np.isnan(errors)]
    if not len(known):
        return None
    size = np.abs(known)
    return ErrorSummary(
        n=len(known),
        mape=float(size.mean()),
        median=float(np.median(size)),
        bias=float(known.mean()),
        p90=float(np.percentile(size, 90, method="linear")),
        within_10=_share(size <= 10.0),
        within_20=_share(size <= 20.0),
    )


def agreement(
    counter: str, predicted: np.ndarray, measured: np.ndarray, tolerance: float, unit: str = PERCENT
) -> Agreement | None:
    """How many cases have ``predicted`` within ``tolerance`` (in ``unit``) of ``measured``; None without data."""
    errors = signed_errors(predicted, measured) if unit == PERCENT else predicted - measured
    size = np.abs(errors[~np.isnan(errors)])
    if not len(size):
        return None
    # A median between a finite and an infinite error is no number: take an error that a case has.
    median, p90 = (float(found) if np.isfinite(found) else None for found in np.percentile(size, [50, 90], method="lower"))
    return Agreement(counter, len(size), tolerance, _share(size <= tolerance), median, p90, unit)


def worst(errors: np.ndarray, ids: Sequence[str]) -> Worst | None:
    """The case with the largest absolute error (``errors`` signed, in per cent); None when all are NaN."""
    size = np.where(np.isnan(errors), -1.0, np.abs(errors))
    if not len(size) or size.max() < 0:
        return None
    return Worst(str(ids[int(size.argmax())]), float(errors[size.argmax()]))


def grouped(errors: np.ndarray, groups: Sequence[str]) -> dict[str, ErrorSummary]:
    """Summary of each group that has errors, groups in the order of their names."""
    names = np.asarray(groups, dtype=object)
    summaries = {name: summarize(errors[names == name]) for name in sorted(set(groups))}
    return {name: summary for name, summary in summaries.items() if summary is not None}


def _share(inside: np.ndarray) -> float:
    return float(100.0 * inside.mean())
