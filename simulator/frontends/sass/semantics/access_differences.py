"""Accesses whose address, guard or data differ between CTAs, for the cases that need no look at each CTA."""

from __future__ import annotations

import numpy as np

from simulator.frontends.sass.semantics.addresses import frame_addresses, shared_addresses
from simulator.frontends.sass.semantics.codes import (
    ASYNC,
    ASYNC_COPY,
    EXECUTE,
    GENERIC_READ,
    GLOBAL_ATOMIC,
    GLOBAL_READ,
    LANES,
    LOCAL_READ,
    LOCAL_WRITE,
    MBARRIER_INIT,
    REGISTER_POOL,
    SHARED_ATOMIC,
    SHARED_READ,
    SHARED_WRITE,
)
from simulator.frontends.sass.semantics.compiled import internal
from simulator.frontends.sass.semantics.linear import (
    KEEPS_ALIGNMENT,
    MASK_SHIFT,
    MERGE,
    SAME_IN_LANES,
    UNSETTLED,
    combine,
    stays_in_word,
)
from simulator.frontends.sass.semantics.local_memory import is_whole, local_row
from simulator.frontends.sass.semantics.propagation import assign, is_whole_warp
from simulator.frontends.sass.semantics.records import WORD_BYTES


def access_difference(cta, warp, memory, row, differences, active):
    """Handle by which the address of a MEMORY or ASYNC row differs between CTAs; UNSETTLED when that, the guard, or
    the data that it moves takes a closer look. A unit."""
    d, dp = warp.difference, warp.predicate_difference
    if dp[row.guard] | dp[row.p]:
        return np.int64(UNSETTLED)
    if active == 0:
        return np.int64(0)
    if row.family == ASYNC:
        return np.int64(async_difference(d, row))
    if SHARED_READ <= row.verb <= LOCAL_WRITE:
        if d[row.a] | d[row.b]:
            return np.int64(UNSETTLED)
        settled = row.action != EXECUTE or move_data(cta, warp, memory, row, differences, active)
        return np.int64(0 if settled else UNSETTLED)
    handle = global_difference(warp, row, differences, active)
    if row.verb == ASYNC_COPY:
        return np.int64(UNSETTLED) if d[row.c] | d[row.c_hi] else np.int64(handle)
    if row.verb in (GLOBAL_READ, GENERIC_READ, GLOBAL_ATOMIC) and handle >= 0:
        if handle and row.action == EXECUTE and len(memory.start):
            return np.int64(UNSETTLED)
        if is_whole_warp(warp, row, active):
            for k in range(row.n_dest):
                d[row.dest + k] = 0
    return np.int64(handle)


@internal
def async_difference(d, row):
    """0 when at most the coordinates of a bulk copy differ (they keep their handles), else UNSETTLED."""
    if row.verb >= MBARRIER_INIT:
        found = d[row.a] | d[row.b] | d[row.c] | d[row.c_hi]
        return UNSETTLED if found and row.verb < REGISTER_POOL else 0
    found = d[row.a] | d[row.b] | d[row.b_hi] | d[row.c]
    if row.x3:
        found |= d[row.a + 1]
    return UNSETTLED if found else 0


@internal
def global_difference(warp, row, differences, active):
    """Handle by which a global address differs, UNSETTLED when it takes a closer look."""
    d = warp.difference
    if d[row.a_hi] | d[row.b_hi] or (d[row.a] and d[row.b]):
        return UNSETTLED
    handle = d[row.a] | d[row.b]
    if handle == 0:
        return 0
    wanted = SAME_IN_LANES | KEEPS_ALIGNMENT
    if differences.record[handle].flags & wanted != wanted:
        return UNSETTLED
    source = row.a if d[row.a] else row.b
    low, high = differences.record[handle].lowest, differences.record[handle].highest
    return handle if stays_in_word(warp.values, source, active, low, high, 0) else UNSETTLED


@internal
def move_data(cta, warp, memory, row, differences, active):
    """Differences of the data that a local or shared access with the same address in all CTAs moves (before it
    executes). False when they take a closer look."""
    if row.verb in (LOCAL_READ, LOCAL_WRITE):
        frame_addresses(cta, warp, row)
        return move_local(cta, warp, memory, row, differences, active)
    shared_addresses(cta, warp, row)
    if row.verb == SHARED_WRITE:
        return write_shared(cta, warp, row, differences, active)
    return read_shared(cta, warp, row, differences, active)


@internal
def move_local(cta, warp, memory, row, differences, active):
    """Frame words keep the difference of the register that was stored in them."""
    d, words, writes = warp.difference, memory.local_difference[warp.number], row.verb == LOCAL_WRITE
    word = local_row(cta, active)
    if word < 0 or not is_whole(cta, active, row.x1):
        return all_zero(words) and (d[row.c] == 0 if writes else assign(cta, warp, row, differences, active, 0, 0))
    count = row.x3 if writes else row.n_dest
    if word + count > len(words):
        return True  # an error that the access itself reports
    whole, merge = is_whole_warp(warp, row, active), MERGE | ((active | warp.exited) << MASK_SHIFT)
    for k in range(count):
        register = row.dest + k if not writes else row.c if row.c_hi else row.c + k
        new, old = (d[register], words[word + k]) if writes else (words[word + k], d[register])
        merged = new if whole else combine(cta, differences, merge, old, new)
        if merged < 0:
            return False
        if writes:
            words[word + k] = merged
        else:
            d[register] = merged
    return True


@internal
def all_zero(words):
    """Has no word of the frame a difference?"""
    found = np.int64(0)
    for k in range(len(words)):
        found |= words[k]
    return found == 0


@internal
def write_shared(cta, warp, row, differences, active):
    """Shared words take the difference of the stored register when it is the same in all lanes."""
    for k in range(row.x3):
        handle = warp.difference[row.c if row.c_hi else row.c + k]
        if handle and (not differences.record[handle].flags & SAME_IN_LANES or row.x1 < WORD_BYTES):
            return False
        for lane in range(LANES):
            if (active >> lane) & 1:
                cta.shared_difference[cta.address[lane] // WORD_BYTES + k] = handle
    return True


@internal
def read_shared(cta, warp, row, differences, active):
    """A shared read passes a difference on when all its words have the same one; an atomic must see none."""
    first = np.int64(-1)
    for k in range(max(row.n_dest, 1)):
        for lane in range(LANES):
            if (active >> lane) & 1:
                handle = cta.shared_difference[cta.address[lane] // WORD_BYTES + k]
                if first >= 0 and handle != first:
                    return False
                first = handle
    if first > 0 and (row.verb != SHARED_READ or row.n_dest > 1 or not differences.record[first].flags & SAME_IN_LANES):
        return False
    if row.verb == SHARED_ATOMIC and warp.difference[row.c]:
        return False
    return assign(cta, warp, row, differences, active, max(first, 0), 0)
