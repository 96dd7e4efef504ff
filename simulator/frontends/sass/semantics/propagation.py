"""How differences between CTAs pass through a row, for the cases that need no look at each CTA.

CTAs that run the same instructions are executed together: one leader in full, and for every value row a *difference
handle* (0: the same word in all CTAs). A row whose result differs exactly as one of its sources does (sums, moves) only
passes the handle on. Carries and comparisons are the same in all CTAs when they are at both ends of the difference.
What is not settled here stops the interpreter with reason DIFFERS.
"""

from __future__ import annotations

import numpy as np

from simulator.frontends.sass.semantics.addresses import frame_addresses, shared_addresses
from simulator.frontends.sass.semantics.codes import (
    ASYNC,
    ASYNC_COPY,
    COMPARE,
    EXECUTE,
    FULL,
    GENERIC_READ,
    GLOBAL_ATOMIC,
    GLOBAL_READ,
    INTEGER,
    LANES,
    LOCAL_READ,
    LOCAL_WRITE,
    MBARRIER_INIT,
    MOVE_PAIR,
    REGISTER_POOL,
    SHARED_ATOMIC,
    SHARED_READ,
    SHARED_WRITE,
    WORD,
)
from simulator.frontends.sass.semantics.compiled import internal
from simulator.frontends.sass.semantics.integer import order_masks
from simulator.frontends.sass.semantics.linear import (
    KEEPS_ALIGNMENT,
    SAME_IN_LANES,
    SIGN_BIT,
    UNSETTLED,
    linear_difference,
    stays_in_word,
)
from simulator.frontends.sass.semantics.local_memory import is_whole, local_row
from simulator.frontends.sass.semantics.records import WORD_BYTES


@internal
def row_differs(warp, row):
    """Does any source, predicate or overwritten result of an arithmetic row differ between CTAs?"""
    d, dp = warp.difference, warp.predicate_difference
    found = d[row.a] | d[row.a_hi] | d[row.b] | d[row.b_hi] | d[row.c] | d[row.c_hi]
    found |= dp[row.guard] | dp[row.p] | dp[row.q] | dp[row.s]
    for k in range(row.n_dest):
        found |= d[row.dest + k]
    if row.dest_p >= 0:
        found |= dp[row.dest_p]
    if row.dest_q >= 0:
        found |= dp[row.dest_q]
    return found != 0


@internal
def propagate(cta, warp, row, differences, active, out):
    """Differences of an arithmetic row's results, whose words are in the scratch rows from ``out`` on and not yet
    committed. False when they take a closer look (or a combination of differences that was not formed yet)."""
    d, dp = warp.difference, warp.predicate_difference
    if dp[row.guard] | dp[row.p] | dp[row.q] | dp[row.s]:
        return False
    a, b, c = d[row.a], d[row.b], d[row.c]
    high = d[row.a_hi] | d[row.b_hi] | d[row.c_hi]
    if a | b | c | high == 0:
        return assign(warp, row, active, 0, 0)
    if row.family == INTEGER and row.verb == MOVE_PAIR:
        return assign(warp, row, active, a, d[row.a_hi])
    if high:
        return False
    if row.family == INTEGER and row.verb == COMPARE:
        if a and b:
            return False
        record = differences.record[a | b]
        modifier = row.a_mod if a else row.b_mod
        alike = modifier == 0 and compares_alike(warp.values, row, active, a != 0, record.lowest, record.highest, out)
        return alike and assign(warp, row, active, 0, 0)
    handle = linear_difference(cta, warp, row, differences, active, out)
    return handle >= 0 and assign(warp, row, active, handle, 0)


@internal
def assign(warp, row, active, handle, second):
    """Record the results' differences; False when lanes of one register would differ in two ways."""
    whole = is_whole_warp(warp, row, active)
    d, dp = warp.difference, warp.predicate_difference
    for k in range(row.n_dest):
        if not whole and d[row.dest + k] != (handle if k == 0 else second):
            return False
    for k in range(2):
        target = row.dest_p if k == 0 else row.dest_q
        if target >= 0 and not whole and dp[target] != 0:
            return False
    for k in range(row.n_dest):
        d[row.dest + k] = handle if k == 0 else second
    if row.dest_p >= 0:
        dp[row.dest_p] = 0
    if row.dest_q >= 0:
        dp[row.dest_q] = 0
    return True


@internal
def is_whole_warp(warp, row, active):
    """Does the row write all lanes that are still alive?"""
    live = FULL & ~warp.exited
    return row.is_uniform != 0 or active & live == live


@internal
def compares_alike(values, row, active, is_first, low, high, out):
    """The comparison has the leader's outcome at both ends of the difference, and hence in every CTA. Writes the
    source shifted to either end into scratch rows."""
    source = row.a if is_first else row.b
    flip = np.int64(0) if row.x1 else np.int64(SIGN_BIT)
    for lane in range(LANES):
        word = np.int64(values[source, lane])
        biased = word ^ flip
        if (active >> lane) & 1 and (biased + low < 0 or biased + high > WORD):
            return False
        values[out + 5, lane] = (word + low) & WORD
        values[out + 6, lane] = (word + high) & WORD
    if is_first:
        less_low, equal_low = order_masks(values, out + 5, row.b, 0, row.b_mod, row.x1)
        less_high, equal_high = order_masks(values, out + 6, row.b, 0, row.b_mod, row.x1)
    else:
        less_low, equal_low = order_masks(values, row.a, out + 5, row.a_mod, 0, row.x1)
        less_high, equal_high = order_masks(values, row.a, out + 6, row.a_mod, 0, row.x1)
    return ((less_low ^ less_high) | (equal_low ^ equal_high)) & active == 0


@internal
def access_difference(cta, warp, memory, row, differences, active):
    """Handle by which the address of a MEMORY or ASYNC row differs between CTAs; UNSETTLED when that, the guard, or
    the data that it moves takes a closer look."""
    d, dp = warp.difference, warp.predicate_difference
    if dp[row.guard] | dp[row.p]:
        return UNSETTLED
    if active == 0:
        return 0
    if row.family == ASYNC:
        return async_difference(d, row)
    if SHARED_READ <= row.verb <= LOCAL_WRITE:
        if d[row.a] | d[row.b]:
            return UNSETTLED
        return 0 if row.action != EXECUTE or move_data(cta, warp, memory, row, differences, active) else UNSETTLED
    handle = global_difference(warp, row, differences, active)
    if row.verb == ASYNC_COPY:
        return UNSETTLED if d[row.c] | d[row.c_hi] else handle
    if row.verb in (GLOBAL_READ, GENERIC_READ, GLOBAL_ATOMIC) and handle >= 0:
        if handle and row.action == EXECUTE and len(memory.start):
            return UNSETTLED
        if is_whole_warp(warp, row, active):
            for k in range(row.n_dest):
                d[row.dest + k] = 0
    return handle


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
        return move_local(cta, warp, memory, row, active)
    shared_addresses(cta, warp, row)
    if row.verb == SHARED_WRITE:
        return write_shared(cta, warp, row, differences, active)
    return read_shared(cta, warp, row, differences, active)


@internal
def move_local(cta, warp, memory, row, active):
    """Frame words keep the difference of the register that was stored in them."""
    d, words, writes = warp.difference, memory.local_difference[warp.number], row.verb == LOCAL_WRITE
    word = local_row(cta, active)
    if word < 0 or not is_whole(cta, active, row.x1):
        return np.all(words == 0) and (d[row.c] == 0 if writes else assign(warp, row, active, 0, 0))
    count = row.x3 if writes else row.n_dest
    if word + count > len(words):
        return True  # an error that the access itself reports
    whole = is_whole_warp(warp, row, active)
    for k in range(count):
        register = d[row.c if row.c_hi else row.c + k] if writes else d[row.dest + k]
        if not whole and register != words[word + k]:
            return False
    for k in range(count):
        if writes:
            words[word + k] = d[row.c if row.c_hi else row.c + k]
        else:
            d[row.dest + k] = words[word + k]
    return True


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
    return assign(warp, row, active, max(first, 0), 0)
