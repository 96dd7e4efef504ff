"""Shared-memory atomics, lane after lane."""

from __future__ import annotations

import numpy as np

from simulator.frontends.sass.semantics.codes import (
    EXECUTE,
    LANES,
    UPDATE_ADD,
    UPDATE_AND,
    UPDATE_COMPARE_SWAP,
    UPDATE_EXCHANGE,
    UPDATE_INCREMENT,
    UPDATE_MAXIMUM,
    UPDATE_MINIMUM,
    UPDATE_OR,
    UPDATE_XOR,
    WORD,
)
from simulator.frontends.sass.semantics.compiled import internal
from simulator.frontends.sass.semantics.records import WORD_BYTES
from simulator.frontends.sass.semantics.sources import signed


@internal
def shared_atomic(cta, warp, row, active):
    """ATOMS on 32-bit words: operand row c (compare-and-swap: c, then c_hi). Anything else leaves them unknown."""
    functional = row.action == EXECUTE and row.x1 == WORD_BYTES
    missing = np.int64(0)
    for lane in range(LANES):
        if (active >> lane) & 1 == 0:
            continue
        at = cta.address[lane]
        known = functional and (warp.unknown[row.c] >> lane) & 1 == 0 and not any_unknown(cta.shared_unknown, at)
        old = shared_word(cta.shared, at)
        operand, second = np.int64(warp.values[row.c, lane]), np.int64(warp.values[row.c_hi, lane])
        new, applied = updated(old, operand, second, row.x3, row.x2)
        store_word(cta.shared, cta.shared_unknown, at, new, 0 if known and applied else 1)
        if row.n_dest and functional:
            warp.values[row.dest, lane] = old
        missing |= np.int64(0 if known else 1) << lane
    for k in range(row.n_dest):
        warp.unknown[row.dest + k] = (warp.unknown[row.dest + k] & ~active) | missing


@internal
def updated(old, operand, second, update, is_signed):
    """(new word, could it be computed) of one atomic update."""
    a, b = (signed(old), signed(operand)) if is_signed else (old, operand)
    if update == UPDATE_ADD:
        return (old + operand) & WORD, True
    if update == UPDATE_INCREMENT:
        return (old + 1) & WORD, True
    if update == UPDATE_MINIMUM:
        return min(a, b) & WORD, True
    if update == UPDATE_MAXIMUM:
        return max(a, b) & WORD, True
    if update == UPDATE_AND:
        return old & operand, True
    if update == UPDATE_OR:
        return old | operand, True
    if update == UPDATE_XOR:
        return old ^ operand, True
    if update == UPDATE_EXCHANGE:
        return operand, True
    if update == UPDATE_COMPARE_SWAP:
        return (second if old == operand else old), True
    return old, False


@internal
def any_unknown(marks, at):
    """Is a byte of the word unknown?"""
    return marks[at] | marks[at + 1] | marks[at + 2] | marks[at + 3]


@internal
def shared_word(shared, at):
    """Little-endian word at a byte offset."""
    word = np.int64(0)
    for byte in range(WORD_BYTES):
        word |= np.int64(shared[at + byte]) << (8 * byte)
    return word


@internal
def store_word(shared, marks, at, word, mark):
    """Write a word and its unknown mark."""
    for byte in range(WORD_BYTES):
        shared[at + byte] = (word >> (8 * byte)) & 255
        marks[at + byte] = mark
