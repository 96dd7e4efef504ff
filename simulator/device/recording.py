"""A replay that keeps what one SM did, issue by issue and event by event: the raw material of a timeline."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from simulator.device.machine import Plan, Watch, collect
from simulator.device.simulate import launched
from simulator.hw.config import HardwareConfig
from simulator.isa.effects import EVENT_CTA, EVENT_MMA, EVENT_PHASE
from simulator.sm.engine import run
from simulator.sm.inputs import CYCLE, Program
from simulator.sm.layout import (
    CTA_SIZE,
    CTAS,
    EVENT_FIELDS,
    EVENT_KIND,
    EVENT_OF,
    EVENTS,
    N_EVENTS,
    NEVER,
    SMS,
    WARP_FIELDS,
    WARPS,
)

PIECE = 100_000
"""Instructions between two looks at the logs."""
EVENTS_PER_ISSUE = 2
LOG_COLUMNS = 4


@dataclass(frozen=True)
class Recording:
    """What the first simulated SM did; times are ticks. ``issues`` int64 [n, 4]: time, warp (slot x warps per CTA + warp),
    stream entry, why word of its last wait; ``events`` int64 [m, 5]: kind, whose (warp, mbarrier or CTA slot by number),
    start, end, number (isa.effects.EVENT_*); ``end``: of the launch."""

    issues: np.ndarray
    events: np.ndarray
    n_warps: int
    n_slots: int
    end: int


def record(program: Program, hw: HardwareConfig, plan: Plan, n_most: int) -> Recording:
    """Replay in full (no wave is skipped), or until about ``n_most`` instructions of the first SM were issued."""
    timing = hw.execution_sections().timing
    shape, x, k = launched(program, hw, timing, replace(plan, skips_waves=False), Watch(n_events=PIECE * EVENTS_PER_ISSUE))
    issues, events, n_kept = [], [], 0
    while True:
        log = np.zeros((PIECE, LOG_COLUMNS), np.int64)
        n, soonest = run(x, k, PIECE, log)
        log = log[: min(n, PIECE)]
        log[:, 1] = (log[:, 1] - x[WARPS]) // WARP_FIELDS
        kept = log[log[:, 1] < shape.n_slots * shape.n_warps]
        issues.append(kept)
        events.append(_own_events(x, shape.n_slots, shape.n_warps))
        x[N_EVENTS] = 0
        n_kept += len(kept)
        if soonest == NEVER or n_kept >= n_most:
            break
    end = collect(x, shape, 0).end_ticks if soonest == NEVER else int(soonest)
    return Recording(np.concatenate(issues), np.concatenate(events), shape.n_warps, shape.n_slots, end)


def _own_events(x: np.ndarray, n_slots: int, n_warps: int) -> np.ndarray:
    """Logged events of the first SM, records replaced by numbers; the number of a box load becomes its mbarrier's."""
    events = x[x[EVENTS] : x[EVENTS] + x[N_EVENTS] * EVENT_FIELDS].reshape(-1, EVENT_FIELDS).copy()
    kind, owner = events[:, EVENT_KIND], events[:, EVENT_OF]
    in_slots = np.isin(kind, (EVENT_PHASE, EVENT_CTA))
    is_own = np.where(
        kind == EVENT_MMA,
        owner == x[SMS],
        np.where(in_slots, owner < x[CTAS] + n_slots * x[CTA_SIZE], owner < x[WARPS] + n_slots * n_warps * WARP_FIELDS),
    )
    own = events[is_own.astype(bool)]
    is_warp = ~np.isin(own[:, EVENT_KIND], (EVENT_MMA, EVENT_PHASE, EVENT_CTA))
    own[is_warp, EVENT_OF] = (own[is_warp, EVENT_OF] - x[WARPS]) // WARP_FIELDS
    cta = own[:, EVENT_KIND] == EVENT_CTA
    own[cta, EVENT_OF] = (own[cta, EVENT_OF] - x[CTAS]) // x[CTA_SIZE]
    return own


def cycles(ticks: int | np.ndarray) -> float | np.ndarray:
    """Ticks as SM cycles."""
    return ticks / CYCLE
