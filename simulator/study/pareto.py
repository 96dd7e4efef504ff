"""Which designs no other one beats."""

from __future__ import annotations

import numpy as np


def pareto_front(costs: np.ndarray) -> np.ndarray:
    """Whether each row (float64 [n, k], smaller is better) is beaten by none: no other is as good everywhere and better once."""
    n = len(costs)
    on_front = np.ones(n, bool)
    for i in range(n):
        as_good = (costs <= costs[i]).all(axis=1)
        better = (costs < costs[i]).any(axis=1)
        on_front[i] = not (as_good & better).any()
    return on_front
