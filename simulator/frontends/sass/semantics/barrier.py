"""Barriers of the CTA (BAR): which warps wait, and when they go on."""

from __future__ import annotations

import numpy as np

from simulator.frontends.sass.execution_log import new_event
from simulator.frontends.sass.semantics.codes import BARRIER_SYNC, LANES
from simulator.frontends.sass.semantics.compiled import internal
from simulator.frontends.sass.semantics.records import N_BARRIERS
from simulator.frontends.sass.semantics.sources import first_lane
from simulator.frontends.sass.warp_state import AT_CTA_BARRIER, FINISHED, READY

OUT_OF_RANGE = -1


@internal
def arrive(cta, warps, warp, log, row, active):
    """One warp arrives at barrier a with b threads (0: all of the CTA). SYNC blocks it. Returns the event number, or
    OUT_OF_RANGE."""
    lane = first_lane(active)
    barrier, threads = np.int64(warp.values[row.a, lane]), np.int64(warp.values[row.b, lane])
    if barrier >= N_BARRIERS:
        return OUT_OF_RANGE
    number = new_event(cta, log)
    log.events[number].count = threads
    log.events[number].parity = barrier
    cta.arrived[barrier] += 1
    cta.expected[barrier] = threads // LANES
    if row.x0 == BARRIER_SYNC:
        warp.status = AT_CTA_BARRIER
        warp.at_barrier = barrier
    release_complete(cta, warps, barrier)
    return number


@internal
def release_complete(cta, warps, barrier):
    """Wake the waiting warps once all have arrived; exited warps no longer count."""
    n_warps, finished = len(warps), 0
    for k in range(n_warps):
        finished += 1 if warps[k].status == FINISHED else 0
    needed = cta.expected[barrier] if cta.expected[barrier] > 0 else n_warps - finished
    if cta.arrived[barrier] == 0 or cta.arrived[barrier] < needed:
        return
    cta.arrived[barrier] = 0
    for k in range(n_warps):
        if warps[k].status == AT_CTA_BARRIER and warps[k].at_barrier == barrier:
            warps[k].status = READY


@internal
def release_after_exit(cta, warps):
    """A warp has exited: barriers of the whole CTA may be complete now."""
    for barrier in range(N_BARRIERS):
        if cta.arrived[barrier] > 0 and cta.expected[barrier] == 0:
            release_complete(cta, warps, barrier)
