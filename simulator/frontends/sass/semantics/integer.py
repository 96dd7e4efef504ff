"""Integer arithmetic verbs. Each writes value row ``out`` (and ``out + 1`` for a pair) in all lanes.

Semantics follow the PTX counterparts (add.cc/addc, mad, mad.hi, mad.wide, min, max, setp); three-input sums and LEA
are CUDA Binary Utilities mnemonics whose carries were checked against compiled 64-bit address code.
"""

from __future__ import annotations

import numpy as np

from simulator.frontends.sass.semantics.codes import (
    ABSOLUTE,
    ADD3,
    ADD3_CARRY,
    ADD_MINIMUM_MAXIMUM,
    ADD_PAIR,
    COMBINE_AND,
    COMBINE_OR,
    COMPARE,
    DOT_PRODUCT,
    EQUAL,
    FALSE,
    FULL,
    GREATER,
    GREATER_EQUAL,
    LANES,
    LESS,
    LESS_EQUAL,
    MINIMUM_MAXIMUM,
    MOVE,
    MOVE_PAIR,
    MULTIPLY_ADD,
    MULTIPLY_HIGH,
    MULTIPLY_WIDE,
    NEGATE,
    NOT_EQUAL,
    SHIFT_ADD,
    SHIFT_ADD_HIGH,
    WORD,
)
from simulator.frontends.sass.semantics.compiled import internal
from simulator.frontends.sass.semantics.sources import addend, signed, source


@internal
def integer(values, row, p, q, out):
    """Execute an INTEGER row. ``p, q``: predicate source masks. Returns its two predicate results."""
    verb = row.verb
    if verb == ADD3_CARRY:
        return add_with_carry(values, row, p, q, out)
    if verb in (SHIFT_ADD, SHIFT_ADD_HIGH):
        return shift_add(values, row, p, out)
    if verb == COMPARE:
        return compare(values, row, p, q)
    a = source(values, row.a, row.a_mod, out + 2)
    if verb == MOVE:
        move(values, a, out)
        return 0, 0
    if verb == MOVE_PAIR:
        move(values, a, out)
        move(values, row.a_hi, out + 1)
        return 0, 0
    b = source(values, row.b, row.b_mod, out + 3)
    if verb in (MULTIPLY_WIDE, MULTIPLY_HIGH):
        multiply_wide(values, a, b, row, out, verb == MULTIPLY_HIGH)
        return 0, 0
    if verb == ADD_PAIR:
        add_pair(values, row, out)
        return 0, 0
    c = source(values, row.c, row.c_mod, out + 4)
    if verb == ADD3:
        add3(values, a, b, c, out)
    elif verb == MULTIPLY_ADD:
        multiply_add(values, a, b, c, p, out)
    elif verb == ABSOLUTE:
        absolute(values, a, out)
    elif verb == MINIMUM_MAXIMUM:
        minimum_maximum(values, a, b, p, row.x0, out)
    elif verb == ADD_MINIMUM_MAXIMUM:
        add3(values, a, b, row.x1, out + 5)
        minimum_maximum(values, out + 5, c, p, row.x0, out)
    elif verb == DOT_PRODUCT:
        dot_product(values, a, b, c, row, out)
    return 0, 0


@internal
def move(values, a, out):
    """out = a."""
    for lane in range(LANES):
        values[out, lane] = values[a, lane]


@internal
def add3(values, a, b, c, out):
    """out = a + b + c."""
    for lane in range(LANES):
        values[out, lane] = values[a, lane] + values[b, lane] + values[c, lane]


@internal
def add_with_carry(values, row, p, q, out):
    """out = a + b + c + carries in (p, q); returns the carry of at least 1 and of 2 out of bit 31."""
    first, second = 0, 0
    a, b, c = row.a, row.b, row.c
    a_mod, b_mod, c_mod = row.a_mod, row.b_mod, row.c_mod
    for lane in range(LANES):
        total = addend(values[a, lane], a_mod) + addend(values[b, lane], b_mod) + addend(values[c, lane], c_mod)
        total += ((p >> lane) & 1) + ((q >> lane) & 1)
        values[out, lane] = total & WORD
        carry = total >> 32
        first |= (1 if carry > 0 else 0) << lane
        second |= (1 if carry > 1 else 0) << lane
    return first, second


@internal
def pair(values, low, high, lane):
    """64-bit word of two value rows."""
    return (np.int64(values[high, lane]) << 32) | np.int64(values[low, lane])


@internal
def store_pair(values, out, lane, word):
    """Split a 64-bit word over rows out (low) and out + 1 (high)."""
    values[out, lane] = word & WORD
    values[out + 1, lane] = (word >> 32) & WORD


@internal
def add_pair(values, row, out):
    """64-bit out = a + b + c, each possibly negated."""
    for lane in range(LANES):
        a = pair(values, row.a, row.a_hi, lane)
        b = pair(values, row.b, row.b_hi, lane)
        c = pair(values, row.c, row.c_hi, lane)
        a = -a if row.a_mod & NEGATE else a
        b = -b if row.b_mod & NEGATE else b
        c = -c if row.c_mod & NEGATE else c
        store_pair(values, out, lane, a + b + c)


@internal
def multiply_add(values, a, b, c, carry, out):
    """out = low word of a * b + c + carry."""
    for lane in range(LANES):
        values[out, lane] = values[a, lane] * values[b, lane] + values[c, lane]
    if carry:
        for lane in range(LANES):
            values[out, lane] += (carry >> lane) & 1


@internal
def multiply_wide(values, a, b, row, out, high_only):
    """64-bit a * b + c (X0: unsigned factors; c a 64-bit pair); ``high_only`` keeps the high word in out."""
    unsigned, c, c_high, negate = row.x0, row.c, row.c_hi, row.c_mod & NEGATE
    for lane in range(LANES):
        if unsigned:
            product = np.int64(values[a, lane]) * np.int64(values[b, lane])
        else:
            product = signed(values[a, lane]) * signed(values[b, lane])
        term = pair(values, c, c_high, lane)
        word = product - term if negate else product + term
        if high_only:
            values[out, lane] = (word >> 32) & WORD
        else:
            store_pair(values, out, lane, word)


@internal
def shift_add(values, row, p, out):
    """LEA: (a << X0) + b + carry in p. LEA.HI (X1): high word of {c:a} << X0; X2: c is the sign of a. Carry out."""
    shift, is_high, extend_sign = row.x0, row.verb == SHIFT_ADD_HIGH, row.x2
    carries = 0
    a, b, c, a_mod, b_mod = row.a, row.b, row.c, row.a_mod, row.b_mod
    for lane in range(LANES):
        low = addend(values[a, lane], a_mod) & WORD
        if not is_high:
            shifted = (low << shift) & WORD
        elif extend_sign:
            shifted = (signed(low) >> (32 - shift)) & WORD
        else:
            shifted = ((np.int64(values[c, lane]) << shift) | (low >> (32 - shift))) & WORD
        total = shifted + addend(values[b, lane], b_mod) + ((p >> lane) & 1)
        values[out, lane] = total & WORD
        carries |= (1 if (total >> 32) > 0 else 0) << lane
    return carries, 0


@internal
def absolute(values, a, out):
    """out = |a| of a signed word."""
    for lane in range(LANES):
        x = signed(values[a, lane])
        values[out, lane] = (x if x >= 0 else -x) & WORD


@internal
def minimum_maximum(values, a, b, takes_minimum, unsigned, out):
    """out = min(a, b) in the lanes of ``takes_minimum``, else max; words unsigned or signed."""
    for lane in range(LANES):
        x, y = values[a, lane], values[b, lane]
        less = x < y if unsigned else signed(x) < signed(y)
        minimum = (takes_minimum >> lane) & 1 == 1
        values[out, lane] = x if less == minimum else y


@internal
def dot_product(values, a, b, c, row, out):
    """IDP.4A: sum of four byte products + c. X0: a is signed, X1: b is signed."""
    for lane in range(LANES):
        total = np.int64(values[c, lane])
        for byte in range(4):
            x = (np.int64(values[a, lane]) >> (8 * byte)) & 255
            y = (np.int64(values[b, lane]) >> (8 * byte)) & 255
            x = x - 256 if row.x0 and x > 127 else x
            y = y - 256 if row.x1 and y > 127 else y
            total += x * y
        values[out, lane] = total & WORD


@internal
def compare(values, row, p, previous):
    """ISETP: X0 comparison, X1 unsigned, X2 how it combines with p; X3: upper half of a 64-bit comparison whose lower
    half gave ``previous``. Returns the comparison and its complement, both combined with p."""
    less, equal = order_masks(values, row.a, row.b, row.a_mod, row.b_mod, row.x1)
    result = comparison_mask(less, equal, row.x0)
    if row.x3:
        result = extended_mask(less, equal, row.x0, previous)
    return combine(result, p, row.x2), combine(result ^ FULL, p, row.x2)


@internal
def order_masks(values, a, b, a_mod, b_mod, unsigned):
    """Masks of the lanes where a < b and where a == b."""
    less, equal = 0, 0
    for lane in range(LANES):
        x, y = addend(values[a, lane], a_mod) & WORD, addend(values[b, lane], b_mod) & WORD
        if not unsigned:
            x, y = x ^ 0x80000000, y ^ 0x80000000
        less |= (1 if x < y else 0) << lane
        equal |= (1 if x == y else 0) << lane
    return less, equal


@internal
def comparison_mask(less, equal, comparison):
    """Lanes for which a comparison holds."""
    if comparison == LESS:
        return less
    if comparison == LESS_EQUAL:
        return less | equal
    if comparison == GREATER:
        return (less | equal) ^ FULL
    if comparison == GREATER_EQUAL:
        return less ^ FULL
    if comparison == EQUAL:
        return equal
    if comparison == NOT_EQUAL:
        return equal ^ FULL
    return 0 if comparison == FALSE else FULL


@internal
def extended_mask(less, equal, comparison, lower):
    """Comparison of 64-bit values from its upper words and the result of the lower words."""
    if comparison == EQUAL:
        return equal & lower
    if comparison == NOT_EQUAL:
        return (equal ^ FULL) | lower
    if comparison in (LESS, LESS_EQUAL):
        return less | (equal & lower)
    if comparison in (GREATER, GREATER_EQUAL):
        return ((less | equal) ^ FULL) | (equal & lower)
    return comparison_mask(less, equal, comparison)


@internal
def combine(result, p, how):
    """Boolean combination of a comparison with a predicate source."""
    if how == COMBINE_AND:
        return result & p
    if how == COMBINE_OR:
        return result | p
    return result ^ p
