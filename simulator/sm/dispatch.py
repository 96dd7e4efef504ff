"""CTAs onto SMs: placement in grid order, launch interval, reuse of a slot after its CTA has left."""

from __future__ import annotations

from simulator.compiled import compiled
from simulator.isa.effects import EVENT_CTA, GROUP_WARPS
from simulator.sm.barrier import arrive_barrier
from simulator.sm.event_log import note
from simulator.sm.inputs import CYCLE, K_CTA_BASE, K_CTA_CLASS, K_N_CTAS, K_STREAM_START
from simulator.sm.layout import (
    C_BARRIERS,
    C_BASES,
    C_CLUSTER_ARRIVED,
    C_CLUSTER_AT,
    C_CLUSTER_PHASE,
    C_FIRST_WARP,
    C_INDEX,
    C_LAG,
    C_LAG_AT,
    C_LIVE,
    C_MEMBERS,
    C_SM,
    CTA_INTERVAL,
    CTA_RUN,
    CTA_SIZE,
    CTA_TURNAROUND,
    CTAS,
    CTAS_FINISHED,
    FINISHED,
    G_STARTED,
    GROUP_SIZE,
    LAG,
    LAG_RESTART,
    LAUNCH_LATENCY,
    MBARRIER_SIZE,
    N_BARRIERS,
    N_BASES,
    N_CHIP_SMS,
    N_LARGE,
    N_MBARRIERS,
    N_MEMBERS,
    N_RUNS,
    N_SCOREBOARDS,
    N_SLOTS,
    N_SMS,
    N_WARPS,
    NEVER,
    NEXT_CTA,
    P_LAUNCH,
    P_N_MEMBERS,
    PLACES_TAKEN,
    PLACES_TAKEN_LARGE,
    RUN_STEP,
    S_DIRTY,
    SHARE_SHIFT,
    SPANS,
    W_BLOCK,
    W_CLUSTER_ARRIVALS,
    W_COPY_GROUPS,
    W_COPY_LAST,
    W_COPY_WHY,
    W_CTA,
    W_END,
    W_GROUP,
    W_HELD,
    W_ISSUED,
    W_LANE,
    W_NEXT,
    W_PENDING,
    W_READY,
    W_SCOREBOARD,
    W_SMSP,
    W_STALLED,
    W_STORE_LAST,
    W_TENSOR_GROUPS,
    W_TENSOR_ISSUED,
    WARP_FIELDS,
)
from simulator.sm.scoreboard import renew
from simulator.sm.stalls import book_drain


@compiled
def place_next(x, k, c):
    """Give each member of a CTA slot's SM its CTA of the next round; whether member 0 got one.

    A round hands one CTA to each chip SM.  Simulated SMs with equally many members take the places of a round as they
    come; the last, partial round fills them in order.
    """
    n_members = x[x[c + C_SM] + P_N_MEMBERS]
    is_large = n_members == x[N_MEMBERS]
    first_place = 0 if is_large else x[N_LARGE] * x[N_MEMBERS]
    n_places = x[N_LARGE] if is_large else x[N_SMS] - x[N_LARGE]
    counter = PLACES_TAKEN_LARGE if is_large else PLACES_TAKEN
    taken = x[counter]
    x[counter] = taken + 1
    first_cta = taken // n_places * x[N_CHIP_SMS]
    place = first_place + taken % n_places * n_members
    is_whole = first_cta + x[N_CHIP_SMS] <= k[K_N_CTAS]
    for m in range(x[N_MEMBERS]):
        cta = first_cta + (in_runs(x, place + m) if is_whole else place + m)
        exists = m < n_members and cta < k[K_N_CTAS]
        x[c + C_MEMBERS + m] = cta if exists else -1
        x[NEXT_CTA] += exists
    return x[c + C_MEMBERS] >= 0


@compiled
def in_runs(x, place):
    """CTA of a round that goes to its ``place``-th SM: runs of CTA_RUN stay together, neighbouring runs do not."""
    run = place // CTA_RUN
    return run * x[RUN_STEP] % x[N_RUNS] * CTA_RUN + place % CTA_RUN if run < x[N_RUNS] else place


@compiled
def start_cta(x, k, c, at):
    """Start the CTA of member 0 in slot ``c``: fresh barriers, its warps' streams, one launch interval."""
    sm = x[c + C_SM]
    index = x[c + C_MEMBERS]
    start = max(at, x[sm + P_LAUNCH])
    x[sm + P_LAUNCH] = start + x[CTA_INTERVAL]
    x[x[SPANS] + 2 * index] = start
    x[c + C_INDEX] = index
    x[c + C_LIVE] = x[N_WARPS]
    x[c + C_LAG] = max(x[LAG], x[c + C_LAG] * x[LAG_RESTART] >> SHARE_SHIFT)
    x[c + C_LAG_AT] = start
    for field in (C_CLUSTER_ARRIVED, C_CLUSTER_PHASE, C_CLUSTER_AT):
        x[c + field] = 0
    x[c + C_BARRIERS : c + C_BARRIERS + N_BARRIERS] = 0
    mbarriers = c + C_MEMBERS + x[N_MEMBERS]
    x[mbarriers : mbarriers + x[N_MBARRIERS] * MBARRIER_SIZE] = 0
    note_bases(x, k, c)
    first = x[c + C_FIRST_WARP]
    for lane in range(x[N_WARPS]):
        w = first + lane * WARP_FIELDS
        if lane % GROUP_WARPS == 0:
            g = x[w + W_GROUP]
            x[g + G_STARTED : g + GROUP_SIZE] = 0
        start_warp(x, k, w, k[K_CTA_CLASS], index, start)


@compiled
def note_bases(x, k, c):
    """Copy the members' address differences into the slot's table, [column, member]."""
    at = x[c + C_BASES]
    for column in range(x[N_BASES]):
        for m in range(x[N_MEMBERS]):
            cta = max(0, x[c + C_MEMBERS + m])
            x[at + m] = k[k[K_CTA_BASE] + cta * x[N_BASES] + column]
        at += x[N_MEMBERS]


@compiled
def start_warp(x, k, w, classes, index, start):
    """Point a warp at its stream."""
    stream = k[K_STREAM_START] + k[classes + index] * x[N_WARPS] + x[w + W_LANE]
    x[w + W_NEXT] = k[stream]
    x[w + W_END] = k[stream + 1]
    x[w + W_ISSUED] = start - CYCLE
    x[w + W_STALLED] = start
    for field in (W_TENSOR_ISSUED, W_TENSOR_GROUPS, W_COPY_LAST, W_COPY_GROUPS, W_STORE_LAST, W_HELD, W_COPY_WHY):
        x[w + field] = 0
    x[w + W_CLUSTER_ARRIVALS] = 0
    x[w + W_PENDING] = -1
    x[w + W_SCOREBOARD : w + W_SCOREBOARD + N_SCOREBOARDS] = 0
    if x[w + W_NEXT] == x[w + W_END]:
        x[w + W_BLOCK] = FINISHED
        x[w + W_READY] = NEVER
        x[x[w + W_CTA] + C_LIVE] -= 1
        x[x[w + W_SMSP] + S_DIRTY] = 1
    else:
        renew(x, k, w)


@compiled
def finish_warp(x, k, w, at):
    """A warp has executed its last instruction; the last one of a CTA hands the slot to the next CTAs."""
    c = x[w + W_CTA]
    x[w + W_BLOCK] = FINISHED
    x[w + W_READY] = NEVER
    book_drain(x, w)
    x[c + C_LIVE] -= 1
    live = x[c + C_LIVE]
    if live > 0:
        if x[c + C_BARRIERS] >= live:
            x[c + C_BARRIERS] -= 1
            arrive_barrier(x, k, c, 0, live, at)
        return
    x[x[SPANS] + 2 * x[c + C_INDEX] + 1] = at
    note(x, EVENT_CTA, c, x[x[SPANS] + 2 * x[c + C_INDEX]], at, x[c + C_INDEX])
    x[CTAS_FINISHED] += 1
    if place_next(x, k, c):
        start_cta(x, k, c, at + x[CTA_TURNAROUND])


@compiled
def launch(x, k, first_wave):
    """Fill the SMs in rounds, one CTA per SM and round. ``first_wave`` int64 [n_sms * n_slots, members], -1 none."""
    x[PLACES_TAKEN] = x[N_SLOTS] * (x[N_SMS] - x[N_LARGE])
    x[PLACES_TAKEN_LARGE] = x[N_SLOTS] * x[N_LARGE]
    for s in range(x[N_SMS]):
        x[x[x[CTAS] + s * x[N_SLOTS] * x[CTA_SIZE] + C_SM] + P_LAUNCH] = x[LAUNCH_LATENCY]
    for slot in range(x[N_SLOTS]):
        for s in range(x[N_SMS]):
            number = s * x[N_SLOTS] + slot
            c = x[CTAS] + number * x[CTA_SIZE]
            for m in range(x[N_MEMBERS]):
                x[c + C_MEMBERS + m] = first_wave[number, m]
                if first_wave[number, m] >= 0:
                    x[NEXT_CTA] += 1
            if x[c + C_MEMBERS] >= 0:
                start_cta(x, k, c, x[LAUNCH_LATENCY])
