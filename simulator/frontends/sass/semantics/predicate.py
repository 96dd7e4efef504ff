"""Predicate verbs: three-input logic on lane masks, and moves between predicates and registers."""

from __future__ import annotations

import numpy as np

from simulator.frontends.sass.semantics.codes import LANES, PREDICATE_LOGIC3, PREDICATES_TO_REGISTER
from simulator.frontends.sass.semantics.compiled import internal
from simulator.frontends.sass.semantics.shift_logic import logic3_word

FILE_SIZE = 7


@internal
def predicates(values, masks, row, p, q, s, out):
    """Execute a PREDICATES row on the predicate file ``masks``. Returns its two predicate results."""
    verb = row.verb
    if verb == PREDICATE_LOGIC3:
        return logic3_word(p, q, s, row.x0), logic3_word(p, q, s, row.x1)
    if verb == PREDICATES_TO_REGISTER:
        predicates_to_register(values, masks, row.a, row.x0, row.x1, out)
    return 0, 0


@internal
def predicates_to_register(values, masks, kept, selected, shift, out):
    """P2R: bit k of the result is predicate k where ``selected`` has it; other bits come from row ``kept``.
    ``shift``: byte position of the predicate file in the register."""
    for lane in range(LANES):
        word = 0
        for k in range(FILE_SIZE):
            word |= ((masks[k] >> lane) & 1) << k
        values[out, lane] = ((word & selected) << shift) | (np.int64(values[kept, lane]) & ~(selected << shift))


@internal
def register_to_predicates(values, masks, a, selected, shift, active):
    """R2P: predicate k takes bit k of row ``a`` in the active lanes where ``selected`` has it."""
    for k in range(FILE_SIZE):
        if (selected >> k) & 1:
            mask = 0
            for lane in range(LANES):
                mask |= ((np.int64(values[a, lane]) >> (k + shift)) & 1) << lane
            masks[k] = (masks[k] & ~active) | (mask & active)
