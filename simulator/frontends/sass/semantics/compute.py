"""Register-to-register rows: dispatch to the verb."""

from __future__ import annotations

import numpy as np

from simulator.frontends.sass.semantics.codes import (
    CONSTANT_LOAD,
    CONVERSION,
    CROSS_LANE,
    FLOAT,
    INTEGER,
    LANES,
    LOGIC,
    PREDICATES,
)
from simulator.frontends.sass.semantics.compiled import internal
from simulator.frontends.sass.semantics.conversion import conversion
from simulator.frontends.sass.semantics.cross_lane import cross_lane
from simulator.frontends.sass.semantics.float32 import float32
from simulator.frontends.sass.semantics.integer import integer
from simulator.frontends.sass.semantics.predicate import predicates
from simulator.frontends.sass.semantics.shift_logic import logic


def compute(cta, warp, row, active):
    """Results of a row into scratch rows; returns the two predicate results. A unit."""
    masks, values, out = warp.predicate, warp.values, cta.scratch
    p, q = masks[row.p] ^ row.p_invert, masks[row.q] ^ row.q_invert
    if row.family == INTEGER:
        return integer(values, row, p, q, out)
    if row.family == LOGIC:
        return logic(values, row, p, out)
    if row.family == PREDICATES:
        return predicates(values, masks, row, p, q, masks[row.s] ^ row.s_invert, out)
    if row.family == CROSS_LANE:
        return cross_lane(values, row, p, q, active, out)
    if row.family == FLOAT:
        return float32(values, warp.floats, row, p, out)
    if row.family == CONVERSION:
        return conversion(values, warp.floats, row, out)
    if row.family == CONSTANT_LOAD:
        constant_load(cta, values, row, out)
    return np.int64(0), np.int64(0)


@internal
def constant_load(cta, values, row, out):
    """LDC with a register index: x1 bank, x0 offset, x2 bytes of each of the words; zero outside the bank."""
    size, start = cta.bank_size[row.x1], cta.bank_start[row.x1]
    for k in range(row.n_dest):
        for lane in range(LANES):
            at = np.int64(values[row.a, lane]) + np.int64(values[row.b, lane]) + row.x0 + 4 * k
            word = np.int64(0)
            for byte in range(row.x2):
                if 0 <= at + byte < size:
                    word |= np.int64(cta.banks[start + at + byte]) << (8 * byte)
            values[out + k, lane] = word
