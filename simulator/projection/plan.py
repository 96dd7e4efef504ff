"""How much of a launch is simulated: how many SMs, how many L2 lines, and what that leaves out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from simulator.device.machine import Plan
from simulator.hw.config import HardwareConfig
from simulator.isa.effects import LINE_BYTES, PIPE_TENSOR, TENSOR_ASYNC
from simulator.projection.occupancy import Occupancy
from simulator.sm.inputs import E_PATTERN, E_TENSOR, I_EFFECT, I_PIPE, T_BOX, T_DIMENSIONS, T_ELEMENT, Program
from simulator.trace.kernel_trace import KernelTrace, TensorMap

DEFAULT_INSTRUCTION_BUDGET = 12_000_000
"""Warp instructions that a projection issues at most, unless the fewest SMs need more."""
FEWEST_SMS = 8
FEWEST_SMS_SMALL_BUDGET = 4
"""With less than the default budget: half of the SMs then stand for twice as many others."""
LINES_PER_INSTRUCTION = 0.5
"""L2 lines that are followed by address, about, per instruction of the budget."""
MATRIX_SHARE = 2
"""Matrix kernels of one CTA class are replayed with half the instructions: their SMs keep step (measured lags), so that few
stand for all."""
LARGEST_SAMPLE_SHIFT = 5


@dataclass(frozen=True)
class Budget:
    """How much is simulated: warp ``instructions`` to issue at most, unless ``fewest_sms`` SMs need more; L2 ``lines``
    that are followed by address, about."""

    instructions: int
    lines: int
    fewest_sms: int


def budget_for(instructions: int) -> Budget:
    """The budget of a projection that may issue about so many warp instructions."""
    is_small = instructions < DEFAULT_INSTRUCTION_BUDGET
    return Budget(instructions, int(LINES_PER_INSTRUCTION * instructions), FEWEST_SMS_SMALL_BUDGET if is_small else FEWEST_SMS)


def choose_plan(
    trace: KernelTrace,
    program: Program,
    hw: HardwareConfig,
    occupancy: Occupancy,
    clock_hz: float,
    budget: Budget | int = DEFAULT_INSTRUCTION_BUDGET,
) -> Plan:
    """Simulate all SMs when the budget allows, else as many as it does, at least FEWEST_SMS (fewer with a small
    budget). ``budget``: an integer is warp instructions."""
    budget = budget_for(budget) if isinstance(budget, int) else budget
    n_chip = hw.sm.count
    n_busy = min(n_chip, trace.launch.n_ctas)
    is_uniform = trace.n_classes == 1 and uses_tensor_cores(program)
    instructions = budget.instructions // (MATRIX_SHARE if is_uniform else 1)
    affordable = int(n_busy * instructions / max(1, trace.warp_instructions))
    n_sms = min(n_busy, max(budget.fewest_sms, affordable))
    slots = min(occupancy.ctas_per_sm, -(-trace.launch.n_ctas // n_chip))
    l1 = hw.execution_sections().l1.combined_capacity_bytes or 0
    return Plan(
        n_sms=n_sms,
        n_chip_sms=n_busy,
        n_slots=max(1, slots),
        sample_shift=sample_shift(trace, program, budget.lines),
        clock_hz=clock_hz,
        l1_bytes=max(0, l1 - (occupancy.smem_carveout or 0)),
    )


def sample_shift(trace: KernelTrace, program: Program, line_budget: int) -> int:
    """One of 2**shift lines is followed through the L2, about ``line_budget``; boxes keep at least one followed row each."""
    per_class = np.zeros(len(trace.streams), np.int64)
    events = event_lines(program)
    for c, warps in enumerate(trace.streams):
        per_class[c] = sum(int(events[s.event[s.event >= 0]].sum()) for s in warps)
    lines = int(per_class[trace.cta_class].sum())
    shift = 0
    limit = 0 if _rows_have_several_names(trace.tensor_maps) else _largest_shift(program)
    while shift < limit and lines >> shift > line_budget:
        shift += 1
    return shift


def _rows_have_several_names(maps: Sequence[TensorMap]) -> bool:
    """Whether boxes are parts of im2col boxes, or tensor maps overlap a row or more apart, as those of a filter's taps:
    CTAs then know one row of memory by different coordinates, and no part of the rows can be followed by coordinate."""
    ordered = sorted(maps, key=lambda t: t.address)
    return any(one.row_share < 1 for one in maps) or any(
        one.address + one.strides_bytes[0] <= other.address < one.address + _reach(one)
        for one, other in pairwise(ordered)
        if one.strides_bytes
    )


def _reach(found: TensorMap) -> int:
    """Bytes from a tensor's first row to its last."""
    return sum((n - 1) * stride for n, stride in zip(found.shape[1:], found.strides_bytes, strict=True))


def _largest_shift(program: Program) -> int:
    used = program.tensor[program.tensor[:, T_DIMENSIONS] > 0]
    rows = [int(np.prod(t[T_BOX + 1 : T_BOX + t[T_DIMENSIONS]])) for t in used]
    return min([LARGEST_SAMPLE_SHIFT] + [max(0, r.bit_length() - 1) for r in rows])


def event_lines(program: Program) -> np.ndarray:
    """Lines that each event touches, about; int64 [n_events]."""
    table = program.event_table
    n_slots = program.misalignment_slot[LINE_BYTES]
    lines = np.zeros(len(table), np.int64)
    is_global = table[:, E_PATTERN] >= 0
    first = table[is_global, E_PATTERN] * n_slots
    lines[is_global] = program.variant_start[first + 1] - program.variant_start[first]
    boxes = table[:, E_TENSOR] >= 0
    tensor = program.tensor[table[boxes, E_TENSOR]]
    rows = np.ones(len(tensor), np.int64)
    for d in range(1, 5):
        rows *= np.where(tensor[:, T_DIMENSIONS] > d, tensor[:, T_BOX + d], 1)
    lines[boxes] = rows * np.maximum(1, tensor[:, T_BOX] * tensor[:, T_ELEMENT] // LINE_BYTES)
    return lines


def uses_tensor_cores(program: Program) -> bool:
    """Whether a program has MMA instructions."""
    static = program.static
    return bool(((static[:, I_EFFECT] == TENSOR_ASYNC) | (static[:, I_PIPE] == PIPE_TENSOR)).any())
