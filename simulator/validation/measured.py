"""A file of measured kernel cases: which cases it holds, and what silicon said about them.

Only ``id``, ``cubin`` and ``launch`` are needed; any other column may be absent, ids may be any text.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from simulator.errors import UserError

NEEDED_COLUMNS = ("id", "cubin", "launch")
UNREADABLE = (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError, EOFError, OSError, zlib.error)


@dataclass(frozen=True)
class Case:
    """One row of a measured file. ``index``: its row; ``cubin``: file stem, empty for a library kernel;
    ``launch``: JSON text, empty if the file has none."""

    index: int
    id: str
    cubin: str
    launch: str


def read_measured(path: Path) -> pd.DataFrame:
    """Every row of a CSV or CSV.gz file as text (an empty cell is an empty string).

    Raises UserError when the file is missing, is not a CSV, has no rows or lacks a needed column.
    """
    if not path.is_file():
        needed = ", ".join(NEEDED_COLUMNS)
        raise UserError(f"measured file {path} does not exist; give a .csv or .csv.gz with the columns {needed}")
    try:
        frame = pd.read_csv(path, dtype=str, keep_default_na=False, na_filter=False)
    except UNREADABLE as error:
        raise UserError(f"measured file {path} is not a readable CSV or CSV.gz: {error}") from error
    missing = [name for name in NEEDED_COLUMNS if name not in frame.columns]
    if missing:
        raise UserError(f"measured file {path} lacks the column {', '.join(missing)}; it needs {', '.join(NEEDED_COLUMNS)}")
    if frame.empty:
        raise UserError(f"measured file {path} holds no cases")
    return frame


def select(frame: pd.DataFrame, split: str | None = None, ids: Sequence[str] = (), limit: int | None = None) -> pd.DataFrame:
    """The rows of one ``split``, with one of ``ids``, at most ``limit`` of them, in file order, renumbered from 0."""
    chosen = frame
    if split is not None:
        chosen = chosen[_matches(frame, "split", [split])]
    if ids:
        chosen = chosen[chosen["id"].isin(ids)]
        unknown = sorted(set(ids) - set(chosen["id"]))
        if unknown:
            known = _examples(frame)
            raise UserError(f"--ids: the selected rows have no case {', '.join(unknown)}; ids look like {known}")
    if limit is not None:
        chosen = chosen.head(limit)
    return chosen.reset_index(drop=True)


def cases_of(frame: pd.DataFrame) -> list[Case]:
    """The rows of ``frame`` as cases, in order."""
    columns = (frame[name].astype(str).str.strip() for name in NEEDED_COLUMNS)
    return [Case(index, *values) for index, values in enumerate(zip(*columns, strict=True))]


def numbers(frame: pd.DataFrame, column: str) -> np.ndarray:
    """A measured column as float64; NaN where the file has no number, everywhere if it lacks the column."""
    if column not in frame.columns:
        return np.full(len(frame), np.nan)
    return pd.to_numeric(frame[column], errors="coerce").to_numpy(np.float64)


def labels(frame: pd.DataFrame, column: str, absent: str = "all") -> list[str]:
    """A text column; ``absent`` for every row if the file lacks it."""
    return [str(text) for text in frame[column]] if column in frame.columns else [absent] * len(frame)


def _matches(frame: pd.DataFrame, column: str, wanted: Sequence[str]) -> pd.Series:
    if column not in frame.columns:
        raise UserError(f"--{column} {wanted[0]}: the measured file has no column {column}")
    found = frame[column].isin(wanted)
    if not found.any():
        known = ", ".join(sorted(set(frame[column]))[:10])
        raise UserError(f"--{column} {wanted[0]}: no case has it; the file has {known}")
    return found


def _examples(frame: pd.DataFrame, n_shown: int = 3) -> str:
    return ", ".join(str(name) for name in frame["id"].head(n_shown))
