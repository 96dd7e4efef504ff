"""Register-to-register rows: unknown lanes, differences, masked write-back."""

from __future__ import annotations

import numpy as np

from simulator.frontends.sass.semantics.codes import (
    CROSS_LANE,
    DIVISION_CHECK,
    ELECT_LANE,
    EXECUTE,
    FLOAT,
    FULL,
    LANES,
    LOGIC,
    PREDICATES,
    PREDICATES_TO_REGISTER,
    REDUCE,
    REGISTER_TO_PREDICATES,
    SELECT,
    SHUFFLE_BUTTERFLY,
    TO_UNIFORM,
)
from simulator.frontends.sass.semantics.compiled import internal
from simulator.frontends.sass.semantics.cross_lane import shuffled_mask
from simulator.frontends.sass.semantics.predicate import FILE_SIZE, register_to_predicates
from simulator.frontends.sass.semantics.sources import first_lane


@internal
def arithmetic(units, cta, warp, row, differences, active, differs):
    """Execute a register-to-register row for the active lanes. ``differs``: a source or result differs between CTAs;
    False (and nothing is changed) when that takes a closer look."""
    written = np.int64(FULL) if row.is_uniform else active
    missing = np.int64(FULL)
    if row.action == EXECUTE:
        missing = unknown_lanes(warp, row, active)
    if row.family == PREDICATES and row.verb == REGISTER_TO_PREDICATES:
        if differs:
            return False
        register_to_predicates(warp.values, warp.predicate, row.a, row.x0, row.x1, active)
        mark_predicates(warp.predicate_unknown, row.x0, missing & active, active)
        return True
    p, q = np.int64(0), np.int64(0)
    if missing & written != written:
        p, q = units.compute(cta, warp, row, active)
        if differs and not units.follow(cta, warp, row, differences, active, 1):
            return False
    elif differs and not units.follow(cta, warp, row, differences, active, 0):
        return False
    commit(cta, warp, row, p, q, missing, written)
    return True


@internal
def commit(cta, warp, row, p, q, missing, written):
    """Scratch results and predicates into their registers, in the written lanes."""
    for k in range(row.n_dest):
        target = row.dest + k
        commit_register(warp.values, cta.scratch + k, target, written)
        warp.unknown[target] = (warp.unknown[target] & ~written) | (missing & written)
    if row.dest_p >= 0:
        commit_predicate(warp, row.dest_p, p, missing, written)
    if row.dest_q >= 0:
        commit_predicate(warp, row.dest_q, q, missing, written)


@internal
def commit_register(values, scratch, target, written):
    """One scratch row into a register."""
    if written == FULL:
        for lane in range(LANES):
            values[target, lane] = values[scratch, lane]
        return
    for lane in range(LANES):
        if (written >> lane) & 1:
            values[target, lane] = values[scratch, lane]


@internal
def commit_predicate(warp, target, result, missing, written):
    """One predicate result."""
    warp.predicate[target] = (warp.predicate[target] & ~written) | (result & written)
    warp.predicate_unknown[target] = (warp.predicate_unknown[target] & ~written) | (missing & written)


@internal
def mark_predicates(masks_unknown, selected, missing, active):
    """Unknown marks of the predicates that R2P writes."""
    for k in range(FILE_SIZE):
        if (selected >> k) & 1:
            masks_unknown[k] = (masks_unknown[k] & ~active) | missing


@internal
def unknown_lanes(warp, row, active):
    """Lanes whose result is not known because a source is not."""
    unknown, masks_unknown = warp.unknown, warp.predicate_unknown
    sources = unknown[row.a] | unknown[row.a_hi] | unknown[row.b] | unknown[row.b_hi] | unknown[row.c]
    sources |= unknown[row.c_hi]
    from_predicates = masks_unknown[row.p] | masks_unknown[row.q] | masks_unknown[row.s]
    if row.family == CROSS_LANE:
        return cross_lane_unknown(warp, row, active, sources, from_predicates)
    if row.family == PREDICATES and row.verb == PREDICATES_TO_REGISTER:
        for k in range(FILE_SIZE):
            if (row.x0 >> k) & 1:
                sources |= masks_unknown[k]
    missing = sources | from_predicates
    if missing == 0:
        return np.int64(0)
    if row.family == LOGIC and row.verb == SELECT:
        p = warp.predicate[row.p] ^ row.p_invert
        return (unknown[row.a] & p) | (unknown[row.b] & ~p) | from_predicates
    if row.family == FLOAT and row.verb == DIVISION_CHECK:
        return np.int64(0)
    return np.int64(FULL) if row.is_uniform else missing


@internal
def cross_lane_unknown(warp, row, active, sources, from_predicates):
    """Unknown results of a row that reads other lanes."""
    if row.verb <= SHUFFLE_BUTTERFLY:
        moved = shuffled_mask(warp.values, row.verb, warp.unknown[row.a], row.b, row.c)
        return moved | warp.unknown[row.b] | warp.unknown[row.c]
    if row.verb == ELECT_LANE:
        return np.int64(0)
    if row.verb == TO_UNIFORM:
        return np.int64(FULL) if (sources >> first_lane(active)) & 1 else np.int64(0)
    if row.verb == REDUCE:
        return np.int64(FULL) if sources & active else np.int64(0)
    return np.int64(FULL) if (sources | from_predicates) & active else np.int64(0)
