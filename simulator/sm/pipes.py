"""Execution pipes and the queues in front of shared and global memory."""

from __future__ import annotations

from simulator.compiled import compiled
from simulator.isa.effects import PIPE_GLOBAL, PIPE_SHARED
from simulator.memory.calendar import reserve
from simulator.sm.inputs import CYCLE, I_CONTENTION, I_INTERVAL, I_PIPE
from simulator.sm.layout import (
    GLOBAL_QUEUE,
    P_BLOCKED,
    P_PORT,
    P_TENSOR_ALTERNATES,
    P_TENSOR_DRAINED,
    P_TENSOR_SINCE,
    RING,
    S_CONTENDED,
    S_GLOBAL_HEAD,
    S_GLOBAL_QUEUE,
    S_NOW,
    S_PIPES,
    S_SHARED_HEAD,
    S_SHARED_QUEUE,
    SAME_GROUP,
    SHARE_SHIFT,
    SHARED_QUEUE,
    SUBPARTITION_INTERVAL,
    SUBPARTITION_WAVEFRONT,
    WAVEFRONT,
)


@compiled
def execute(x, k, row, smsp, sm, at):
    """A fixed-latency instruction: its pipe is busy for the interval.

    Beside a running asynchronous MMA the register file is shared and dispatch takes longer, most when the MMAs of
    several warpgroups alternate (beside_wgmma2 in the measured microbenchmarks).
    """
    x[smsp + S_PIPES + k[row + I_PIPE]] = at + k[row + I_INTERVAL]
    contention = k[row + I_CONTENTION]
    if contention > 0 and x[sm + P_TENSOR_SINCE] <= at < x[sm + P_TENSOR_DRAINED]:
        if not x[sm + P_TENSOR_ALTERNATES]:
            contention = contention * x[SAME_GROUP] >> SHARE_SHIFT
        x[smsp + S_NOW] += contention
        x[smsp + S_CONTENDED] = x[smsp + S_NOW]


@compiled
def enter_queue(x, smsp, queue, head_field, pipe, depth, at, leaves):
    """Note when an access leaves its sub-partition's queue; the pipe is free when the queue has room."""
    head = x[smsp + head_field]
    x[smsp + queue + (head & (RING - 1))] = leaves
    x[smsp + head_field] = head + 1
    free = at + CYCLE
    if head + 1 >= depth:
        free = max(free, x[smsp + queue + ((head + 1 - depth) & (RING - 1))])
    x[smsp + S_PIPES + pipe] = free


@compiled
def access_shared(x, smsp, sm, at, wavefronts, interval):
    """Pass ``wavefronts`` through the sub-partition's interface and the SM's shared-memory port.

    Returns when the last wavefront starts.  A lone sub-partition gets a wavefront every second cycle,
    several together one a cycle (smem_throughput in the measured microbenchmarks).  Cross-lane instructions
    hold the interface for their ``interval``.
    """
    previous = x[smsp + S_SHARED_QUEUE + ((x[smsp + S_SHARED_HEAD] - 1) & (RING - 1))]
    start = max(at, previous)
    passed = reserve(x, x[sm + P_PORT], start, wavefronts * x[WAVEFRONT])
    interface = max(interval, x[SUBPARTITION_INTERVAL], wavefronts * x[SUBPARTITION_WAVEFRONT])
    leaves = max(start + interface, passed)
    enter_queue(x, smsp, S_SHARED_QUEUE, S_SHARED_HEAD, PIPE_SHARED, x[SHARED_QUEUE], at, leaves)
    return passed - x[WAVEFRONT]


@compiled
def access_global(x, smsp, sm, at, occupancy):
    """Take the L1's data path for ``occupancy`` ticks; returns when the access has passed it."""
    start = max(at + CYCLE, x[sm + P_BLOCKED])
    passed = reserve(x, x[sm + P_PORT], start, occupancy)
    enter_queue(x, smsp, S_GLOBAL_QUEUE, S_GLOBAL_HEAD, PIPE_GLOBAL, x[GLOBAL_QUEUE], at, passed - occupancy)
    return passed
