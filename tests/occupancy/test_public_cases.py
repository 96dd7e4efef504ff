"""Do we give the right answer to the occupancy questions that people have asked in public?"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from simulator.errors import UserError
from simulator.hw.config import HardwareConfig
from simulator.hw.loader import load_hw
from simulator.projection.occupancy import occupancy
from simulator.projection.residency import max_registers_for

DATA = Path(__file__).resolve().parents[1] / "data"
CASES = [json.loads(line) for line in (DATA / "occupancy_cases.jsonl").read_text().splitlines()]
CHECKS = [(case["id"], check) for case in CASES for check in case["checks"]]

load = cache(load_hw)


def answer(check: dict[str, Any]) -> dict[str, Any]:
    """Our answer in the words of the cases: percentages, and warps per sub-partition."""
    hw: HardwareConfig = load(check["hw"])
    options = {key: value for key, value in check.items() if key not in ("hw", "expect", "refused")}
    found = occupancy(hw, options.pop("regs"), options.pop("threads"), options.pop("smem"), **options)
    return {
        **found.to_json(),
        "occupancy_pct": round(100 * found.occupancy, 2),
        "warps_per_subpartition": found.warps_per_sm / hw.sm.n_subpartitions,
    }


@pytest.mark.parametrize(("case", "check"), CHECKS, ids=[f"{case}-{n}" for n, (case, _) in enumerate(CHECKS)])
def test_is_the_public_case_right(case: str, check: dict[str, Any]) -> None:
    if "refused" in check:
        with pytest.raises(UserError, match=check["refused"]):
            answer(check)
        return
    found = answer(check)
    for key, expected in check["expect"].items():
        if key == "limits":
            assert {name: found["limits"][name] for name in expected} == expected
        else:
            assert found[key] == expected, key


def test_does_every_case_have_a_check_and_a_source() -> None:
    assert len(CASES) == 24
    assert all(case["checks"] and case["source"]["title"] and case["expected"] for case in CASES)


def test_how_many_registers_does_a_wanted_cta_count_leave() -> None:
    """Launch bounds that ask for 5 CTAs of 256 threads cap at 51 registers, of which 48 are usable; 3 CTAs leave 80."""
    hw = load("h100_sxm")
    assert max_registers_for(hw, threads=256, n_ctas=5) == 48
    assert max_registers_for(hw, threads=256, n_ctas=3) == 80


def test_how_many_waves_does_a_grid_take() -> None:
    hw = load("l4")
    ctas = occupancy(hw, regs=72, threads=256, smem=33024).ctas_per_sm
    assert round(2048 / (hw.sm.count * ctas), 2) == 11.77


def test_is_the_register_need_that_is_refused_the_rounded_one() -> None:
    with pytest.raises(UserError, match=r"81,920 registers.*65,536.*at most 128"):
        occupancy(load("b300"), regs=156, threads=512)
