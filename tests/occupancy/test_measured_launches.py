"""Does the occupancy of every measured launch come out exactly, limit by limit?"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

from simulator.hw.config import HardwareConfig
from simulator.hw.loader import load_hw
from simulator.projection.occupancy import occupancy

DATA = Path(__file__).resolve().parents[1] / "data"


@pytest.fixture(scope="module")
def h200() -> HardwareConfig:
    return load_hw("h200")


def launches() -> Iterator[dict[str, int]]:
    with (DATA / "h200_launches.csv").open() as file:
        for row in csv.DictReader(file):
            yield {name: int(value) for name, value in row.items()}


def test_is_every_limit_of_every_measured_launch_exact(h200: HardwareConfig) -> None:
    wrong = []
    for row in launches():
        answer = occupancy(h200, row["regs"], row["threads"], row["smem"], carveout=row["carveout"])
        measured = {name: row[f"limit_{name}"] for name in ("ctas", "registers", "smem", "warps")}
        if answer.limits != measured or answer.ctas_per_sm != min(measured.values()):
            wrong.append((row, answer.limits))
    assert not wrong


def test_are_there_launches_of_every_kind_to_be_exact_about() -> None:
    rows = list(launches())
    assert len(rows) > 300
    assert {row["threads"] for row in rows} >= {32, 64, 128, 256, 512, 1024}
    assert len({row["carveout"] for row in rows}) >= 8
    scarcest = {min(("ctas", "registers", "smem", "warps"), key=lambda name: row[f"limit_{name}"]) for row in rows}
    assert scarcest == {"ctas", "registers", "smem", "warps"}
