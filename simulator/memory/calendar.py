"""Bandwidth servers that accept requests out of time order.

Time is cut into windows of 2**B_SHIFT ticks; each window can give that many ticks of service.  A request takes
service from the first windows at or after its arrival that have any left, so the answer hardly depends on
the order in which requests are made: a copy can book the port it will need when its data arrives.
"""

from __future__ import annotations

import numpy as np

from simulator.compiled import compiled

# Record of a server: window length, ring of windows, a run of windows known to be exhausted; then
# (window number, ticks given) pairs.
B_SHIFT, B_WINDOWS, B_EXHAUSTED_FIRST, B_EXHAUSTED_LAST, B_RING = range(5)
EMPTY = -1


def calendar_size(n_windows: int) -> int:
    """Words of a server's record."""
    return B_RING + 2 * n_windows


def make_idle(heap: np.ndarray, calendar: int, shift: int, n_windows: int) -> None:
    """Set up an idle server. ``n_windows``: a power of two."""
    heap[calendar + B_SHIFT] = shift
    heap[calendar + B_WINDOWS] = n_windows
    ring = calendar + B_RING
    heap[ring : ring + 2 * n_windows : 2] = EMPTY


@compiled
def reserve(x, calendar, at, amount):
    """Take ``amount`` ticks of service for a request that arrives ``at``; returns when it is served.

    A window serves its requests one after another from its start."""
    return book(x, calendar, at, amount, True)


@compiled
def reserve_share(x, calendar, at, amount):
    """As ``reserve``, for requests that are interleaved: none waits while its window has service left."""
    return book(x, calendar, at, amount, False)


@compiled
def book(x, calendar, at, amount, is_dense):
    """Find windows with service left, from ``at`` on; see ``reserve`` and ``reserve_share``."""
    shift = x[calendar + B_SHIFT]
    last_slot = x[calendar + B_WINDOWS] - 1
    window = at >> shift
    left = amount
    while True:
        if x[calendar + B_EXHAUSTED_FIRST] <= window < x[calendar + B_EXHAUSTED_LAST]:
            window = x[calendar + B_EXHAUSTED_LAST]
        slot = calendar + B_RING + 2 * (window & last_slot)
        if x[slot] != window:
            x[slot] = window
            x[slot + 1] = 0
        take = min((1 << shift) - x[slot + 1], left)
        x[slot + 1] += take
        left -= take
        if left == 0:
            start = window << shift
            return max(at + amount, start + x[slot + 1]) if is_dense else max(at, start) + amount
        if x[calendar + B_EXHAUSTED_LAST] != window:
            x[calendar + B_EXHAUSTED_FIRST] = window
        x[calendar + B_EXHAUSTED_LAST] = window + 1
        window += 1
