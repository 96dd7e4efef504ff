"""Did any chip's answer about occupancy or memory accesses change?"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from simulator.errors import Unsupported, UserError
from simulator.hw.catalog import chip_names
from simulator.hw.config import HardwareConfig
from simulator.hw.loader import load_hw
from simulator.lower.access_answer import answer_access
from simulator.lower.access_kinds import kind_named
from simulator.projection.occupancy import occupancy
from tests.golden.golden_file import compare

LAUNCHES = {"small": (32, 128, 0), "typical": (96, 256, 40_960), "large": (168, 384, 98_304)}
"""Registers per thread, threads, bytes of shared memory."""
ACCESSES = {"lds stride 8": ("lds", 4, 8), "lds 16 bytes, rows of 128": ("lds", 16, 128), "ldg stride 36": ("ldg", 4, 36)}
"""Kind, bytes per lane, bytes between lanes."""


def answered(ask: Any) -> Any:
    """The answer, or the sentence that refuses."""
    try:
        return ask()
    except (UserError, Unsupported) as error:
        return str(error)


def resident(chip: HardwareConfig, registers: int, threads: int, smem: int) -> dict[str, Any]:
    found = occupancy(chip, registers, threads, smem).to_json()
    return {name: found[name] for name in ("ctas_per_sm", "limiters", "limits", "smem_allocated_per_cta")}


def access(chip: HardwareConfig, kind: str, width: int, stride: int) -> dict[str, Any]:
    answer = answer_access(kind_named(kind), width, stride * np.arange(chip.sm.warp_size), chip)
    return {name: int(value) for name, value in asdict(answer.cost).items() if value is not None}


@pytest.mark.parametrize("kind", ["occupancy", "access"])
def test_does_every_chip_answer_as_before(kind: str, request: pytest.FixtureRequest) -> None:
    questions: dict[str, Any] = {"occupancy": LAUNCHES, "access": ACCESSES}[kind]
    ask = {"occupancy": resident, "access": access}[kind]
    answers = {}
    for name in chip_names():
        chip = load_hw(name)
        answers[name] = {
            title: answered(lambda chip=chip, question=question: ask(chip, *question)) for title, question in questions.items()
        }
    compare(f"{kind}.json", answers, request.config)
