"""Named barriers, mbarriers and cluster barriers. ``c``: a CTA slot's record, ``m``: an mbarrier's."""

from __future__ import annotations

from simulator.compiled import compiled
from simulator.isa.effects import (
    EVENT_PHASE,
    MBARRIER_ARRIVE,
    MBARRIER_EXPECT,
    MBARRIER_INIT,
    MBARRIER_WAIT,
    STALL_BARRIER,
    STALL_MBARRIER,
    WARP_LANES,
)
from simulator.sm.event_log import note
from simulator.sm.inputs import E_COUNT, E_MBARRIER, E_PARITY
from simulator.sm.layout import (
    BARRIER_BASE,
    BARRIER_WARP,
    C_BARRIERS,
    C_CLUSTER_ARRIVED,
    C_CLUSTER_AT,
    C_CLUSTER_PHASE,
    C_FIRST_WARP,
    C_LIVE,
    C_MEMBERS,
    C_SM,
    CLUSTER_BARRIER_TIME,
    M_AT,
    M_BYTES,
    M_COUNT,
    M_DONE_AT,
    M_DONE_WHY,
    M_PENDING,
    M_PHASE,
    M_WHY,
    MBARRIER_RELEASE,
    MBARRIER_SIZE,
    N_MEMBERS,
    N_WARPS,
    NEVER,
    ON_BARRIER,
    ON_CLUSTER,
    ON_MBARRIER,
    P_BARRIER,
    W_BLOCK,
    W_CLUSTER_ARRIVALS,
    W_CTA,
    W_PENDING,
    W_PENDING_MBARRIER,
    W_PENDING_PARITY,
    W_SCOREBOARD,
    W_SCOREBOARD_REASON,
    W_TARGET,
    WARP_FIELDS,
    WHY,
)
from simulator.sm.scoreboard import block, hold, renew


@compiled
def release_blocked(x, k, c, what, target, at):
    """Let the warps of a CTA that wait for (what, target) go on at ``at``."""
    first = x[c + C_FIRST_WARP]
    for w in range(first, first + x[N_WARPS] * WARP_FIELDS, WARP_FIELDS):
        if x[w + W_BLOCK] == what and x[w + W_TARGET] == target:
            hold(x, w, at, STALL_BARRIER)
            renew(x, k, w)


@compiled
def arrive_barrier(x, k, c, number, n_needed, at):
    """A warp arrives at a named barrier; the last arrival releases all. Returns the release time, or NEVER.

    The barrier unit takes BARRIER_WARP per arrival (measured: BAR.SYNC of W warps costs 13.6 + 2 W cycles).
    """
    sm = x[c + C_SM]
    x[sm + P_BARRIER] = max(x[sm + P_BARRIER], at) + x[BARRIER_WARP]
    x[c + C_BARRIERS + number] += 1
    if x[c + C_BARRIERS + number] < n_needed:
        return NEVER
    x[c + C_BARRIERS + number] = 0
    release = x[sm + P_BARRIER] + x[BARRIER_BASE]
    release_blocked(x, k, c, ON_BARRIER, number, release)
    return release


@compiled
def meet_barrier(x, k, w, event, waits, at):
    """BAR: arrive, and wait unless it is BAR.ARV. Call after the warp was prepared for its next instruction."""
    c = x[w + W_CTA]
    n_threads = k[event + E_COUNT]
    n_needed = (n_threads + WARP_LANES - 1) // WARP_LANES if n_threads > 0 else x[c + C_LIVE]
    number = k[event + E_PARITY]
    release = arrive_barrier(x, k, c, number, n_needed, at)
    if not waits:
        return
    if release == NEVER:
        block(x, w, ON_BARRIER, number, STALL_BARRIER)
    else:
        hold(x, w, release, STALL_BARRIER)
        renew(x, k, w)


@compiled
def meet_cluster(x, k, w, arrives, at):
    """Cluster barrier, seen from one CTA whose peers keep its pace: opens a fixed time after its last warp arrived."""
    c = x[w + W_CTA]
    if arrives:
        x[w + W_CLUSTER_ARRIVALS] += 1
        x[c + C_CLUSTER_ARRIVED] += 1
        if x[c + C_CLUSTER_ARRIVED] >= x[c + C_LIVE]:
            x[c + C_CLUSTER_ARRIVED] = 0
            x[c + C_CLUSTER_PHASE] += 1
            x[c + C_CLUSTER_AT] = at + x[CLUSTER_BARRIER_TIME]
            release_blocked(x, k, c, ON_CLUSTER, 0, x[c + C_CLUSTER_AT])
    elif x[w + W_CLUSTER_ARRIVALS] > x[c + C_CLUSTER_PHASE]:
        block(x, w, ON_CLUSTER, 0, STALL_BARRIER)
    else:
        hold(x, w, x[c + C_CLUSTER_AT], STALL_BARRIER)
        renew(x, k, w)


@compiled
def mbarrier_of(x, k, c, event):
    """Record of the mbarrier that an event names."""
    return c + C_MEMBERS + x[N_MEMBERS] + k[event + E_MBARRIER] * MBARRIER_SIZE


@compiled
def act_on_mbarrier(x, k, w, event, kind, board, done):
    """SYNCS: initialise, arrive, arrive and expect bytes, or try_wait (result in scoreboard ``board``).

    ``done``: when the operation has reached the barrier. Returns the stamp for its scoreboard.
    """
    m = mbarrier_of(x, k, x[w + W_CTA], event)
    count = k[event + E_COUNT]
    if kind == MBARRIER_INIT:
        x[m + M_PENDING] = count
        x[m + M_COUNT] = count
        for field in (M_PHASE, M_BYTES, M_AT, M_DONE_AT, M_WHY, M_DONE_WHY):
            x[m + field] = 0
    elif kind == MBARRIER_ARRIVE:
        arrive(x, k, x[w + W_CTA], m, count, 0, done)
    elif kind == MBARRIER_EXPECT:
        arrive(x, k, x[w + W_CTA], m, 1, count, done)
    elif kind == MBARRIER_WAIT:
        parity = k[event + E_PARITY]
        if (x[m + M_PHASE] & 1) != parity:
            x[WHY] = x[m + M_DONE_WHY]
            return max(done, x[m + M_DONE_AT])
        x[w + W_PENDING] = board
        x[w + W_PENDING_MBARRIER] = m
        x[w + W_PENDING_PARITY] = parity
        return NEVER
    return done


@compiled
def arrive(x, k, c, m, n_arrivals, n_expected, at):
    """Arrivals and expected bytes reach mbarrier ``m`` at ``at``; delivered bytes are negative expectations.

    Closes the phase when nothing is pending, and resolves the try_waits of the CTA's warps.  The last to arrive tells them
    why they waited (its why word is in ``x[WHY]``).
    """
    x[m + M_PENDING] -= n_arrivals
    x[m + M_BYTES] += n_expected
    if at > x[m + M_AT]:
        x[m + M_AT] = at
        x[m + M_WHY] = x[WHY]
    if x[m + M_PENDING] > 0 or x[m + M_BYTES] != 0:
        return
    x[m + M_DONE_AT] = x[m + M_AT] + x[MBARRIER_RELEASE]
    x[m + M_DONE_WHY] = x[m + M_WHY]
    note(x, EVENT_PHASE, m, x[m + M_DONE_AT], x[m + M_DONE_AT], x[m + M_PHASE])
    x[m + M_PHASE] += 1
    x[m + M_PENDING] = x[m + M_COUNT]
    x[m + M_AT] = 0
    why = STALL_MBARRIER | x[m + M_DONE_WHY]
    first = x[c + C_FIRST_WARP]
    for w in range(first, first + x[N_WARPS] * WARP_FIELDS, WARP_FIELDS):
        board = x[w + W_PENDING]
        if board < 0 or x[w + W_PENDING_MBARRIER] != m or (x[m + M_PHASE] & 1) == x[w + W_PENDING_PARITY]:
            continue
        x[w + W_PENDING] = -1
        x[w + W_SCOREBOARD + board] = x[m + M_DONE_AT]
        x[w + W_SCOREBOARD_REASON + board] = why
        if x[w + W_BLOCK] == ON_MBARRIER:
            hold(x, w, x[m + M_DONE_AT], why)
            renew(x, k, w)
