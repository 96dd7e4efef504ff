"""Differences of sums and products: which multiple of which source difference a result takes.

A row is linear in a source when the result changes by a constant multiple of the source's change. Sums and multiples of
differences are formed once, outside compiled code, and looked up here; a missing one is asked for (``WANTED``).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from simulator.frontends.sass.semantics.codes import (
    ADD3,
    ADD3_CARRY,
    ADD_PAIR,
    CROSS_LANE,
    FUNNEL_SHIFT,
    INTEGER,
    INVERT,
    LANES,
    LOGIC,
    MOVE,
    MULTIPLY_ADD,
    MULTIPLY_WIDE,
    NEGATE,
    SELECT,
    SHIFT_ADD,
    SHIFT_ADD_HIGH,
    SHUFFLE_BUTTERFLY,
    TO_UNIFORM,
    WORD,
)
from simulator.frontends.sass.semantics.compiled import internal
from simulator.frontends.sass.semantics.sources import first_lane, signed

SAME_IN_LANES = 1
"""Flag of a difference: all lanes of a CTA differ by the same amount."""
KEEPS_ALIGNMENT = 2
"""Flag of a difference: a multiple of the global pattern alignment in every CTA."""
SIGN_BIT = 0x80000000
UNSETTLED, WANTED = -1, -2
SCALE, SUM, LANE, MERGE = 1, 2, 3, 4
"""Combinations of differences; a MERGE carries its lane mask above ``MASK_SHIFT``."""
MASK_SHIFT = 8
_HASH = 0x9E3779B1
NOT_LINEAR = 1 << 40


@internal
def combine(cta, differences, operation, x, y):
    """Handle of x times the number y (SCALE), of x + y (SUM), of x in lane y for all lanes (LANE), or of y in the lanes
    of a mask and x elsewhere (MERGE); WANTED when it was not formed yet."""
    if operation == SUM and (x == 0 or y == 0):
        return x + y
    if operation == SCALE and (x == 0 or y == 0):
        return np.int64(0)
    if (operation == SCALE and y == 1) or (operation >= MERGE and x == y):
        return x
    slot = combination_slot(differences.key, operation, x, y)
    if differences.key[slot, 0] == operation and differences.key[slot, 1] == x and differences.key[slot, 2] == y:
        return differences.result[slot]
    cta.wanted_operation, cta.wanted_x, cta.wanted_y = operation, x, y
    return np.int64(WANTED)


@njit(cache=True)
def combination_slot(keys, operation, x, y):
    """Place of a combination in the hash table: its own, or the first empty one."""
    slot = ((x * _HASH) ^ (y * 31) ^ (operation * 977)) & (len(keys) - 1)
    while keys[slot, 0] and not (keys[slot, 0] == operation and keys[slot, 1] == x and keys[slot, 2] == y):
        slot = (slot + 1) & (len(keys) - 1)
    return slot


@internal
def coefficient(warp, row, active, position):
    """Multiple of source ``position`` (0 a, 1 b, 2 c) that the result takes; NOT_LINEAR if there is none."""
    modifier = row.a_mod if position == 0 else row.b_mod if position == 1 else row.c_mod
    if modifier not in (0, NEGATE, INVERT):
        return np.int64(NOT_LINEAR)
    sign = np.int64(-1 if modifier else 1)
    if row.family == CROSS_LANE:
        moves = row.verb == TO_UNIFORM or row.verb <= SHUFFLE_BUTTERFLY
        return sign if moves and position == 0 else np.int64(NOT_LINEAR)
    if row.family == LOGIC:
        return sign * logic_coefficient(warp, row, active, position)
    if row.family != INTEGER:
        return np.int64(NOT_LINEAR)
    if row.verb in (MOVE, ADD3, ADD3_CARRY, ADD_PAIR):
        return sign
    if row.verb in (MULTIPLY_ADD, MULTIPLY_WIDE):
        if position == 2:
            return sign
        factor = factor_word(warp, row.b if position == 0 else row.a, active)
        if factor == NOT_LINEAR or (row.b_mod if position == 0 else row.a_mod):
            return np.int64(NOT_LINEAR)
        return sign * (factor & WORD if row.verb == MULTIPLY_WIDE and row.x0 else factor)
    if row.verb == SHIFT_ADD:
        return sign << row.x0 if position == 0 else sign
    if row.verb == SHIFT_ADD_HIGH:
        return np.int64(0) if position == 0 else sign << row.x0 if position == 2 else sign
    return np.int64(NOT_LINEAR)


@internal
def logic_coefficient(warp, row, active, position):
    """Left shifts by a known amount, and selects that choose one source in all lanes."""
    if row.verb == FUNNEL_SHIFT and position == 0 and not row.x0 and not row.x1:
        amount = factor_word(warp, row.b, active)
        return np.int64(1) << amount if 0 <= amount < 32 and warp.difference[row.b] == 0 else np.int64(NOT_LINEAR)
    if row.verb == FUNNEL_SHIFT and row.x1:
        return high_shift_coefficient(warp, row, active, position)
    if row.verb == SELECT and position < 2:
        chosen = (warp.predicate[row.p] ^ row.p_invert) & active
        if chosen == active:
            return np.int64(1 if position == 0 else 0)
        if chosen == 0:
            return np.int64(1 if position == 1 else 0)
    return np.int64(NOT_LINEAR)


@internal
def high_shift_coefficient(warp, row, active, position):
    """The high word of a shifted pair {c:a}: to the left it takes a multiple of c; what leaves the low word, or stays of
    the high word after a right shift, must be the same at both ends of the difference (``keeps_top_bits``)."""
    amount = factor_word(warp, row.b, active)
    if not 0 < amount < 32 or warp.difference[row.b]:
        return np.int64(NOT_LINEAR)
    if row.x0:
        return np.int64(0) if position == 2 else np.int64(NOT_LINEAR)
    return np.int64(0) if position == 0 else np.int64(1) << amount


@internal
def shifted_out(warp, row, active, position):
    """(source bits that a row keeps start here, signed) for sources that contribute only their top bits; (0, 0) for
    other rows."""
    if row.family == INTEGER and row.verb == SHIFT_ADD_HIGH and position == 0:
        return 32 - row.x0, row.x2
    if row.family == LOGIC and row.verb == FUNNEL_SHIFT and row.x1:
        amount = factor_word(warp, row.b, active)
        if row.x0 and position == 2:
            return amount, row.x3 & 1
        if not row.x0 and position == 0:
            return 32 - amount, 0
    return np.int64(0), 0


@internal
def factor_word(warp, register, active):
    """Signed word that a register holds in all active lanes and CTAs, NOT_LINEAR if it differs."""
    if warp.difference[register]:
        return np.int64(NOT_LINEAR)
    word, unlike = warp.values[register, first_lane(active)], 0
    for lane in range(LANES):
        if (active >> lane) & 1 and warp.values[register, lane] != word:
            unlike += 1
    return signed(word) if unlike == 0 else np.int64(NOT_LINEAR)


@internal
def linear_difference(cta, warp, row, differences, active, out):
    """Handle by which the (low word of the) result differs, UNSETTLED or WANTED. The result is in scratch row ``out``."""
    d, total = warp.difference, np.int64(0)
    lowest, highest = np.int64(0), np.int64(0)
    exact = row.family == INTEGER and (row.dest_p >= 0 or row.dest_q >= 0 or row.n_dest > 1)
    for position in range(3):
        source = row.a if position == 0 else row.b if position == 1 else row.c
        handle = d[source]
        if handle == 0:
            continue
        factor = coefficient(warp, row, active, position)
        record = differences.record[handle]
        if factor == NOT_LINEAR:
            return np.int64(UNSETTLED)
        if row.family == CROSS_LANE and not record.flags & SAME_IN_LANES:
            if row.verb != TO_UNIFORM:
                return np.int64(UNSETTLED)
            return combine(cta, differences, LANE, handle, first_lane(active))
        down, is_signed = shifted_out(warp, row, active, position)
        if down:
            if not keeps_top_bits(warp.values, source, active, record.lowest, record.highest, down, is_signed):
                return np.int64(UNSETTLED)
        elif exact and not exact_source(warp.values, row, source, active, record.lowest, record.highest, factor):
            return np.int64(UNSETTLED)
        lowest += min(record.lowest * factor, record.highest * factor)
        highest += max(record.lowest * factor, record.highest * factor)
        scaled = combine(cta, differences, SCALE, handle, factor)
        total = combine(cta, differences, SUM, min(total, scaled), max(total, scaled)) if scaled >= 0 else scaled
        if total < 0:
            return total
    if exact and not stays_in_word(warp.values, out, active, lowest, highest, 0):
        return np.int64(UNSETTLED)
    return total


@internal
def exact_source(values, row, source, active, lowest, highest, factor):
    """A source's difference is exact (its word does not wrap), also after the shift of a LEA."""
    if row.verb == MULTIPLY_WIDE and not row.x0:
        return stays_in_word(values, source, active, lowest, highest, SIGN_BIT)
    if not stays_in_word(values, source, active, lowest, highest, 0):
        return False
    if row.verb != SHIFT_ADD or factor in (1, -1):
        return True
    beyond = 0
    for lane in range(LANES):
        word = np.int64(values[source, lane])
        if (active >> lane) & 1 and (word + highest) * factor > WORD:
            beyond += 1
    return beyond == 0


@internal
def stays_in_word(values, source, active, low, high, flip):
    """No active lane leaves the 32-bit range between the ends of a difference; ``flip`` SIGN_BIT: the signed range."""
    outside = 0
    for lane in range(LANES):
        word = np.int64(values[source, lane]) ^ flip
        if (active >> lane) & 1 and (word + low < 0 or word + high > WORD):
            outside += 1
    return outside == 0


@internal
def keeps_top_bits(values, source, active, low, high, down, is_signed):
    """The bits from ``down`` on are the same at both ends of a difference."""
    unlike = 0
    for lane in range(LANES):
        word = signed(values[source, lane]) if is_signed else np.int64(values[source, lane])
        bottom, top = -(WORD >> 1) - 1 if is_signed else 0, WORD >> 1 if is_signed else WORD
        if (active >> lane) & 1:
            inside = bottom <= word + low and word + high <= top
            unlike += 0 if inside and (word + low) >> down == (word + high) >> down else 1
    return unlike == 0
