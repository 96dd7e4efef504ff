"""Every resident warp's time, divided: one issue slot, then what it waited for until its next issue."""

from __future__ import annotations

from simulator.compiled import compiled
from simulator.isa.effects import (
    DISPATCH,
    LG_THROTTLE,
    MATH_THROTTLE,
    MIO_THROTTLE,
    NOT_SELECTED,
    PIPE_GLOBAL,
    PIPE_SHARED,
    SELECTED,
    WAIT,
)
from simulator.sm.inputs import CYCLE
from simulator.sm.layout import S_CONTENDED, S_PIPES, STALLS, W_ISSUED, W_PIPE, W_READY, W_REASON, W_SMSP, W_STALLED


@compiled
def account(x, w, at):
    """Book the time from the previous issue of ``w`` to its issue ``at``."""
    stalls = x[STALLS]
    stalled = x[w + W_STALLED]
    x[stalls + SELECTED] += CYCLE
    x[stalls + WAIT] += stalled - x[w + W_ISSUED] - CYCLE
    ready = max(x[w + W_READY], stalled)
    x[stalls + x[w + W_REASON]] += ready - stalled
    pipe = x[w + W_PIPE]
    free = x[x[w + W_SMSP] + S_PIPES + pipe]
    if free > ready:
        reason = MIO_THROTTLE if pipe == PIPE_SHARED else LG_THROTTLE if pipe == PIPE_GLOBAL else MATH_THROTTLE
        until = min(free, at)
        x[stalls + reason] += until - ready
        ready = until
    contended = min(at, x[x[w + W_SMSP] + S_CONTENDED])
    if contended > ready:
        x[stalls + DISPATCH] += contended - ready
        ready = contended
    x[stalls + NOT_SELECTED] += at - ready
