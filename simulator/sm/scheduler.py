"""Warp scheduler of a sub-partition: greedy, then oldest. One cached candidate, recomputed when something changed."""

from __future__ import annotations

from simulator.compiled import compiled
from simulator.sm.layout import (
    NEVER,
    S_CANDIDATE,
    S_CANDIDATE_AT,
    S_DIRTY,
    S_LAST,
    S_NOW,
    S_PIPES,
    S_ROSTER,
    S_ROSTER_SIZE,
    W_PIPE,
    W_READY,
)


@compiled
def choose_warp(x, smsp):
    """Find the warp that issues next on a sub-partition and when."""
    now = x[smsp + S_NOW]
    last = x[smsp + S_LAST]
    x[smsp + S_DIRTY] = 0
    pipes = smsp + S_PIPES
    if last >= 0 and x[last + W_READY] <= now and x[pipes + x[last + W_PIPE]] <= now:
        x[smsp + S_CANDIDATE] = last
        x[smsp + S_CANDIDATE_AT] = now
        return
    best = NEVER
    chosen = -1
    roster = smsp + S_ROSTER
    for i in range(roster, roster + x[smsp + S_ROSTER_SIZE]):
        w = x[i]
        at = x[w + W_READY]
        if at >= best:
            continue
        at = max(at, x[pipes + x[w + W_PIPE]], now)
        if at < best:
            best = at
            chosen = w
    x[smsp + S_CANDIDATE] = chosen
    x[smsp + S_CANDIDATE_AT] = best
