"""How differences between CTAs pass through a row, for the cases that need no look at each CTA.

CTAs that run the same instructions are executed together: one leader in full, and for every value row a *difference
handle* (0: the same word in all CTAs). A row whose result differs exactly as one of its sources does (sums, moves) only
passes the handle on. Carries and comparisons are the same in all CTAs when they are at both ends of the difference.
What is not settled here stops the interpreter with reason DIFFERS.
"""

from __future__ import annotations

import numpy as np

from simulator.frontends.sass.semantics.codes import (
    COMPARE,
    FULL,
    INTEGER,
    LANES,
    MOVE_PAIR,
    WORD,
)
from simulator.frontends.sass.semantics.compiled import internal
from simulator.frontends.sass.semantics.integer import order_masks
from simulator.frontends.sass.semantics.linear import (
    MASK_SHIFT,
    MERGE,
    SIGN_BIT,
    combine,
    linear_difference,
)
from simulator.frontends.sass.semantics.recollection import recall


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
        return assign(cta, warp, row, differences, active, 0, 0)
    if row.family == INTEGER and row.verb == MOVE_PAIR:
        return assign(cta, warp, row, differences, active, a, d[row.a_hi])
    if high:
        return False
    if row.family == INTEGER and row.verb == COMPARE:
        if a and b:
            return False
        record = differences.record[a | b]
        modifier = row.a_mod if a else row.b_mod
        alike = modifier == 0 and compares_alike(warp.values, row, active, a != 0, record.lowest, record.highest, out)
        return alike and assign(cta, warp, row, differences, active, 0, 0)
    handle = linear_difference(cta, warp, row, differences, active, out)
    return handle >= 0 and assign(cta, warp, row, differences, active, handle, 0)


@internal
def assign(cta, warp, row, differences, active, handle, second):
    """Record the results' differences; lanes that are not written keep theirs. False when a merged difference was not
    formed yet, or predicates differ."""
    whole = is_whole_warp(warp, row, active)
    d, dp = warp.difference, warp.predicate_difference
    if not whole and ((row.dest_p >= 0 and dp[row.dest_p]) or (row.dest_q >= 0 and dp[row.dest_q])):
        return False
    merge = MERGE | ((active | warp.exited) << MASK_SHIFT)
    low, high = handle, second
    if not whole and row.n_dest > 0:
        low = combine(cta, differences, merge, d[row.dest], handle)
    if not whole and row.n_dest > 1:
        high = combine(cta, differences, merge, d[row.dest + 1], second)
    if low < 0 or high < 0 or (not whole and row.n_dest > 2):
        return False
    for k in range(row.n_dest):
        d[row.dest + k] = low if k == 0 else high
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


def follow(cta, warp, row, differences, active, known):
    """Differences of an arithmetic row's results (``known``: of words in the scratch rows, else of unknown lanes); 1 when
    they are settled. A unit."""
    if not known:
        return np.int64(assign(cta, warp, row, differences, active, 0, 0))
    if propagate(cta, warp, row, differences, active, cta.scratch):
        return np.int64(1)
    return np.int64(not cta.wanted_operation and recall(cta, warp, row, differences, active))
