"""Are published times put beside projections where a chip is modelled, and is it said where none is?"""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from simulator.hw.loader import load_hw
from simulator.tuning import published_measurements
from simulator.tuning.families import parse_problem
from simulator.tuning.published_measurements import NO_CHIP, NO_TIMING, project, read_projected, summary, table
from simulator.tuning.search import Effort

FOLDER = Path(__file__).resolve().parents[2] / "projections" / "validation" / "published"
COLUMNS = ["chip", "hw", "kernel", "problem", "published", "measured_us", "clock", "assumed", "source", "address"]


def row(chip: str, hw: str, measured_us: float, **problem: object) -> dict[str, object]:
    text = json.dumps({"kind": "gemm", "m": 128, "n": 128, "k": 128} | problem)
    return dict(zip(COLUMNS, (chip, hw, "lib", text, "1 us", measured_us, None, None, "a paper", "https://x.org"), strict=True))


def test_is_every_row_projected_or_told_why_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published_measurements, "EFFORT", Effort(2, 1))
    rows = [
        row("H100 SXM", "h100_sxm", 60.0), row("H100 SXM", "h100_sxm", 3.0), row("A100", "a100_sxm", 60.0), row("H20", "", 60.0),
        row("H100 SXM", "h100_sxm", 60.0, k=127),
    ]  # fmt: skip
    found = project(pd.DataFrame(rows))
    assert found["status"].tolist()[:4] == ["", "", NO_TIMING, NO_CHIP] and "pad k to 128" in found["status"][4]
    assert found["projected_us"][0] == found["projected_us"][1]
    assert found["error"][0] == pytest.approx(found["projected_us"][0] / 60 - 1)
    by_chip = summary(found).set_index("chip")
    assert (by_chip.loc["H100 SXM", "n"], by_chip.loc["H20", "status"]) == (1, NO_CHIP)
    text = table(found)
    assert "not stated" in text and "[a paper](https://x.org)" in text and NO_TIMING in text


def test_are_the_published_rows_problems_with_a_source() -> None:
    rows = pd.read_csv(FOLDER / "measurements.csv").fillna("")
    assert list(rows.columns) == COLUMNS and (rows["measured_us"] > 0).all() and (rows["source"] != "").all()
    for hw, text in set(zip(rows["hw"], rows["problem"], strict=True)):
        if hw and load_hw(hw).timing is not None:
            parse_problem(json.loads(text), "measurements")


def test_is_the_committed_table_that_of_the_committed_projections() -> None:
    projected = read_projected(FOLDER)
    assert len(projected) == len(pd.read_csv(FOLDER / "measurements.csv"))
    assert table(projected) == (FOLDER / "table.md").read_text(encoding="utf-8")
