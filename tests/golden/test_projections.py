"""Did any projection change, and did an error against silicon grow?

The sample is 21 cheap compiled kernels of the split ``check`` and three hand-written ones, every Triton family among them.
Errors may grow by WORST_CASE_POINTS for one kernel and by MEAN_POINTS on average; a change that is meant is accepted with
--update-golden.
"""

from __future__ import annotations

import csv
import io
import json
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from simulator.data_files import data_folder
from simulator.hw.catalog import chip_names
from simulator.hw.loader import load_hw
from simulator.projection.projection import Projection
from simulator.projection.run import project_trace
from simulator.validation.cubins import locate_cubins
from simulator.validation.errors import signed_errors
from simulator.validation.measured import numbers, read_measured, select
from simulator.validation.traces import cached_trace, launch_from_json
from tests.golden.golden_file import FOLDER, compare, say

BASELINE = FOLDER / "measured_kernels.csv"
WORST_CASE_POINTS, MEAN_POINTS = 5.0, 0.5
FILES = {"triton": ("kernels.csv.gz", "cubins.tar.xz"), "cuda": ("ladder.csv.gz", "ladder_cubins.tar.xz")}
CHIP = "h200"
SHOWN = ("985", "896", "185", "449", "959", "866", "710", "643")
"""Kernels of the sample, one a family, whose whole projection is kept."""
GROUPS = ("cycles", "time_us", "bound_by", "bounds", "waves", "warp_instructions", "smem", "bytes", "stalls")


def sample() -> list[dict[str, str]]:
    """Rows of the baseline: file, id, cycles (projected, when errors were last accepted)."""
    with BASELINE.open(newline="") as file:
        return list(csv.DictReader(file))


@cache
def opened(kept_in: str) -> tuple[pd.DataFrame, dict[str, Path]]:
    """Measured rows and compiled kernels of one of the FILES."""
    folder = data_folder("projections") / "validation"
    measured, cubins = FILES[kept_in]
    return read_measured(folder / measured), locate_cubins(folder / cubins)


@cache
def projected(kept_in: str, name: str) -> tuple[Projection, float]:
    """(projection, measured cycles) of one kernel."""
    measured, cubins = opened(kept_in)
    row = select(measured, ids=[name])
    trace = cached_trace(cubins[row["cubin"][0]], launch_from_json(row["launch"][0]))
    return project_trace(trace, load_hw(CHIP), explains=False), float(numbers(row, "cycles")[0])


def test_do_errors_against_silicon_not_grow(request: pytest.FixtureRequest) -> None:
    rows = sample()
    found = [projected(row["file"], row["id"]) for row in rows]
    measured = np.array([cycles for _, cycles in found])
    new_cycles = np.array([projection.cycles for projection, _ in found])
    old_cycles = np.array([float(row["cycles"]) for row in rows])
    new, old = signed_errors(new_cycles, measured), signed_errors(old_cycles, measured)
    growth = np.abs(new) - np.abs(old)
    lines = [
        f"{row['file']} {row['id']}: {a:.0f} -> {b:.0f} cycles ({100 * (b / a - 1):+.2f} %), error {e:+.1f} -> {f:+.1f} %"
        for row, a, b, e, f in zip(rows, old_cycles, new_cycles, old, new, strict=True)
        if round(a) != round(b)
    ]
    lines.append(f"mean error of the sample {np.abs(old).mean():.2f} -> {np.abs(new).mean():.2f} %")
    if request.config.getoption("--update-golden"):
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["file", "id", "cycles"])
        writer.writerows([row["file"], row["id"], round(cycles)] for row, cycles in zip(rows, new_cycles, strict=True))
        BASELINE.write_text(text.getvalue(), encoding="utf-8")
        say(request.config, lines)
        return
    assert growth.max() <= WORST_CASE_POINTS and growth.mean() <= MEAN_POINTS, "\n".join(lines)


def test_are_projections_of_every_executable_chip_as_before(request: pytest.FixtureRequest) -> None:
    executable = [name for name in chip_names() if not load_hw(name).missing_for_execution()]
    assert CHIP in executable
    answers = {}
    for name in SHOWN:
        projection, _ = projected("triton", name)
        answers[f"{name} {projection.kernel}"] = {group: getattr(projection, group) for group in GROUPS}
    compare(f"projections_{CHIP}.json", answers, request.config)


def test_has_the_sample_every_measured_family() -> None:
    families = set()
    for kept_in, name in {(row["file"], row["id"]) for row in sample()}:
        row = select(opened(kept_in)[0], ids=[name])
        assert row["split"][0] == "check"
        families.add(row["kernel"][0])
    shown = json.loads((FOLDER / f"projections_{CHIP}.json").read_text())
    assert len(shown) == len(SHOWN) and len(families) >= 11
