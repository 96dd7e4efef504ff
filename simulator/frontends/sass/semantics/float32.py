"""binary32 verbs. Values matter when they reach a branch or an address, as in integer division by reciprocals.

FFMA: the product is exact in binary64; the sum is rounded to binary64 and then to binary32. MUFU results are the
correctly rounded function, which the hardware approximates to 1-2 units in the last place; code that depends on
such bits corrects itself (integer division does).
"""

from __future__ import annotations

import math

import numpy as np

from simulator.frontends.sass.semantics.codes import (
    COMBINE_AND,
    COMBINE_OR,
    COSINE,
    EQUAL,
    EXPONENTIAL,
    FLOAT_ADD,
    FLOAT_COMPARE,
    FLOAT_MINIMUM_MAXIMUM,
    FLOAT_MULTIPLY,
    FLOAT_SELECT,
    FULL,
    GREATER,
    LANES,
    LESS,
    LOGARITHM,
    NOT_A_NUMBER,
    NUMBER,
    RECIPROCAL,
    RECIPROCAL_ROOT,
    ROOT,
    ROUND_NEAREST,
    ROUND_TO_ZERO,
    ROUND_UP,
    SINE,
    TRUE,
    UNORDERED,
)
from simulator.frontends.sass.semantics.compiled import internal
from simulator.frontends.sass.semantics.shift_logic import select
from simulator.frontends.sass.semantics.sources import source


@internal
def float32(values, floats, row, p, out):
    """Execute a FLOAT row. ``floats`` is ``values`` seen as binary32. Returns its predicate results."""
    verb = row.verb
    a = source(values, row.a, row.a_mod, out + 2)
    if verb >= RECIPROCAL:
        transcendental(floats, verb, a, out)
        return 0, 0
    b = source(values, row.b, row.b_mod, out + 3)
    if verb == FLOAT_COMPARE:
        result = compare(floats, a, b, row.x0)
        return combine(result, p, row.x1), combine(result ^ FULL, p, row.x1)
    if verb == FLOAT_SELECT:
        select(values, a, b, p, out)
    elif verb == FLOAT_MINIMUM_MAXIMUM:
        minimum_maximum(floats, a, b, p, out)
    else:
        c = source(values, row.c, row.c_mod, out + 4)
        arithmetic(floats, verb, a, b, c, row.x0, out)
    return 0, 0


@internal
def arithmetic(floats, verb, a, b, c, rounding, out):
    """Sum, product or fused product-sum in the given rounding."""
    for lane in range(LANES):
        x, y = np.float64(floats[a, lane]), np.float64(floats[b, lane])
        if verb == FLOAT_ADD:
            exact = x + y
        elif verb == FLOAT_MULTIPLY:
            exact = x * y
        else:
            exact = x * y + np.float64(floats[c, lane])
        floats[out, lane] = rounded(exact, rounding)


@internal
def rounded(exact, rounding):
    """binary64 -> binary32 in a rounding direction."""
    nearest = np.float32(exact)
    if rounding == ROUND_NEAREST or not math.isfinite(exact) or np.float64(nearest) == exact:
        return nearest
    above = np.float64(nearest) > exact
    if rounding == ROUND_UP:
        return nearest if above else np.nextafter(nearest, np.float32(np.inf))
    if rounding == ROUND_TO_ZERO:
        return np.nextafter(nearest, np.float32(0)) if above == (exact > 0) else nearest
    return np.nextafter(nearest, np.float32(-np.inf)) if above else nearest


@internal
def minimum_maximum(floats, a, b, takes_minimum, out):
    """FMNMX: the other operand when one is not a number."""
    for lane in range(LANES):
        x, y = floats[a, lane], floats[b, lane]
        minimum = (takes_minimum >> lane) & 1 == 1
        if math.isnan(x):
            floats[out, lane] = y
        elif math.isnan(y):
            floats[out, lane] = x
        else:
            floats[out, lane] = x if (x < y) == minimum else y


@internal
def compare(floats, a, b, comparison):
    """Mask of the lanes where a comparison holds; UNORDERED ones also hold when an operand is not a number."""
    mask = 0
    kind = comparison & (UNORDERED - 1)
    for lane in range(LANES):
        x, y = floats[a, lane], floats[b, lane]
        if math.isnan(x) or math.isnan(y):
            holds = comparison >= UNORDERED or kind in (NOT_A_NUMBER, TRUE)
        elif kind in (NUMBER, TRUE):
            holds = True
        else:
            holds = ((kind & LESS) != 0 and x < y) or ((kind & EQUAL) != 0 and x == y)
            holds = holds or ((kind & GREATER) != 0 and x > y)
            holds = holds and kind != NOT_A_NUMBER
        mask |= (1 if holds else 0) << lane
    return mask


@internal
def combine(result, p, how):
    """Boolean combination of a comparison with a predicate source."""
    if how == COMBINE_AND:
        return result & p
    if how == COMBINE_OR:
        return result | p
    return result ^ p


@internal
def transcendental(floats, verb, a, out):
    """MUFU."""
    for lane in range(LANES):
        floats[out, lane] = np.float32(special_function(verb, np.float64(floats[a, lane])))


@internal
def special_function(verb, x):
    """One MUFU function in binary64."""
    if verb == RECIPROCAL:
        return 1.0 / x if x != 0.0 else math.copysign(math.inf, x)
    if verb == EXPONENTIAL:
        return np.exp2(x)
    if verb in (SINE, COSINE):
        turned = x * 2.0 * math.pi
        return math.sin(turned) if verb == SINE else math.cos(turned)
    if x < 0.0 or math.isnan(x):
        return math.nan
    if verb == ROOT:
        return math.sqrt(x)
    if verb == RECIPROCAL_ROOT:
        return 1.0 / math.sqrt(x) if x > 0.0 else math.inf
    if verb == LOGARITHM:
        return math.log2(x) if x > 0.0 else -math.inf
    return 0.0
