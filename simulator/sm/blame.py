"""Why words: what a request was waiting for, so that whoever waits for it can say (isa/effects.py has their form)."""

from __future__ import annotations

from simulator.compiled import compiled
from simulator.isa.effects import (
    CAUSE_DEPENDENCY,
    CAUSE_DRAM_BANDWIDTH,
    CAUSE_DRAM_LATENCY,
    CAUSE_L2,
    CAUSE_SHARED,
    WHY_AMOUNT_MASK,
    WHY_CAUSE_SHIFT,
    WHY_MIDDLE_AMOUNT_SHIFT,
    WHY_MIDDLE_SHIFT,
    WHY_OUTER_AMOUNT_SHIFT,
    WHY_OUTER_SHIFT,
    WHY_UNIT_SHIFT,
)
from simulator.memory.layout import DRAM_LATENCY, DRAM_SPREAD, FAR, L2_QUEUED, NEAR, NEAR_SPREAD
from simulator.sm.layout import MISS_QUEUED


@compiled
def why_of(cause, middle, middle_ticks, outer, outer_ticks):
    """A wait for ``cause`` whose last ``outer_ticks`` are ``outer``'s, and the ``middle_ticks`` before them ``middle``'s."""
    return (
        cause << WHY_CAUSE_SHIFT
        | middle << WHY_MIDDLE_SHIFT
        | outer << WHY_OUTER_SHIFT
        | min(max(middle_ticks, 0) >> WHY_UNIT_SHIFT, WHY_AMOUNT_MASK) << WHY_MIDDLE_AMOUNT_SHIFT
        | min(max(outer_ticks, 0) >> WHY_UNIT_SHIFT, WHY_AMOUNT_MASK) << WHY_OUTER_AMOUNT_SHIFT
    )


@compiled
def blame_shared(queued):
    """A shared-memory result: its latency, then ``queued`` ticks for earlier wavefronts and its own further ones."""
    return why_of(CAUSE_DEPENDENCY, CAUSE_SHARED, 0, CAUSE_SHARED, queued)


@compiled
def blame_read(x, latency, cause):
    """A read that took ``latency`` ticks beyond the SM's own; ``cause``: of the time that an L2 hit would take.

    Slower than any L2 hit means that it, or the one that brought the line, went to DRAM; slower than an idle DRAM means a
    queue there.
    """
    if latency <= 0:
        return CAUSE_DEPENDENCY << WHY_CAUSE_SHIFT
    queued = min(x[L2_QUEUED] + x[MISS_QUEUED], latency)
    served = latency - queued
    if served <= x[NEAR] + x[NEAR_SPREAD] + x[FAR]:
        return why_of(cause, cause, 0, CAUSE_L2, queued)
    from_dram = served - x[NEAR]
    waited = from_dram - x[FAR] - x[DRAM_LATENCY] - x[DRAM_SPREAD]
    if waited > queued:
        return why_of(cause, CAUSE_DRAM_LATENCY, from_dram - waited, CAUSE_DRAM_BANDWIDTH, waited)
    return why_of(cause, CAUSE_DRAM_LATENCY, from_dram, CAUSE_L2, queued)
