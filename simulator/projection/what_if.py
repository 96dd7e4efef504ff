"""What if one resource were ideal? Each answer is a replay; the largest gain comes first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from simulator.hw.config import HardwareConfig
from simulator.projection.ideals import IDEALS, PERFECT_TAIL, Ideal, whole_waves
from simulator.projection.occupancy import occupancy
from simulator.projection.plan import DEFAULT_INSTRUCTION_BUDGET
from simulator.projection.run import project_replay, replay_trace
from simulator.trace.kernel_trace import KernelTrace

WORTH_A_REPLAY = 0.01
"""Causes that take less than 1 % of the time are not replayed."""
ANOMALY = 0.002
"""A loss beyond 0.2 % is reported as a scheduling anomaly."""


@dataclass(frozen=True)
class WhatIf:
    """``cycles`` with the resource ideal; ``gain``: share of the kernel's cycles that go; ``stack_share``: share of the cycle
    stack that is attributed to it; ``remainder`` = stack_share - gain: what other waits then take over (overlap), or, if
    negative, what goes beside it."""

    name: str
    sentence: str
    cycles: float
    gain_cycles: float
    gain: float
    stack_share: float
    remainder: float
    is_anomaly: bool


def what_if(
    trace: KernelTrace, hw: HardwareConfig, base: Mapping[str, float], cycles: float,
    instruction_budget: int = DEFAULT_INSTRUCTION_BUDGET,
) -> list[WhatIf]:  # fmt: skip
    """Replay ``trace`` with each resource ideal that takes time; ``base``: its cycle stack, ``cycles``: its span."""
    answers = []
    for ideal in candidates(base):
        ideal_cycles = replayed_cycles(trace, hw, ideal, instruction_budget)
        if ideal_cycles is not None:
            answers.append(_answer(ideal, base, cycles, ideal_cycles))
    return sorted(answers, key=lambda answer: -answer.gain)


def candidates(stack: Mapping[str, float]) -> Iterator[Ideal]:
    """Ideals whose causes take a share of the cycle stack that is worth a replay."""
    for ideal in (*IDEALS, PERFECT_TAIL):
        if stack_share(ideal, stack) >= WORTH_A_REPLAY:
            yield ideal


def stack_share(ideal: Ideal, stack: Mapping[str, float]) -> float:
    """What the cycle stack attributes to the causes of an ideal."""
    return sum(stack.get(cause, 0.0) for cause in ideal.causes)


def replayed_cycles(
    trace: KernelTrace, hw: HardwareConfig, ideal: Ideal, instruction_budget: int = DEFAULT_INSTRUCTION_BUDGET
) -> float | None:
    """Cycles with one resource ideal, None if the ideal does not apply to this launch."""
    if ideal is PERFECT_TAIL:
        return _full_wave_cycles(trace, hw, instruction_budget)
    chip = ideal.chip(hw)
    replay = replay_trace(trace, chip, instruction_budget, edit=ideal.edit)
    return project_replay(replay, chip, 0.0).cycles


def _full_wave_cycles(trace: KernelTrace, hw: HardwareConfig, instruction_budget: int) -> float | None:
    """Cycles of the full waves alone, scaled by the work of the whole grid."""
    resident = _residency(trace, hw)
    full = whole_waves(trace, hw.sm.count * resident)
    if full is None:
        return None
    replay = replay_trace(full, hw, instruction_budget)
    fixed = hw.execution_sections().timing.launch
    launch = fixed.latency_cycles + fixed.extra_cold_cycles + fixed.drain_cycles
    cycles = project_replay(replay, hw, 0.0).cycles
    return launch + max(0.0, cycles - launch) * trace.warp_instructions / full.warp_instructions


def _residency(trace: KernelTrace, hw: HardwareConfig) -> int:
    return occupancy(hw, trace.registers_per_thread, trace.launch.n_threads, trace.smem_bytes_per_cta).ctas_per_sm


def _answer(ideal: Ideal, stack: Mapping[str, float], cycles: float, ideal_cycles: float) -> WhatIf:
    gain = 1 - ideal_cycles / cycles
    share = stack_share(ideal, stack)
    return WhatIf(ideal.name, ideal.sentence, ideal_cycles, cycles - ideal_cycles, gain, share, share - gain, gain < -ANOMALY)
