"""Predicted hardware counters beside the measured ones: relative errors, and points where the figure is a share."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from simulator.validation.errors import POINTS, Agreement, agreement
from simulator.validation.measured import numbers
from simulator.validation.predictions import PREFIX, STALL

MEASURED_NAME = {"predicted_bank_conflicts": "smem_bank_conflicts"}
"""Predicted columns whose measured column has another name."""
TOLERANCE_PERCENT = {"warp_insts": 0.1, "smem_wavefronts": 2.0, "smem_bank_conflicts": 2.0}
OTHER_TOLERANCE_PERCENT = 10.0
TOLERANCE_POINTS = 5.0
L2_HIT_RATE = "l2_hit_rate"


def agreements(measured: pd.DataFrame, predicted: pd.DataFrame) -> list[Agreement]:
    """Each predicted counter that was also measured, the L2 hit rate, and the share of each stall reason."""
    found = [*_counters(measured, predicted), _hit_rate(measured, predicted), *_stalls(measured, predicted)]
    return [item for item in found if item is not None]


def _counters(measured: pd.DataFrame, predicted: pd.DataFrame) -> Iterator[Agreement | None]:
    names: dict[str, str] = {}
    for column in predicted.columns:
        counter = MEASURED_NAME.get(column, column.removeprefix(PREFIX))
        if column.startswith(PREFIX) and counter != "cycles" and not counter.startswith(STALL):
            names.setdefault(counter, column)
    for counter, column in names.items():
        tolerance = TOLERANCE_PERCENT.get(counter, OTHER_TOLERANCE_PERCENT)
        yield agreement(counter, numbers(predicted, column), numbers(measured, counter), tolerance)


def _hit_rate(measured: pd.DataFrame, predicted: pd.DataFrame) -> Agreement | None:
    """Of the sectors that the L2 looks up, in points."""
    accesses = numbers(predicted, f"{PREFIX}l2_read_sectors") + numbers(predicted, f"{PREFIX}l2_write_sectors")
    ours = 1 - _over(numbers(predicted, f"{PREFIX}l2_miss_sectors"), accesses)
    hits, misses = numbers(measured, "l2_hit_sectors"), numbers(measured, "l2_miss_sectors")
    return agreement(L2_HIT_RATE, 100 * ours, 100 * _over(hits, hits + misses), TOLERANCE_POINTS, POINTS)


def _stalls(measured: pd.DataFrame, predicted: pd.DataFrame) -> Iterator[Agreement | None]:
    """Shares of resident warps' time by reason, in points; measured reasons that are never predicted count as other."""
    predicted_names = [str(c) for c in predicted.columns if str(c).startswith(PREFIX + STALL)]
    measured_names = [str(c) for c in measured.columns if str(c).startswith(STALL)]
    if not predicted_names or not measured_names:
        return
    ours = {name.removeprefix(PREFIX): numbers(predicted, name) for name in predicted_names}
    theirs = {name: np.nan_to_num(numbers(measured, name)) for name in measured_names}
    our_total, their_total = np.sum(list(ours.values()), axis=0), np.sum(list(theirs.values()), axis=0)
    for name in sorted(set(ours) & set(theirs)):
        share, truth = _over(ours[name], our_total), _over(theirs[name], their_total)
        yield agreement(name, 100 * share, 100 * truth, TOLERANCE_POINTS, POINTS)


def _over(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)
