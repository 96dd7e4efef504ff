"""Reduction of one value a thread over the lanes of a warp and the warps of a group: shuffles, then shared memory.

As compilers emit it: five butterfly shuffles; lane 0 of each warp stores; the first warp loads the partial results, shuffles
again and stores; everybody loads. Two barriers, one more where shared memory is used again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.kernels.control_words import Value
from simulator.kernels.vectors import LANE, REGISTER_BYTES
from simulator.kernels.writer import Block, CtaClass, KernelWriter
from simulator.trace.kernel_trace import LANES

OPERATIONS = {"sum": "FADD", "max": "FMNMX"}
BARRIER = "BAR.SYNC.DEFER_BLOCKING"

Slots = tuple[dict[str, np.ndarray], dict[str, np.ndarray]]
"""(event rows, active lanes) by slot."""


@dataclass(frozen=True)
class GroupReduction:
    """``warps`` of a group reduce together; a CTA has ``groups`` of them."""

    warps: int
    groups: int = 1

    @property
    def smem_bytes(self) -> int:
        return REGISTER_BYTES * self.warps * self.groups if self.warps > 1 else 0

    def reduce(self, block: Block, value: Value, operation: str, name: str, is_first: bool = True, to_all: bool = True) -> Value:
        """Code; returns the result (of every thread; ``to_all`` false: of the group's first)."""
        value = _butterfly(block, value, operation, LANES)
        if self.warps == 1:
            return value
        if not is_first:
            block.op(BARRIER, slot=f"{name}.again")
        place = Value("place")
        block.op("LOP3.LUT", [place], [])
        block.op("STS", [], [place, value], slot=f"{name}.partial", width=REGISTER_BYTES)
        block.op(BARRIER, slot=f"{name}.stored")
        partial = Value("partial")
        block.op("LDS", [partial], [place], slot=f"{name}.partials", width=REGISTER_BYTES)
        value = _butterfly(block, partial, operation, self.warps)
        if not to_all:
            return value
        block.op("STS", [], [place, value], slot=f"{name}.result", width=REGISTER_BYTES)
        block.op(BARRIER, slot=f"{name}.reduced")
        result = Value("result")
        block.op("LDS", [result], [], slot=f"{name}.broadcast", width=REGISTER_BYTES)
        return result

    def events(
        self, kernel: KernelWriter, cta: CtaClass, warp: int, name: str, is_first: bool = True, to_all: bool = True
    ) -> Slots:
        """Of warp ``warp`` of the CTA."""
        if self.warps == 1:
            return {}, {}
        leads = warp % self.warps == 0
        base = warp // self.warps * self.warps * REGISTER_BYTES
        one, several = kernel.pattern(np.where(LANE == 0, 0, -1)), kernel.pattern(np.where(self.warps > LANE, LANE * 4, -1))
        own = base + warp % self.warps * REGISTER_BYTES
        barrier = cta.events(count=0)
        events = {
            f"{name}.partial": cta.events(pattern=one, shared_address=own),
            f"{name}.stored": barrier,
            f"{name}.partials": cta.events(pattern=several, shared_address=base),
        }
        active = {f"{name}.partial": np.array(1), f"{name}.partials": np.array(self.warps * leads)}
        if not is_first:
            events[f"{name}.again"] = barrier
        if to_all:
            events[f"{name}.result"] = cta.events(pattern=one, shared_address=base)
            events[f"{name}.reduced"] = barrier
            events[f"{name}.broadcast"] = cta.events(pattern=kernel.pattern(LANE * 0), shared_address=base)
            active[f"{name}.result"] = np.array(int(leads))
        return events, active


def _butterfly(block: Block, value: Value, operation: str, n: int) -> Value:
    for _ in range((n - 1).bit_length()):
        other, total = Value("other"), Value("total")
        block.op("SHFL.BFLY", [other], [value])
        block.op(OPERATIONS[operation], [total], [value, other])
        value = total
    return value


def merged(*parts: Slots) -> Slots:
    """One (events, active) of several."""
    events: dict[str, np.ndarray] = {}
    active: dict[str, np.ndarray] = {}
    for more_events, more_active in parts:
        events |= more_events
        active |= more_active
    return events, active
