"""Published times of GEMM and attention on any chip, beside the best design that the tuner projects there; nothing is fitted.

``python -m simulator.tuning.published_measurements FOLDER`` reads ``FOLDER/measurements.csv`` (chip, hw, kernel, problem as JSON,
published, measured_us, clock, assumed, source, address) and writes ``projected.csv`` and ``table.md`` beside it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from pydantic import BaseModel

from simulator.errors import UserError
from simulator.hw.config import HardwareConfig
from simulator.hw.loader import load_hw
from simulator.tuning.batch import Order, Outcome, tune_all
from simulator.tuning.families import parse_problem, title
from simulator.tuning.search import Effort
from simulator.tuning.simulate import as_json
from simulator.tuning.words import describe

EFFORT = Effort(8, 2)
LONG_US = 50.0
"""Of shorter rows much is the launch, which publications count in different ways."""
NO_CHIP, NO_TIMING = "no configuration of this chip", "execution of this chip is not modelled"
PROJECTED = "projected.csv"
TEXTS = ("hw", "clock", "assumed", "design", "status")
"""Columns that may be empty."""
Answer = dict[str, object]
"""projected_us and clock_mhz (NaN where there is none), design in words, status: empty, or why there is no projection."""


def project(measurements: pd.DataFrame, jobs: int = 1) -> pd.DataFrame:
    """``measurements`` with what the tuner's best design takes (see ``Answer``), and ``error``: a signed share."""
    table = measurements.fillna({name: "" for name in TEXTS if name in measurements})
    answers: dict[tuple[str, str], Answer] = {}
    for name, group in table.groupby("hw"):
        texts = sorted(group["problem"].unique())
        chip = load_hw(str(name)) if name else None
        answers |= {(str(name), text): answer for text, answer in _answers(chip, texts, jobs).items()}
    rows = [answers[hw, text] for hw, text in zip(table["hw"], table["problem"], strict=True)]
    found = table.join(pd.DataFrame(rows, index=table.index))
    return found.assign(error=found["projected_us"] / found["measured_us"] - 1)


def _answers(chip: HardwareConfig | None, texts: Sequence[str], jobs: int) -> dict[str, Answer]:
    """Of every problem (JSON) on one chip."""
    if chip is None or chip.timing is None:
        return {text: _refused(NO_CHIP if chip is None else NO_TIMING) for text in texts}
    found: dict[str, Answer] = {}
    problems: dict[str, BaseModel] = {}
    for text in texts:
        try:
            problems[text] = parse_problem(json.loads(text), "measurements.csv")
        except UserError as error:
            found[text] = _refused(str(error))
    outcomes = tune_all(Order(chip, EFFORT, loss=None), list(problems.values()), jobs, lambda outcome: None)
    return found | {text: _answer(outcome) for text, outcome in zip(problems, outcomes, strict=True)}


def _answer(outcome: Outcome) -> Answer:
    if outcome.tuned is None:
        return _refused(outcome.failure)
    best = outcome.tuned.best
    return {
        "projected_us": best.time_us,
        "clock_mhz": best.clock_mhz,
        "design": describe(as_json(best.design)),
        "status": "",
    }


def _refused(reason: str) -> Answer:
    return {"projected_us": np.nan, "clock_mhz": np.nan, "design": "", "status": reason}


def read_projected(folder: Path) -> pd.DataFrame:
    """``projected.csv`` as ``project`` gave it, to the digits that were kept."""
    return pd.read_csv(folder / PROJECTED).fillna(dict.fromkeys(TEXTS, ""))


def summary(projected: pd.DataFrame) -> pd.DataFrame:
    """By published chip: rows, rows of LONG_US and more with a projection (``n``), their mean absolute error (``mape``), its
    median, and bias (shares; positive: projected too slow); ``status`` of a chip without projections."""
    found = []
    for chip, group in projected.groupby("chip", sort=False):
        errors = group[(group["measured_us"] >= LONG_US) & group["error"].notna()]["error"]
        found.append(
            {
                "chip": chip,
                "rows": len(group),
                "n": len(errors),
                "mape": errors.abs().mean(),
                "median": errors.abs().median(),
                "bias": errors.mean(),
                "status": "" if group["error"].notna().any() else group["status"].iloc[0],
            }
        )
    return pd.DataFrame(found).sort_values(["n", "rows"], ascending=False, kind="stable")


def table(projected: pd.DataFrame) -> str:
    """Markdown: the summary, then every row with error, clock and source."""
    return "\n".join([*_head(), *_summary(projected), "", *_rows(projected), ""])


def _head() -> Iterator[str]:
    yield "# Published times beside projections"
    yield ""
    yield "Made by `make published` from [measurements.csv](measurements.csv); what it stands for: [README](README.md)."
    yield f"Error: projected over published time, less 1. Summary: rows of {LONG_US:.0f} us and more."
    yield ""


def _summary(projected: pd.DataFrame) -> Iterator[str]:
    yield "| chip | rows | projected, 50 us and more | MAPE | median | bias |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for row in summary(projected).to_dict("records"):
        shares = [f"{row['mape']:.1%}", f"{row['median']:.1%}", f"{row['bias']:+.1%}"]
        shares = ["", "", row["status"]] if row["status"] else shares
        yield f"| {row['chip']} | {row['rows']} | {row['n'] or ''} | {' | '.join(shares)} |"


def _rows(projected: pd.DataFrame) -> Iterator[str]:
    yield "| chip | kernel | problem | published | us | projected us | error | clock published; projected | design | source |"
    yield "| --- | --- | --- | ---: | ---: | ---: | ---: | --- | --- | --- |"
    for row in projected.to_dict("records"):
        has_time = not row["status"]
        cells = [
            row["chip"], row["kernel"], _problem(row["problem"]) + (f" ({row['assumed']})" if row["assumed"] else ""),
            row["published"], f"{row['measured_us']:.1f}", f"{row['projected_us']:.1f}" if has_time else "",
            f"{row['error']:+.1%}" if has_time else "",
            f"{row['clock'] or 'not stated'}; {row['clock_mhz']:.0f} MHz" if has_time else row["clock"] or "not stated",
            row["design"] if has_time else row["status"], f"[{row['source']}]({row['address']})",
        ]  # fmt: skip
        yield f"| {' | '.join(str(cell).replace('|', '/') for cell in cells)} |"


def _problem(text: str) -> str:
    values = json.loads(text)
    try:
        return title(parse_problem(values, "measurements.csv"))
    except UserError:
        return " ".join(str(value) for value in values.values())


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args(arguments)
    projected = project(pd.read_csv(given.folder / "measurements.csv"), given.jobs)
    projected.to_csv(given.folder / PROJECTED, index=False, float_format="%.5g", lineterminator="\n")
    (given.folder / "table.md").write_text(table(read_projected(given.folder)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
