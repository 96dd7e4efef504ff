"""One row executed for many CTAs: the leader's state with some sources replaced, point after point."""

from __future__ import annotations

import numpy as np
from numba import njit

from simulator.frontends.sass.memory_image import read_word
from simulator.frontends.sass.semantics.arithmetic import commit_register, unknown_lanes
from simulator.frontends.sass.semantics.codes import EXECUTE, FULL, LANES, PREDICATES, REGISTER_TO_PREDICATES, WORD
from simulator.frontends.sass.semantics.predicate import register_to_predicates
from simulator.frontends.sass.semantics.sources import extend


@njit(cache=True)
def evaluate_row(compute, rows, pc, ctas, leader, bench, sources, source_values, masks, mask_values, path, results, predicates):
    """Execute arithmetic row ``pc`` at K points by the unit ``compute``. ``leader``, ``bench``: WARP records [1];
    ``sources`` int64 [n] value rows
    with ``source_values`` int64 [n, K, L] differences; ``masks`` int64 [m] predicates with ``mask_values`` int64 [m, K]
    differences (exclusive or); ``path``: lanes that reach the row. Fills ``results`` uint32 [K, n_dest, L] and
    ``predicates`` int64 [K, 16] (all predicates after the row)."""
    row, cta, origin, warp = rows[pc], ctas[0], leader[0], bench[0]
    for point in range(len(results)):
        load_sources(row, origin, warp, sources, source_values, masks, mask_values, point)
        active = path & (warp.predicate[row.guard] ^ row.guard_invert)
        if active:
            written = np.int64(FULL) if row.is_uniform else active
            if row.family == PREDICATES and row.verb == REGISTER_TO_PREDICATES:
                register_to_predicates(warp.values, warp.predicate, row.a, row.x0, row.x1, active)
            else:
                p, q = compute(cta, warp, row, active)
                for k in range(row.n_dest):
                    commit_register(warp.values, cta.scratch + k, row.dest + k, written)
                if row.dest_p >= 0:
                    warp.predicate[row.dest_p] = (warp.predicate[row.dest_p] & ~written) | (p & written)
                if row.dest_q >= 0:
                    warp.predicate[row.dest_q] = (warp.predicate[row.dest_q] & ~written) | (q & written)
        for k in range(row.n_dest):
            for lane in range(LANES):
                results[point, k, lane] = warp.values[row.dest + k, lane]
        for k in range(len(warp.predicate)):
            predicates[point, k] = warp.predicate[k]


@njit(cache=True)
def load_sources(row, origin, warp, sources, source_values, masks, mask_values, point):
    """Sources, old results and predicates of one point into the bench warp."""
    for k in range(len(warp.predicate)):
        warp.predicate[k] = origin.predicate[k]
    for k in range(len(masks)):
        warp.predicate[masks[k]] ^= mask_values[k, point]
    for lane in range(LANES):
        warp.values[row.a, lane] = origin.values[row.a, lane]
        warp.values[row.a_hi, lane] = origin.values[row.a_hi, lane]
        warp.values[row.b, lane] = origin.values[row.b, lane]
        warp.values[row.b_hi, lane] = origin.values[row.b_hi, lane]
        warp.values[row.c, lane] = origin.values[row.c, lane]
        warp.values[row.c_hi, lane] = origin.values[row.c_hi, lane]
    for k in range(row.n_dest):
        for lane in range(LANES):
            warp.values[row.dest + k, lane] = origin.values[row.dest + k, lane]
    for k in range(len(sources)):
        for lane in range(LANES):
            word = np.int64(origin.values[sources[k], lane]) + source_values[k, point, lane]
            warp.values[sources[k], lane] = word & WORD


@njit(cache=True)
def read_contents(memory, addresses, active, n_bytes, is_signed, words, known):
    """Known global contents at ``addresses`` int64 [K, L] into ``words`` uint32 [K, n, L]; ``known`` int64 [K]: mask of the
    lanes that all were found for."""
    each = min(n_bytes, 4)
    for point in range(len(addresses)):
        found_in = np.int64(FULL)
        for k in range(words.shape[1]):
            for lane in range(LANES):
                if (active >> lane) & 1:
                    word, found = read_word(memory, addresses[point, lane] + 4 * k, each)
                    words[point, k, lane] = extend(word, each, is_signed)
                    if not found:
                        found_in &= ~(np.int64(1) << lane)
        known[point] = found_in & active


@njit(cache=True)
def result_unknown(rows, pc, warps, number, active):
    """Lanes whose results row ``pc`` leaves unknown in the leader's warp ``number``."""
    row = rows[pc]
    if row.action != EXECUTE:
        return np.int64(FULL)
    return unknown_lanes(warps[number], row, active)
