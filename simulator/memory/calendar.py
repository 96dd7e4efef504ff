"""Bandwidth servers that accept requests out of time order.

Time is cut into windows of 2**WINDOW_SHIFT ticks; each window can give that many ticks of service.  A request takes
service from the first windows at or after its arrival that have any left, so the answer hardly depends on
which SM was simulated first.
"""

from __future__ import annotations

from numba import njit

from simulator.memory.layout import (
    CALENDAR_START,
    CALENDAR_WINDOWS,
    CALENDARS,
    EXHAUSTED_FIRST,
    EXHAUSTED_LAST,
    WINDOW_SHIFT,
)


@njit(cache=True)
def reserve(x, server, at, amount):
    """Take ``amount`` ticks of service for a request that arrives ``at``; returns when it is served."""
    width = 1 << x[WINDOW_SHIFT]
    ring = x[CALENDAR_WINDOWS]
    calendar = x[CALENDARS] + server * (CALENDAR_START + 2 * ring)
    slots = calendar + CALENDAR_START
    window = at >> x[WINDOW_SHIFT]
    left = amount
    while True:
        if x[calendar + EXHAUSTED_FIRST] <= window < x[calendar + EXHAUSTED_LAST]:
            window = x[calendar + EXHAUSTED_LAST]
        slot = slots + 2 * (window & (ring - 1))
        if x[slot] != window:
            x[slot] = window
            x[slot + 1] = 0
        take = min(width - x[slot + 1], left)
        x[slot + 1] += take
        left -= take
        if left == 0:
            return max(at + amount, (window << x[WINDOW_SHIFT]) + x[slot + 1])
        if x[calendar + EXHAUSTED_LAST] != window:
            x[calendar + EXHAUSTED_FIRST] = window
        x[calendar + EXHAUSTED_LAST] = window + 1
        window += 1
