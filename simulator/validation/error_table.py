"""The error table that is kept with the code: every summary of a validation run as one row of ``errors.csv``.

Columns: ``split``; ``quantity`` (cycles, time, or a counter); ``group`` (family, duration, class, all) and ``name`` in it;
``n`` cases, ``compiled`` ones that could be predicted; ``mean``, ``median``, ``p90`` of the absolute error, ``bias`` (mean
signed), ``within_10``, ``within_20`` (share of cases), ``worst`` signed error and its ``worst_id``; mean error of each formula.
Per cent; counters with the unit "points" in points.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from simulator.errors import UserError
from simulator.validation.errors import ErrorSummary
from simulator.validation.evaluation import ALL, Evaluation, SplitEvaluation

CYCLES, TIME = "cycles", "time"
FAMILY, DURATION, CLASS = "family", "duration", "class"
COLUMNS = (
    "split", "quantity", "group", "name", "n", "compiled", "mean", "median", "bias", "p90", "within_10", "within_20",
    "worst", "worst_id", "roofline", "wave model", "unit",
)  # fmt: skip
DIGITS = 3


def error_table(evaluation: Evaluation) -> pd.DataFrame:
    """Every summary of ``evaluation``, rounded for a file."""
    rows = [row for name, split in evaluation.splits.items() for row in _rows(name, split)]
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    table["n"] = table["n"].astype("Int64")
    table["compiled"] = table["compiled"].astype("Int64")
    return table.round(DIGITS)


def read_error_table(path: Path) -> pd.DataFrame:
    """A table that ``error_table`` made; UserError for another file."""
    try:
        table = pd.read_csv(path, dtype={"worst_id": str})
    except (OSError, ValueError) as error:
        raise UserError(f"error table {path} cannot be read ({error}); kernelcast validate --publish writes it") from error
    missing = [name for name in COLUMNS if name not in table.columns]
    if missing:
        raise UserError(f"{path} is no error table of kernelcast validate --publish: it lacks the column {missing[0]}")
    return table


def _rows(name: str, split: SplitEvaluation) -> Iterator[dict[str, Any]]:
    totals = {ALL: split.total} if split.total is not None else {}
    for group, summaries in (
        (FAMILY, split.families), (DURATION, split.buckets), (CLASS, split.classes), (ALL, totals)
    ):  # fmt: skip
        for key, summary in summaries.items():
            yield {"split": name, "quantity": CYCLES, "group": group, "name": key} | _cycles(split, group, key, summary)
    for key, summary in split.times.items():
        group = ALL if key == ALL else FAMILY
        yield {"split": name, "quantity": TIME, "group": group, "name": key, "unit": "%"} | _figures(summary)
    for item in split.agreements:
        counter = {"n": item.n, "median": item.median, "p90": item.p90, "unit": item.unit}
        yield {"split": name, "quantity": item.counter, "group": ALL, "name": ALL} | counter


def _cycles(split: SplitEvaluation, group: str, key: str, summary: ErrorSummary) -> dict[str, Any]:
    row = _figures(summary) | {"unit": "%"}
    if key in split.worst:
        row |= {"worst": split.worst[key].error, "worst_id": split.worst[key].id}
    if group == FAMILY:
        row["compiled"] = split.compiled.get(key, 0)
    if group == ALL:
        row["compiled"] = split.n_with_cubin
    if group in (FAMILY, ALL):
        row |= {name: groups[key].mape for name, groups in split.baselines.items() if key in groups}
    return row


def _figures(summary: ErrorSummary) -> dict[str, Any]:
    figures = asdict(summary)
    figures["mean"] = figures.pop("mape")
    return figures
