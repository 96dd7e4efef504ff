"""Operand fetch: applies a source's modifiers, so that verbs see plain value rows."""

from __future__ import annotations

import numpy as np

from simulator.frontends.sass.semantics.codes import (
    FLOAT_ABSOLUTE,
    FLOAT_NEGATE,
    FULL,
    HIGH_HALF,
    INVERT,
    LANES,
    LOW_HALF,
    NEGATE,
    WORD,
)
from simulator.frontends.sass.semantics.compiled import internal


@internal
def source(values, index, modifier, scratch):
    """Value row of an operand: ``index`` itself, or ``scratch`` after the modifiers were applied into it."""
    if modifier == 0:
        return index
    for lane in range(LANES):
        values[scratch, lane] = modified(values[index, lane], modifier)
    return scratch


@internal
def modified(word, modifier):
    """One word under its modifiers: halves first, then absolute value, then sign."""
    x = np.int64(word)
    if modifier & LOW_HALF:
        x = x & 0xFFFF
    elif modifier & HIGH_HALF:
        x = x >> 16
    if modifier & FLOAT_ABSOLUTE:
        x = x & 0x7FFFFFFF
    if modifier & FLOAT_NEGATE:
        x = x ^ 0x80000000
    if modifier & INVERT:
        x = x ^ WORD
    if modifier & NEGATE:
        x = -x
    return x & WORD


@internal
def addend(word, modifier):
    """A word as a term of a sum with carry out: -x counts as 2^32 - x, so that a - b carries when a >= b."""
    x = np.int64(word)
    if modifier & INVERT:
        return x ^ WORD
    if modifier & NEGATE:
        return WORD + 1 - x
    return x


@internal
def signed(word):
    """Two's complement value of a 32-bit word."""
    x = np.int64(word) & WORD
    return (x ^ 0x80000000) - 0x80000000


@internal
def lane_bit(mask, lane):
    """Bit of one lane in a predicate mask."""
    return (mask >> lane) & 1


@internal
def lanes_in(mask):
    """Number of lanes in a mask."""
    if mask == FULL:
        return LANES
    x = mask - ((mask >> 1) & 0x55555555)
    x = (x & 0x33333333) + ((x >> 2) & 0x33333333)
    x = (x + (x >> 4)) & 0x0F0F0F0F
    return ((x * 0x01010101) & WORD) >> 24


@internal
def first_lane(mask):
    """Lowest lane of a mask; 0 for an empty one."""
    for lane in range(LANES):
        if (mask >> lane) & 1:
            return lane
    return 0


@internal
def extend(word, n_bytes, is_signed):
    """A value of ``n_bytes`` bytes as a 32-bit word, sign extended on demand."""
    if n_bytes < 4 and is_signed and (word >> (8 * n_bytes - 1)) & 1:
        word -= np.int64(1) << (8 * n_bytes)
    return word & WORD
