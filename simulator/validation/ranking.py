"""Does a prediction order the configurations of a problem as silicon does, and what does its pick cost?"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

import pandas as pd

PROBLEM = ("kernel", "dtype", "shape")
"""Rows that agree in these columns are configurations of one problem."""


def kendall_tau(measured: Iterable[float], predicted: Iterable[float]) -> float:
    """Share of pairs in the same order minus share in the other (ties count half each)."""
    pairs = list(combinations(zip(measured, predicted, strict=True), 2))
    return sum(_sign(a - c) * _sign(b - d) for (a, b), (c, d) in pairs) / len(pairs)


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def rankings(table: pd.DataFrame, fewest: int, predicted: str = "predicted_cycles") -> pd.DataFrame:
    """Of every problem with at least ``fewest`` configurations in ``table`` (PROBLEM columns, ``cycles``, the column
    ``predicted``): n, Kendall tau, regret of the configuration that is picked (0: the best), median error (fractions)."""
    found = []
    for problem, group in table.dropna(subset=[predicted]).groupby(list(PROBLEM)):
        if len(group) < fewest:
            continue
        picked = float(group["cycles"].iloc[int(group[predicted].argmin())])
        found.append(
            dict(zip(PROBLEM, problem, strict=True))
            | {
                "n": len(group),
                "tau": kendall_tau(group["cycles"], group[predicted]),
                "regret": picked / group["cycles"].min() - 1,
                "median_error": (group[predicted] / group["cycles"] - 1).abs().median(),
            }
        )
    return pd.DataFrame(found)
