"""The start of a replay, to learn a kernel's pace before all of it is replayed."""

from __future__ import annotations

import numpy as np

from simulator.device.machine import Plan, Watch
from simulator.device.simulate import launched
from simulator.hw.config import HardwareConfig
from simulator.hw.timing import Timing
from simulator.sm.engine import run
from simulator.sm.inputs import CYCLE, Program
from simulator.sm.layout import NEVER


def cycles_of_start(
    program: Program, hw: HardwareConfig, timing: Timing, plan: Plan, n_instructions: int
) -> tuple[int, float] | None:
    """(warp instructions issued, cycles) when a replay of ``plan`` has issued about the first ``n_instructions``; None
    when it has ended or is stuck by then."""
    _, x, k = launched(program, hw, timing, plan, Watch(explains=False))
    issued, soonest = run(x, k, n_instructions, np.zeros((0, 3), np.int64))
    return None if soonest == NEVER else (int(issued), int(soonest) / CYCLE)
