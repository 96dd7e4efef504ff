"""Do the rules give what hardware counters gave, on every measured pattern?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from simulator.lower.access_kinds import KIND_NAMES, check_access
from simulator.lower.bank_use import bank_use
from simulator.lower.global_access import global_lines, global_sectors, l1_tag_passes
from simulator.lower.shared_access import BankRules, shared_wavefronts_batch

DATA = Path(__file__).resolve().parents[1] / "data"
FILES = ("access_patterns.csv", "access_patterns_masked.csv")
N_BANKS, BANK_BYTES, SECTOR_BYTES, LINE_BYTES = 32, 4, 32, 128
TAG_BANK_MASKS = (0b10110101, 0b11011010)


def measured(name: str, *, is_shared: bool) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows of one file, and their lane offsets int64 [n, 32]."""
    rows = pd.read_csv(DATA / name)
    rows = rows[rows["kind"].isin(["ldg", "stg"]) != is_shared].reset_index(drop=True)
    return rows, np.array([[int(offset) for offset in text.split()] for text in rows["lane_offsets"]])


@pytest.mark.parametrize("name", FILES)
def test_are_wavefronts_and_conflicts_exact_on_every_shared_row(name: str) -> None:
    rows, offsets = measured(name, is_shared=True)
    kinds = rows["kind"].map(KIND_NAMES).to_numpy()
    cost = shared_wavefronts_batch(kinds, rows["width_bytes"].to_numpy(), offsets, N_BANKS, BANK_BYTES)
    wrong = (cost.wavefronts != rows["shared_wavefronts"]) | (cost.bank_conflicts != rows["bank_conflicts"])
    assert not wrong.any(), rows[wrong].to_string()
    assert (cost.ideal_wavefronts <= cost.wavefronts).all()


@pytest.mark.parametrize("name", FILES)
def test_are_sectors_exact_on_every_global_row(name: str) -> None:
    rows, offsets = measured(name, is_shared=False)
    counts = global_sectors(rows["width_bytes"].to_numpy(), offsets, SECTOR_BYTES, LINE_BYTES)
    wrong = counts.sectors != rows["sectors_per_request"]
    assert not wrong.any(), rows[wrong].to_string()


def test_are_tag_passes_exact_on_every_global_load() -> None:
    rows, offsets = measured(FILES[1], is_shared=False)
    lines = global_lines(rows["width_bytes"].to_numpy(), offsets, 0, SECTOR_BYTES, LINE_BYTES)
    is_load = (rows["kind"] == "ldg").to_numpy()
    passes = l1_tag_passes(lines, TAG_BANK_MASKS)
    assert (passes[is_load] == rows["tag_passes"][is_load]).all()


@pytest.mark.parametrize("name", FILES)
def test_does_the_picture_tell_the_same_story(name: str) -> None:
    rows, offsets = measured(name, is_shared=True)
    rules = BankRules(N_BANKS, BANK_BYTES)
    for row, lanes in zip(rows.itertuples(), offsets, strict=True):
        use = bank_use(KIND_NAMES[row.kind], row.width_bytes, lanes, rules)
        assert (use.wavefronts, use.bank_conflicts) == (row.shared_wavefronts, row.bank_conflicts), row


@pytest.mark.parametrize("name", FILES)
def test_is_every_measured_pattern_accepted(name: str) -> None:
    for is_shared in (True, False):
        rows, offsets = measured(name, is_shared=is_shared)
        for kind, width, lanes in zip(rows["kind"], rows["width_bytes"], offsets, strict=True):
            check_access(KIND_NAMES[kind], width, lanes, 32)


def test_is_the_merging_of_paired_loads_needed() -> None:
    """The measured rows can tell: without merging, loads go wrong, and nothing but loads."""
    rows, offsets = measured(FILES[1], is_shared=True)
    kinds, widths = rows["kind"].map(KIND_NAMES).to_numpy(), rows["width_bytes"].to_numpy()
    unmerged = shared_wavefronts_batch(kinds, widths, offsets, N_BANKS, BANK_BYTES, merges_paired_loads=False)
    is_wrong = (unmerged.wavefronts != rows["shared_wavefronts"]).to_numpy()
    assert is_wrong.sum() > 100
    assert set(rows["kind"][is_wrong]) == {"lds"}
