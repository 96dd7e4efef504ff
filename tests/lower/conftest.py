"""The chip that lowering is asked about."""

from __future__ import annotations

import pytest

from simulator.hw.config import HardwareConfig
from simulator.hw.loader import load_hw
from simulator.hw.timing import Timing
from simulator.lower.program import timing_of


@pytest.fixture(scope="session")
def hw() -> HardwareConfig:
    return load_hw("h200")


@pytest.fixture(scope="session")
def timing(hw: HardwareConfig) -> Timing:
    return timing_of(hw)
