"""Replay a lowered kernel on a chip."""

from __future__ import annotations

import numpy as np

from simulator.device.machine import NOTHING_MORE, Plan, Run, Watch, first_wave, machine_shape, uses_memory
from simulator.device.steady_state import replay
from simulator.hw.config import HardwareConfig
from simulator.hw.timing import Timing
from simulator.lower.params import lower_memory_parameters, lower_sm_parameters
from simulator.sm.dispatch import launch
from simulator.sm.heap import MachineShape, make_machine
from simulator.sm.inputs import Program, pack


def simulate(
    program: Program,
    hw: HardwareConfig,
    timing: Timing,
    plan: Plan,
    log: np.ndarray | None = None,
    watch: Watch = NOTHING_MORE,
) -> Run:
    """Run a program to its end, or to a deadlock (``finished`` is False then).

    ``log`` int64 [n, 3], filled with the first n issues (time, warp record, stream entry): no wave is skipped then.
    """
    shape, x, k = launched(program, hw, timing, plan, watch)
    return replay(x, k, shape, plan, program, np.zeros((0, 3), np.int64) if log is None else log)


def ctas_per_sm(plan: Plan, shape: MachineShape) -> int:
    """CTAs that an SM runs at a time."""
    return min(plan.n_slots, -(-shape.n_ctas // plan.n_chip_sms))


def launched(
    program: Program, hw: HardwareConfig, timing: Timing, plan: Plan, watch: Watch
) -> tuple[MachineShape, np.ndarray, np.ndarray]:
    """Sizes and memory of a machine with its first CTAs on their SMs, and the program as the engine reads it."""
    shape = machine_shape(hw, timing, plan, program, watch)
    x = make_machine(
        shape,
        lower_memory_parameters(hw, timing, plan.clock_hz, plan.sample_shift),
        lower_sm_parameters(timing, uses_memory(program), ctas_per_sm(plan, shape)),
    )
    k = pack(program)
    launch(x, k, first_wave(plan, shape.members, shape.n_ctas))
    return shape, x, k
