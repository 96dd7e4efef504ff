"""Results of rows that were evaluated for all CTAs before: other warps and later iterations often repeat them.

An evaluation depends on the row, the lanes, the differences of its sources and the leader's words; 128 bits of hash over
these name it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from simulator.frontends.sass.semantics.codes import LANES, N_PREDICATES
from simulator.frontends.sass.semantics.compiled import internal
from simulator.frontends.sass.warp_state import REGISTERS

_FIRST_FACTOR = 0x100000001B3
_SECOND_FACTOR = 0x9E3779B97F4A7C15 - (1 << 64)


@internal
def recall(cta, warp, row, differences, active):
    """Set the results' differences from an earlier evaluation. False when there is none; its name is then left in
    ``cta.evaluation``."""
    if row.n_dest > REGISTERS:
        cta.evaluation[0] = cta.evaluation[1] = 0
        return False
    name_evaluation(cta, warp, row, active)
    slot = evaluation_slot(differences.evaluation, cta.evaluation[0], cta.evaluation[1])
    if differences.evaluation[slot, 0] == 0 and differences.evaluation[slot, 1] == 0:
        return False
    for k in range(row.n_dest):
        warp.difference[row.dest + k] = differences.outcome[slot, k]
    if row.dest_p >= 0:
        warp.predicate_difference[row.dest_p] = differences.outcome[slot, REGISTERS]
    if row.dest_q >= 0:
        warp.predicate_difference[row.dest_q] = differences.outcome[slot, REGISTERS + 1]
    return True


@njit(cache=True)
def evaluation_slot(names, first, second):
    """Place of an evaluation in the hash table: its own, or the first empty one."""
    slot = first & (len(names) - 1)
    while (names[slot, 0] or names[slot, 1]) and not (names[slot, 0] == first and names[slot, 1] == second):
        slot = (slot + 1) & (len(names) - 1)
    return slot


@internal
def name_evaluation(cta, warp, row, active):
    """Hash of everything that the results' differences depend on, into ``cta.evaluation``."""
    state = cta.evaluation
    state[0], state[1] = 1, 2
    mix(state, cta.group_version)
    mix(state, row.number)
    mix(state, active)
    mix(state, warp.mask)
    mix(state, warp.exited)
    mix_register(state, cta, warp, row.a)
    mix_register(state, cta, warp, row.a_hi)
    mix_register(state, cta, warp, row.b)
    mix_register(state, cta, warp, row.b_hi)
    mix_register(state, cta, warp, row.c)
    mix_register(state, cta, warp, row.c_hi)
    for k in range(row.n_dest):
        mix_register(state, cta, warp, row.dest + k)
    for k in range(N_PREDICATES):
        mix(state, warp.predicate[k])
        mix(state, warp.predicate_difference[k])


@internal
def mix_register(state, cta, warp, register):
    """Words, unknown lanes and difference of a value row; constants need none of it."""
    if register >= cta.first_constant:
        return
    mix(state, warp.unknown[register])
    mix(state, warp.difference[register])
    for lane in range(LANES):
        mix(state, np.int64(warp.values[register, lane]))


@internal
def mix(state, word):
    """Fold one word into both hashes."""
    state[0] = (state[0] ^ word) * _FIRST_FACTOR
    state[1] = (state[1] + word) * _SECOND_FACTOR
    state[1] ^= state[1] >> 29
