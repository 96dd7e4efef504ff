"""Replays that were done before: two chips that look the same to a kernel are simulated once.

Most parameters of a tornado do not reach a given kernel at all (it has no such instruction). Its lowered program, the
parameters and the plan are then equal bit for bit, and so is the outcome of the replay, which depends on nothing else.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import replace

import numpy as np

from simulator.device.machine import Plan, Run, machine_shape, uses_memory
from simulator.device.simulate import simulate
from simulator.hw.config import HardwareConfig
from simulator.hw.timing import Timing
from simulator.lower.params import lower_memory_parameters, lower_sm_parameters
from simulator.sm.inputs import Program, pack

RUNS_KEPT = 128


class Replays:
    """Stands in for ``simulate``; remembers the last RUNS_KEPT outcomes without their machines."""

    def __init__(self) -> None:
        self._runs: OrderedDict[bytes, Run] = OrderedDict()
        self.n_reused = 0

    def __call__(self, program: Program, hw: HardwareConfig, timing: Timing, plan: Plan) -> Run:
        key = _name(program, hw, timing, plan)
        found = self._runs.get(key)
        if found is not None:
            self._runs.move_to_end(key)
            self.n_reused += 1
            return found
        run = simulate(program, hw, timing, plan)
        if not run.finished:
            return run
        self._runs[key] = replace(run, machine=np.zeros(0, np.int64))
        if len(self._runs) > RUNS_KEPT:
            self._runs.popitem(last=False)
        return run


def _name(program: Program, hw: HardwareConfig, timing: Timing, plan: Plan) -> bytes:
    """Digest of all that a replay reads: packed program, memory and SM parameters, sizes of the machine, plan."""
    digest = hashlib.sha256(pack(program).tobytes())
    digest.update(lower_memory_parameters(hw, timing, plan.clock_hz, plan.sample_shift).tobytes())
    digest.update(lower_sm_parameters(timing, uses_memory(program)).tobytes())
    shape = machine_shape(hw, timing, plan, program)
    for name, value in sorted(vars(shape).items()):
        content = value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode()
        digest.update(name.encode() + content)
    digest.update(repr(plan).encode())
    return digest.digest()
