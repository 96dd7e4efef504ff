"""Many designs at once: a table of integer columns, one row a design."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Designs:
    """``columns``: int64 arrays of the same length, by field; choices among words are their index."""

    columns: Mapping[str, np.ndarray]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[name]

    def take(self, rows: np.ndarray) -> Designs:
        """The rows of a mask or of an index array."""
        return Designs({name: values[rows] for name, values in self.columns.items()})

    def first_of(self, names: Sequence[str], order: np.ndarray) -> np.ndarray:
        """Of all rows that agree in ``names`` the first in ``order``; rows, in that order."""
        code = np.zeros(len(order), np.int64)
        for name in names:
            values = self.columns[name][order]
            code = code * (int(values.max()) + 1) + values
        _, first = np.unique(code, return_index=True)
        return np.asarray(order[np.sort(first)])

    def row(self, index: int) -> dict[str, int]:
        """One design as plain numbers."""
        return {name: int(values[index]) for name, values in self.columns.items()}


@dataclass(frozen=True)
class Estimate:
    """What a fast screen says of a table of designs: float64 ``cycles`` of the SM clock and ``time_us``, one value a design."""

    cycles: np.ndarray
    time_us: np.ndarray


def choices(names: Sequence[str], rows: Sequence[tuple[int, ...]]) -> Designs:
    """Some columns of explicit rows."""
    table = np.array(rows, np.int64).reshape(len(rows), len(names))
    return Designs({name: table[:, i].copy() for i, name in enumerate(names)})


def one_row(values: Mapping[str, int]) -> Designs:
    """A table of one design."""
    return Designs({name: np.array([value], np.int64) for name, value in values.items()})


def product(*parts: Designs) -> Designs:
    """Every combination of the rows of ``parts``, the last varying fastest."""
    columns: dict[str, np.ndarray] = {}
    for i, part in enumerate(parts):
        before = int(np.prod([len(p) for p in parts[:i]], dtype=np.int64))
        after = int(np.prod([len(p) for p in parts[i + 1 :]], dtype=np.int64))
        columns |= {name: np.tile(np.repeat(values, after), before) for name, values in part.columns.items()}
    return Designs(columns)


def concatenate(parts: Sequence[Designs]) -> Designs:
    """One table below the other; all have the same columns, in any order."""
    return Designs({name: np.concatenate([part[name] for part in parts]) for name in parts[0].columns})
