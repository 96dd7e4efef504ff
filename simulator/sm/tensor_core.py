"""Asynchronous MMA of a warpgroup: starts when all its warps have issued, one at a time per SM."""

from __future__ import annotations

from simulator.compiled import compiled
from simulator.isa.effects import COUNTED_PASS_TICKS, EVENT_MMA, GROUP_WARPS, IDLE_PASSES, PIPE_TENSOR_ASYNC, TENSOR_BUSY_TICKS
from simulator.memory.calendar import reserve_share
from simulator.memory.layout import COUNTER
from simulator.sm.event_log import note
from simulator.sm.inputs import CYCLE, I_ARGUMENT, I_INTERVAL, I_LATENCY, I_PORT
from simulator.sm.layout import (
    G_ARRIVED,
    G_COMPLETED,
    G_DONE_AT,
    G_START_AT,
    G_STARTED,
    N_WARPS,
    ON_TENSOR_GROUP,
    ON_TENSOR_QUEUE,
    P_FETCH_SHARE,
    P_N_MEMBERS,
    P_OPERANDS,
    P_TENSOR,
    P_TENSOR_ALTERNATES,
    P_TENSOR_BUSY,
    P_TENSOR_DRAINED,
    P_TENSOR_GROUP,
    P_TENSOR_SINCE,
    P_TENSOR_STRETCHED,
    RING,
    S_PIPES,
    SHARE_SHIFT,
    TENSOR_ISSUE,
    W_BLOCK,
    W_GROUP,
    W_LANE,
    W_SM,
    W_SMSP,
    W_TARGET,
    W_TENSOR_GROUPS,
    W_TENSOR_ISSUED,
    WARP_FIELDS,
)
from simulator.sm.scoreboard import renew


@compiled
def issue_mma(x, k, w, row, at):
    """One warp issues an asynchronous MMA; the last of its warpgroup starts it."""
    x[x[w + W_SMSP] + S_PIPES + PIPE_TENSOR_ASYNC] = at + x[TENSOR_ISSUE]
    g = x[w + W_GROUP]
    number = x[w + W_TENSOR_ISSUED]
    x[w + W_TENSOR_ISSUED] = number + 1
    commits = k[row + I_ARGUMENT]
    if commits:
        x[w + W_TENSOR_GROUPS] += 1
    slot = number & (RING - 1)
    x[g + G_ARRIVED + slot] += 1
    in_group = x[w + W_LANE] % GROUP_WARPS
    n_warps = min(GROUP_WARPS, x[N_WARPS] - x[w + W_LANE] + in_group)
    if x[g + G_ARRIVED + slot] < n_warps:
        return
    x[g + G_ARRIVED + slot] = 0
    start, end = start_mma(x, x[w + W_SM], g, at, k[row + I_INTERVAL], k[row + I_PORT])
    x[g + G_START_AT + slot] = start
    x[x[w + W_SM] + P_TENSOR_DRAINED] = end + k[row + I_LATENCY]
    x[g + G_STARTED] = number + 1
    if commits:
        x[g + G_DONE_AT + (x[g + G_COMPLETED] & (RING - 1))] = end + k[row + I_LATENCY]
        x[g + G_COMPLETED] += 1
    first = w - in_group * WARP_FIELDS
    for other in range(first, first + n_warps * WARP_FIELDS, WARP_FIELDS):
        what = x[other + W_BLOCK]
        if (what == ON_TENSOR_GROUP and x[other + W_TARGET] <= x[g + G_COMPLETED]) or (
            what == ON_TENSOR_QUEUE and x[other + W_TARGET] <= x[g + G_STARTED]
        ):
            renew(x, k, other)


@compiled
def start_mma(x, sm, g, at, interval, port):
    """Occupy the SM's tensor cores and its shared-memory port; returns (start, end of the interval).

    Operands come through the port that loads, stores and copies use: an MMA takes as long as the slower of the two.
    """
    start = max(x[sm + P_TENSOR], at)
    if start > x[sm + P_TENSOR]:
        x[sm + P_TENSOR_SINCE] = start
    x[sm + P_TENSOR_ALTERNATES] = x[sm + P_TENSOR_GROUP] != g
    x[sm + P_TENSOR_GROUP] = g
    end = max(start + interval, reserve_share(x, x[sm + P_OPERANDS], start, port))
    x[sm + P_TENSOR] = end
    x[sm + P_FETCH_SHARE] = (port << SHARE_SHIFT) // max(end - start, 1)
    x[sm + P_TENSOR_BUSY] += end - start
    x[sm + P_TENSOR_STRETCHED] += end - start - interval
    note(x, EVENT_MMA, sm, start, end, g)
    x[COUNTER + TENSOR_BUSY_TICKS] += (end - start) * x[sm + P_N_MEMBERS]
    return start, end


@compiled
def pass_idle(x, sm, at):
    """Count a pass of the shared-memory port by an access without lanes.

    Operand fetch takes it along: beside a running MMA the profiler counts the share that meets a free port (measured:
    dummy loads of cp.async loops count in full when no MMA is in flight, a quarter beside 64x128x16).
    """
    members = x[sm + P_N_MEMBERS]
    x[COUNTER + IDLE_PASSES] += members
    taken_along = 0
    if x[sm + P_TENSOR_SINCE] <= at < x[sm + P_TENSOR]:
        taken_along = min(x[sm + P_FETCH_SHARE], 1 << SHARE_SHIFT)
    x[COUNTER + COUNTED_PASS_TICKS] += CYCLE * members - (CYCLE * members * taken_along >> SHARE_SHIFT)
