"""Which CTAs do the same work."""

from __future__ import annotations

import numpy as np


def classes_of(kinds: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """(column, members) of equal columns of ``kinds`` int [n, n_ctas], by the first member."""
    code = np.zeros(kinds.shape[1], np.int64)
    for row in kinds:
        _, number = np.unique(row, return_inverse=True)
        _, code = np.unique(code * (int(number.max()) + 1) + number, return_inverse=True)
    first = np.unique(code, return_index=True)[1]
    return [(kinds[:, at], np.flatnonzero(code == code[at])) for at in np.sort(first)]
