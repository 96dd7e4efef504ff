"""Bitwise verbs: three-input logic, funnel shifts, byte permutes, bit counts, selects."""

from __future__ import annotations

import numpy as np

from simulator.frontends.sass.semantics.codes import (
    BIT_MASK,
    EXTEND_SIGN,
    FIND_LEADING_ONE,
    FULL,
    FUNNEL_SHIFT,
    LANES,
    LOGIC3,
    PERMUTE_BYTES,
    POPULATION,
    REVERSE_BITS,
    SELECT,
    WORD,
)
from simulator.frontends.sass.semantics.compiled import internal
from simulator.frontends.sass.semantics.sources import lanes_in, signed, source

BOTH_AND, A_AND_B_OR_C, EITHER, EXCLUSIVE = 0xC0, 0xEA, 0xFC, 0x3C


@internal
def logic(values, row, p, out):
    """Execute a LOGIC row. Returns its two predicate results."""
    verb = row.verb
    a = source(values, row.a, row.a_mod, out + 2)
    b = source(values, row.b, row.b_mod, out + 3)
    c = source(values, row.c, row.c_mod, out + 4)
    if verb == LOGIC3:
        logic3(values, a, b, c, row.x0, out)
        return nonzero(values, out) | p if row.x1 else nonzero(values, out) & p, 0
    if verb == FUNNEL_SHIFT:
        funnel_shift(values, a, b, c, row, out)
    elif verb == SELECT:
        select(values, a, b, p, out)
    elif verb == PERMUTE_BYTES:
        permute_bytes(values, a, b, c, out)
    elif verb == EXTEND_SIGN:
        extend_sign(values, a, b, row.x0, out)
    elif verb == BIT_MASK:
        bit_mask(values, a, b, out)
    elif verb == POPULATION:
        for lane in range(LANES):
            values[out, lane] = lanes_in(np.int64(values[a, lane]))
    elif verb == FIND_LEADING_ONE:
        find_leading_one(values, a, row, out)
    elif verb == REVERSE_BITS:
        reverse_bits(values, a, out)
    return 0, 0


@internal
def logic3(values, a, b, c, table, out):
    """out = truth table of three inputs; bit (4a + 2b + c) of ``table`` is the result."""
    if table == BOTH_AND:
        for lane in range(LANES):
            values[out, lane] = values[a, lane] & values[b, lane]
    elif table == EITHER:
        for lane in range(LANES):
            values[out, lane] = values[a, lane] | values[b, lane]
    elif table == EXCLUSIVE:
        for lane in range(LANES):
            values[out, lane] = values[a, lane] ^ values[b, lane]
    else:
        logic3_general(values, a, b, c, table, out)


@internal
def logic3_general(values, a, b, c, table, out):
    """Any truth table, as the union of its minterms."""
    k0, k1, k2, k3 = minterm(table, 0), minterm(table, 1), minterm(table, 2), minterm(table, 3)
    k4, k5, k6, k7 = minterm(table, 4), minterm(table, 5), minterm(table, 6), minterm(table, 7)
    for lane in range(LANES):
        x, y, z = values[a, lane], values[b, lane], values[c, lane]
        when_a_clear = (~y & ((~z & k0) | (z & k1))) | (y & ((~z & k2) | (z & k3)))
        when_a_set = (~y & ((~z & k4) | (z & k5))) | (y & ((~z & k6) | (z & k7)))
        values[out, lane] = (~x & when_a_clear) | (x & when_a_set)


@internal
def minterm(table, position):
    """All ones when a truth table holds a minterm."""
    return np.uint32(WORD) if (table >> position) & 1 else np.uint32(0)


@internal
def logic3_word(a, b, c, table):
    """Truth table of three words (or masks), bit by bit."""
    result = 0
    if table & 1:
        result |= ~a & ~b & ~c
    if table & 2:
        result |= ~a & ~b & c
    if table & 4:
        result |= ~a & b & ~c
    if table & 8:
        result |= ~a & b & c
    if table & 16:
        result |= a & ~b & ~c
    if table & 32:
        result |= a & ~b & c
    if table & 64:
        result |= a & b & ~c
    if table & 128:
        result |= a & b & c
    return result & WORD


@internal
def nonzero(values, a):
    """Mask of the lanes whose word is not zero."""
    mask = 0
    for lane in range(LANES):
        mask |= (1 if values[a, lane] != 0 else 0) << lane
    return mask


@internal
def funnel_shift(values, a, b, c, row, out):
    """SHF of {c:a} by b. X0: right; X1: high word of the result; X2: operand bits (32 or 64), shifts clamp there
    (X3 bit 1: wrap instead); X3 bit 0: arithmetic."""
    right, high, bits, wraps, arithmetic = row.x0, row.x1, row.x2, row.x3 & 2, row.x3 & 1
    for lane in range(LANES):
        amount = np.int64(values[b, lane])
        amount = amount & (bits - 1) if wraps else min(amount, bits)
        low, upper = np.int64(values[a, lane]), np.int64(values[c, lane])
        if right and high:
            word = signed(upper) >> min(amount, 31) if arithmetic else upper >> amount
        elif right:
            word = shift_right_pair(low, upper, amount, arithmetic)
        elif high:
            word = (upper << amount) | (low >> (32 - amount)) if amount <= 32 else low << (amount - 32)
        else:
            word = low << amount if amount < 32 else 0
        values[out, lane] = word & WORD


@internal
def shift_right_pair(low, upper, amount, arithmetic):
    """Low word of {upper:low} >> amount."""
    if amount == 0:
        return low
    if amount < 32:
        return (low >> amount) | (upper << (32 - amount))
    if arithmetic:
        return signed(upper) >> min(amount - 32, 31)
    return upper >> (amount - 32) if amount < 64 else 0


@internal
def select(values, a, b, takes_a, out):
    """out = a in the lanes of ``takes_a``, else b."""
    if takes_a == FULL or takes_a == 0:
        chosen = a if takes_a else b
        for lane in range(LANES):
            values[out, lane] = values[chosen, lane]
        return
    for lane in range(LANES):
        values[out, lane] = values[a, lane] if (takes_a >> lane) & 1 else values[b, lane]


@internal
def permute_bytes(values, a, selector, b, out):
    """PRMT: nibble i of the selector picks a byte of {b:a}; its top bit replicates that byte's sign."""
    for lane in range(LANES):
        joined = (np.int64(values[b, lane]) << 32) | np.int64(values[a, lane])
        picks, word = np.int64(values[selector, lane]), 0
        for position in range(4):
            pick = (picks >> (4 * position)) & 15
            byte = (joined >> (8 * (pick & 7))) & 255
            if pick & 8:
                byte = 255 if byte & 128 else 0
            word |= byte << (8 * position)
        values[out, lane] = word


@internal
def extend_sign(values, a, width, unsigned, out):
    """SGXT: keep the low ``width`` bits of a and extend their sign (or zero) to 32 bits."""
    for lane in range(LANES):
        bits = np.int64(values[width, lane])
        word = np.int64(values[a, lane])
        if bits < 32:
            word &= (1 << bits) - 1
            if not unsigned and bits > 0 and (word >> (bits - 1)) & 1:
                word |= WORD ^ ((1 << bits) - 1)
        values[out, lane] = word & WORD


@internal
def bit_mask(values, position, width, out):
    """BMSK: ``width`` ones from bit ``position``."""
    for lane in range(LANES):
        ones = (1 << min(np.int64(values[width, lane]), 32)) - 1
        shift = np.int64(values[position, lane])
        values[out, lane] = (ones << shift) & WORD if shift < 32 else 0


@internal
def find_leading_one(values, a, row, out):
    """FLO: position of the highest set bit, all ones if none. X0: signed (highest bit unlike the sign);
    X1 (.SH): as a left-shift amount."""
    for lane in range(LANES):
        word = np.int64(values[a, lane])
        if row.x0 and word >> 31:
            word ^= WORD
        found = -1
        for bit in range(LANES):
            if (word >> bit) & 1:
                found = bit
        if found >= 0 and row.x1:
            found = 31 - found
        values[out, lane] = found & WORD


@internal
def reverse_bits(values, a, out):
    """BREV."""
    for lane in range(LANES):
        word, result = np.int64(values[a, lane]), 0
        for bit in range(LANES):
            result |= ((word >> bit) & 1) << (31 - bit)
        values[out, lane] = result
