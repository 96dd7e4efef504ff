"""Bulk copies, mbarriers and asynchronous matrix instructions: their operands as events.

An mbarrier's try_wait succeeds at once: what a warp waits for is a matter of timing. Operand runs (coordinates,
descriptors) lie in consecutive uniform registers, hence in consecutive value rows.
"""

from __future__ import annotations

import numpy as np

from simulator.frontends.sass.execution_log import new_event
from simulator.frontends.sass.semantics.addresses import SHARED_OFFSET, target_ranks, window_addresses
from simulator.frontends.sass.semantics.codes import (
    BULK_COPY,
    FULL,
    MATRIX_MULTIPLY_ASYNC,
    MBARRIER_EXPECT,
    MBARRIER_INIT,
    MBARRIER_TRY_WAIT,
    REGISTER_POOL,
    TENSOR_LOAD,
    TENSOR_PREFETCH,
    TENSOR_STORE,
)
from simulator.frontends.sass.semantics.compiled import internal
from simulator.frontends.sass.semantics.sources import first_lane, signed
from simulator.frontends.sass.warp_state import COMPLETE, UNKNOWN_ADDRESS, UNKNOWN_OPERAND

# An mbarrier's init word holds (2^20 - arrivals) << 1.
ARRIVAL_LIMIT = 0x100000
BULK_UNIT_BYTES = 16
MULTICAST_MASK = 0xFFFF


def asynchronous(cta, warp, log, row, active, handle):
    """Execute an ASYNC row for the active lanes (not empty); ``handle``: difference of a global address. Returns
    (reason, event number, -1 if none)."""
    set_results(warp, row)
    if row.verb in (TENSOR_LOAD, TENSOR_STORE, TENSOR_PREFETCH):
        return tensor_copy(cta, warp, log, row)
    if row.verb == BULK_COPY:
        return bulk_copy(cta, warp, log, row, handle)
    if row.verb == MATRIX_MULTIPLY_ASYNC:
        return (UNKNOWN_OPERAND if run_unknown(warp, row.a, row.x0) else COMPLETE), -1
    if row.verb == REGISTER_POOL:
        return COMPLETE, -1
    return mbarrier(cta, warp, log, row, active)


@internal
def set_results(warp, row):
    """A try_wait succeeds and a register-pool request is granted; register results are unknown."""
    if row.dest_p >= 0:
        warp.predicate[row.dest_p] = FULL
        warp.predicate_unknown[row.dest_p] = 0
        warp.predicate_difference[row.dest_p] = 0
    for k in range(row.n_dest):
        warp.unknown[row.dest + k] = FULL


@internal
def run_unknown(warp, first, length):
    """Is any lane of a run of value rows unknown?"""
    marks = np.int64(0)
    for k in range(length):
        marks |= warp.unknown[first + k]
    return marks != 0


@internal
def word_pair(warp, low, high):
    """64-bit word of two uniform rows."""
    return (np.int64(warp.values[high, 0]) << 32) | np.int64(warp.values[low, 0])


@internal
def tensor_copy(cta, warp, log, row):
    """UTMALDG, UTMASTG, UTMAPF: rows from a on = shared address, mbarrier (loads), x0 coordinates; b, b_hi = descriptor
    address; c = multicast mask (x1)."""
    values, unknown, rank = warp.values, warp.unknown, row.x0
    first = row.a + (0 if row.verb == TENSOR_PREFETCH else 1 if row.verb == TENSOR_STORE else 2)
    if run_unknown(warp, row.a, first - row.a + rank) or unknown[row.b] or unknown[row.b_hi] or unknown[row.c]:
        return UNKNOWN_OPERAND, -1
    number = new_event(cta, log)
    event = log.events[number]
    event.descriptor = word_pair(warp, row.b, row.b_hi)
    for k in range(rank):
        event.coordinate[k] = signed(values[first + k, 0])
        event.coordinate_difference[k] = warp.difference[first + k]
    if row.verb != TENSOR_PREFETCH:
        event.shared_address = np.int64(values[row.a, 0]) & SHARED_OFFSET
    if row.verb == TENSOR_LOAD:
        event.mbarrier = np.int64(values[row.a + 1, 0]) & SHARED_OFFSET
    if row.x1:
        event.cta_mask = np.int64(values[row.c, 0]) & MULTICAST_MASK
    return COMPLETE, number


@internal
def bulk_copy(cta, warp, log, row, handle):
    """UBLKCP: rows from a on = shared address (and mbarrier), b, b_hi = global address, c = units of 16 bytes; x2: from
    shared to global."""
    values, unknown = warp.values, warp.unknown
    if run_unknown(warp, row.a, 2 - row.x2) or unknown[row.b] or unknown[row.b_hi] or unknown[row.c]:
        return UNKNOWN_OPERAND, -1
    number = new_event(cta, log)
    event = log.events[number]
    event.address = word_pair(warp, row.b, row.b_hi)
    event.difference = handle
    event.shared_address = np.int64(values[row.a, 0]) & SHARED_OFFSET
    event.count = np.int64(values[row.c, 0]) * BULK_UNIT_BYTES
    if not row.x2:
        event.mbarrier = np.int64(values[row.a + 1, 0]) & SHARED_OFFSET
    return COMPLETE, number


@internal
def mbarrier(cta, warp, log, row, active):
    """SYNCS on the mbarrier at a + b + x0; operand row c. The first active lane speaks for address and operand; the
    ranks of all lanes count."""
    if (warp.unknown[row.a] | warp.unknown[row.b]) & active:
        return UNKNOWN_ADDRESS, -1
    if (warp.unknown[row.c] | warp.unknown[row.c_hi]) & active:
        return UNKNOWN_OPERAND, -1
    lane = first_lane(active)
    window_addresses(cta, warp, row)
    number = new_event(cta, log)
    event = log.events[number]
    event.cta_mask = target_ranks(cta, active)
    event.mbarrier = event.shared_address = cta.address[lane]
    operand = np.int64(warp.values[row.c, lane])
    if row.verb == MBARRIER_INIT:
        event.count = ARRIVAL_LIMIT - (operand >> 1)
    elif row.verb == MBARRIER_EXPECT:
        event.count = operand
    elif row.verb == MBARRIER_TRY_WAIT:
        event.parity = operand >> 31
    return COMPLETE, number
