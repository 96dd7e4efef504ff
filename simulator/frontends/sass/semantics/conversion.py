"""Conversions between integers and binary32, and packing into 16-bit formats."""

from __future__ import annotations

import math

import numpy as np

from simulator.frontends.sass.semantics.codes import (
    FLOAT_TO_INTEGER,
    FLOAT_TO_INTEGER_PAIR,
    INTEGER_PAIR_TO_FLOAT,
    INTEGER_TO_FLOAT,
    LANES,
    PACK_BF16,
    PACK_HALVES,
    ROUND_DOWN,
    ROUND_NEAREST,
    ROUND_UP,
    WORD,
)
from simulator.frontends.sass.semantics.compiled import internal
from simulator.frontends.sass.semantics.float32 import rounded
from simulator.frontends.sass.semantics.sources import source

TWO_63 = 9223372036854775808.0
TWO_64 = 18446744073709551616.0


@internal
def conversion(values, floats, row, out):
    """Execute a CONVERSION row. X0: bits of the integer type, X1: it is signed, X2: rounding (or packed format)."""
    verb = row.verb
    a = source(values, row.a, row.a_mod, out + 2)
    if verb == INTEGER_TO_FLOAT:
        integer_to_float(values, floats, a, row, out)
    elif verb == INTEGER_PAIR_TO_FLOAT:
        integer_pair_to_float(values, floats, row, out)
    elif verb in (FLOAT_TO_INTEGER, FLOAT_TO_INTEGER_PAIR):
        float_to_integer(values, floats, a, row, out, verb == FLOAT_TO_INTEGER_PAIR)
    elif verb == PACK_HALVES:
        b = source(values, row.b, row.b_mod, out + 3)
        pack_halves(values, floats, a, b, row.x0 == PACK_BF16, out)
    return 0, 0


@internal
def integer_to_float(values, floats, a, row, out):
    """I2F of 8, 16 or 32 bits (low part of the register)."""
    bits = row.x0
    for lane in range(LANES):
        word = np.int64(values[a, lane])
        if bits < 32:
            word &= (1 << bits) - 1
        if row.x1 and (word >> (bits - 1)) & 1:
            word -= 1 << bits
        floats[out, lane] = rounded(np.float64(word), row.x2)


@internal
def integer_pair_to_float(values, floats, row, out):
    """I2F of a 64-bit pair; the conversion to binary64 first is exact enough for reciprocals of divisors."""
    for lane in range(LANES):
        word = (np.int64(values[row.a_hi, lane]) << 32) | np.int64(values[row.a, lane])
        number = np.float64(word)
        if not row.x1 and word < 0:
            number += TWO_64
        floats[out, lane] = rounded(number, row.x2)


@internal
def float_to_integer(values, floats, a, row, out, is_pair):
    """F2I: saturating; not a number gives 0."""
    for lane in range(LANES):
        x = np.float64(floats[a, lane])
        x = 0.0 if math.isnan(x) else integral(x, row.x2)
        if is_pair:
            word = saturated_pair(x, row.x1)
            values[out, lane] = word & WORD
            values[out + 1, lane] = (word >> 32) & WORD
        else:
            top = 2.0 ** (row.x0 - 1) if row.x1 else 2.0 ** row.x0
            low = -top if row.x1 else 0.0
            values[out, lane] = np.int64(min(max(x, low), top - 1.0)) & WORD


@internal
def saturated_pair(x, is_signed):
    """64-bit integer nearest to an integral number, as a two's complement word."""
    if is_signed:
        return np.int64(-TWO_63) if x <= -TWO_63 else np.int64(x) if x < TWO_63 else np.int64(0x7FFFFFFFFFFFFFFF)
    if x >= TWO_64:
        return np.int64(-1)
    return np.int64(x - TWO_64) if x >= TWO_63 else np.int64(max(x, 0.0))


@internal
def integral(x, rounding):
    """Round to an integral number."""
    if rounding == ROUND_NEAREST:
        return np.rint(x)
    if rounding == ROUND_UP:
        return math.ceil(x) * 1.0
    if rounding == ROUND_DOWN:
        return math.floor(x) * 1.0
    return math.trunc(x) * 1.0


@internal
def pack_halves(values, floats, a, b, is_bf16, out):
    """F2FP.PACK_AB: a in the upper, b in the lower half."""
    for lane in range(LANES):
        if is_bf16:
            high, low = to_bf16(np.int64(values[a, lane])), to_bf16(np.int64(values[b, lane]))
        else:
            high, low = to_f16(np.float64(floats[a, lane])), to_f16(np.float64(floats[b, lane]))
        values[out, lane] = (high << 16) | low


@internal
def to_bf16(word):
    """Upper half of a binary32 word, rounded to nearest even."""
    if (word & 0x7FFFFFFF) > 0x7F800000:
        return 0x7FFF
    return ((word + 0x7FFF + ((word >> 16) & 1)) >> 16) & 0xFFFF


@internal
def to_f16(x):
    """binary16 bits of a number, rounded to nearest even."""
    sign = 0x8000 if x < 0 or (x == 0 and math.copysign(1.0, x) < 0) else 0
    size = abs(x)
    if math.isnan(x):
        return 0x7FFF
    if size >= 65520.0:
        return sign | 0x7C00
    if size < 2.0**-14:
        return sign | np.int64(np.rint(size * 2.0**24))
    fraction, exponent = math.frexp(size)
    steps = np.int64(np.rint(fraction * 2048.0)) - 1024
    return sign | (((exponent + 14) << 10) + steps)
