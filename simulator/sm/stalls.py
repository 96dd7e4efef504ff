"""Every resident warp's time, divided by stall reason; every sub-partition's time, divided by cause.

A warp: one issue slot, then what it waited for until its next issue.  A sub-partition, from one issue to the next: cycles
in which tensor cores compute are theirs; then the issue slot; what is left was idle, and belongs to what the warp that
ends the idleness waited for, its last waits first.
"""

from __future__ import annotations

from simulator.compiled import compiled
from simulator.isa.effects import (
    CAUSE_DEPENDENCY,
    CAUSE_ISSUE,
    CAUSE_L2,
    CAUSE_LAUNCH,
    CAUSE_MASK,
    CAUSE_SHARED,
    CAUSE_TAIL,
    CAUSE_TENSOR,
    DISPATCH,
    DRAIN,
    LG_THROTTLE,
    MATH_THROTTLE,
    MIO_THROTTLE,
    NOT_SELECTED,
    PIPE_GLOBAL,
    PIPE_SHARED,
    PIPE_TENSOR,
    PIPE_TRANSCENDENTAL,
    REASON_MASK,
    SELECTED,
    WAIT,
    WHY_AMOUNT_MASK,
    WHY_CAUSE_SHIFT,
    WHY_MIDDLE_AMOUNT_SHIFT,
    WHY_MIDDLE_SHIFT,
    WHY_OUTER_AMOUNT_SHIFT,
    WHY_OUTER_SHIFT,
    WHY_UNIT_SHIFT,
)
from simulator.sm.inputs import CYCLE, I_INTERVAL, I_NUMBER, I_PHASE
from simulator.sm.layout import (
    CAUSE_OF,
    CTA_TURNAROUND,
    EXPLAINS,
    P_STORE,
    P_TENSOR,
    P_TENSOR_BUSY,
    S_CONTENDED,
    S_ISSUED,
    S_LAST,
    S_MMA_BUSY,
    S_PIPES,
    S_TENSOR_SEEN,
    STALL_STRIDE,
    W_ISSUED,
    W_PIPE,
    W_READY,
    W_REASON,
    W_SM,
    W_STACK,
    W_STALLED,
    W_STALLS,
)


@compiled
def account(x, k, sm, smsp, w, row, at):
    """Book the time up to the issue of ``w`` at ``at``: the warp's since its previous issue, the sub-partition's since its."""
    stalls = x[w + W_STALLS] + k[row + I_NUMBER] * x[STALL_STRIDE]
    stalled = x[w + W_STALLED]
    x[stalls + SELECTED] += CYCLE
    x[stalls + WAIT] += stalled - x[w + W_ISSUED] - CYCLE
    ready = max(x[w + W_READY], stalled)
    x[stalls + (x[w + W_REASON] & REASON_MASK)] += ready - stalled
    pipe = x[w + W_PIPE]
    free = x[smsp + S_PIPES + pipe]
    if free > ready:
        until = min(free, at)
        x[stalls + NOT_SELECTED] += throttle(x, stalls, pipe, k[row + I_INTERVAL], until - ready)
        ready = until
    contended = min(at, x[smsp + S_CONTENDED])
    if contended > ready:
        x[stalls + DISPATCH] += contended - ready
        ready = contended
    x[stalls + NOT_SELECTED] += at - ready
    if x[EXPLAINS]:
        divide(x, k, sm, smsp, w, row, at)


@compiled
def throttle(x, stalls, pipe, interval, waited):
    """Book a wait for a busy pipe or a full queue; returns the part in which it was free and another warp took it.

    An arithmetic pipe is free once an interval.  Transcendentals go through the queue of shared memory.
    """
    if pipe == PIPE_GLOBAL:
        x[stalls + LG_THROTTLE] += waited
        return 0
    if pipe == PIPE_SHARED:
        x[stalls + MIO_THROTTLE] += waited
        return 0
    taken = waited * CYCLE // max(interval, CYCLE)
    x[stalls + (MIO_THROTTLE if pipe == PIPE_TRANSCENDENTAL else MATH_THROTTLE)] += waited - taken
    return taken


@compiled
def book_drain(x, w):
    """After its last instruction a warp stays until what its SM has to store is sent."""
    sent = x[x[w + W_SM] + P_STORE]
    x[x[w + W_STALLS] + DRAIN] += max(0, sent - x[w + W_ISSUED] - CYCLE)


@compiled
def divide(x, k, sm, smsp, w, row, at):
    """Divide a sub-partition's time since its previous issue: tensor cores, the issue slot, idleness."""
    stack = x[w + W_STACK] + k[row + I_PHASE]
    length = at - x[smsp + S_ISSUED]
    x[smsp + S_ISSUED] = at
    slot = CYCLE if x[smsp + S_LAST] >= 0 else 0
    busy = x[sm + P_TENSOR_BUSY] + x[smsp + S_MMA_BUSY]
    if busy > 0:
        busy -= max(0, x[sm + P_TENSOR] - at) + max(0, x[smsp + S_PIPES + PIPE_TENSOR] - at)
        tensor = min(max(busy - x[smsp + S_TENSOR_SEEN], 0), length)
        x[smsp + S_TENSOR_SEEN] = busy
        x[stack + CAUSE_TENSOR] += tensor
        length -= tensor
        slot = min(slot, length)
        if x[w + W_PIPE] == PIPE_TENSOR:
            x[smsp + S_MMA_BUSY] += k[row + I_INTERVAL]
    x[stack + CAUSE_ISSUE] += slot
    if length > slot:
        explain(x, stack, smsp, w, at, length - slot)


@compiled
def explain(x, stack, smsp, w, at, idle):
    """Divide ``idle`` ticks before ``at`` by what ``w`` waited for, from its last wait backwards."""
    stalled = x[w + W_STALLED]
    ready = max(x[w + W_READY], stalled)
    pipe = x[w + W_PIPE]
    free = min(at, max(ready, x[smsp + S_PIPES + pipe]))
    idle = charge(x, stack + CAUSE_ISSUE, at - free, idle)
    cause = CAUSE_SHARED if pipe == PIPE_SHARED else CAUSE_L2 if pipe == PIPE_GLOBAL else CAUSE_ISSUE
    idle = charge(x, stack + cause, free - ready, idle)
    if idle > 0:
        idle = explain_wait(x, stack, x[w + W_REASON], ready - stalled, idle)
        idle = charge(x, stack + CAUSE_DEPENDENCY, stalled - x[w + W_ISSUED] - CYCLE, idle)
    if idle > 0:
        most = x[CTA_TURNAROUND] if x[smsp + S_LAST] >= 0 else idle
        idle = charge(x, stack + CAUSE_LAUNCH, most, idle)
        x[stack + CAUSE_TAIL] += idle


@compiled
def explain_wait(x, stack, why, waited, idle):
    """Divide a wait of ``waited`` ticks by its why word; returns the idle ticks that lie before it."""
    before = max(0, idle - waited)
    idle -= before
    outer = (why >> WHY_OUTER_AMOUNT_SHIFT & WHY_AMOUNT_MASK) << WHY_UNIT_SHIFT
    idle = charge(x, stack + (why >> WHY_OUTER_SHIFT & CAUSE_MASK), outer, idle)
    middle = (why >> WHY_MIDDLE_AMOUNT_SHIFT & WHY_AMOUNT_MASK) << WHY_UNIT_SHIFT
    idle = charge(x, stack + (why >> WHY_MIDDLE_SHIFT & CAUSE_MASK), middle, idle)
    cause = why >> WHY_CAUSE_SHIFT & CAUSE_MASK
    if cause == 0:
        cause = x[x[CAUSE_OF] + (why & REASON_MASK)]
    x[stack + cause] += idle
    return before


@compiled
def charge(x, entry, ticks, idle):
    """Book up to ``ticks`` of ``idle`` ticks; returns what is left of them."""
    booked = min(ticks, idle)
    x[entry] += booked
    return idle - booked
