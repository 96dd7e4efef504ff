"""Are public questions about bank conflicts and coalescing answered right?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simulator.cli.lane_offsets import evaluate_lanes, parse_lanes
from simulator.hw.config import HardwareConfig
from simulator.hw.loader import load_hw
from simulator.lower.access_answer import answer_access, bank_rules
from simulator.lower.access_kinds import KIND_RULES, kind_named
from simulator.lower.bank_use import bank_use

CASES = [
    json.loads(line)
    for line in (Path(__file__).resolve().parents[1] / "data" / "access_cases.jsonl").read_text().splitlines()
]


def answers(check: dict[str, Any]) -> dict[str, Any]:
    """Every figure that the simulator has for the question of one check."""
    chip: HardwareConfig = load_hw(check["hw"])
    kind = kind_named(check["kind"])
    offsets: np.ndarray = (
        evaluate_lanes(check["expr"], chip.sm.warp_size) if "expr" in check else parse_lanes(check["lanes"])
    )
    found = answer_access(kind, check["width"], offsets, chip).to_json()
    if KIND_RULES[kind].is_shared:
        use = bank_use(kind, check["width"], offsets, bank_rules(chip))
        found.update(banks_touched=use.banks_touched, lanes_per_bank=use.lanes_per_bank)
    return found


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_is_the_public_answer_ours(case: dict[str, Any]) -> None:
    totals: dict[str, int] = {}
    for check in case["checks"]:
        found = answers(check)
        for name, expected in check["answers"].items():
            assert found[name] == expected, check
            totals[name] = totals.get(name, 0) + expected * check.get("times", 1)
    for name, expected in case.get("total", {}).items():
        assert totals[name] == expected


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_does_every_case_name_its_source_and_what_is_not_computed(case: dict[str, Any]) -> None:
    assert all(case["source"][key] for key in ("site", "title", "address"))
    assert case["checks"] or case["why"]
