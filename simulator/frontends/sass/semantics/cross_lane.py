"""Verbs that look at several lanes: shuffles, votes, elections, reductions, moves to uniform registers."""

from __future__ import annotations

import numpy as np

from simulator.frontends.sass.semantics.codes import (
    ELECT_LANE,
    FULL,
    LANES,
    MATCH_ALL,
    MATCH_ANY,
    REDUCE,
    REDUCE_ADD,
    REDUCE_AND,
    REDUCE_MAXIMUM,
    REDUCE_MINIMUM,
    REDUCE_OR,
    SHUFFLE_BUTTERFLY,
    SHUFFLE_DOWN,
    SHUFFLE_UP,
    TO_UNIFORM,
    VOTE_ALL,
    VOTE_ANY,
    VOTE_EQUAL,
    WORD,
)
from simulator.frontends.sass.semantics.compiled import internal
from simulator.frontends.sass.semantics.sources import first_lane, signed, source


@internal
def cross_lane(values, row, p, q, active, out):
    """Execute a CROSS_LANE row for the active lanes. Returns its two predicate results."""
    verb = row.verb
    if verb in (VOTE_ANY, VOTE_ALL, VOTE_EQUAL):
        return vote(values, verb, p, active, out)
    if verb == ELECT_LANE:
        lane = first_lane(p & active)
        broadcast(values, lane, out)
        return (1 << lane if p & active else 0), 0
    a = source(values, row.a, row.a_mod, out + 2)
    if verb == TO_UNIFORM:
        return to_uniform(values, a, active, q, row.x0, out), 0
    if verb == REDUCE:
        broadcast(values, reduce(values, a, row.x0, row.x1, active), out)
        return 0, 0
    if verb in (MATCH_ANY, MATCH_ALL):
        return match(values, a, active, verb == MATCH_ALL, out), 0
    return shuffle(values, verb, a, row.b, row.c, out), 0


@internal
def broadcast(values, word, out):
    """The same word in all lanes."""
    for lane in range(LANES):
        values[out, lane] = word


@internal
def vote(values, verb, p, active, out):
    """VOTE: ballot in ``out``; predicate: any, all, or all equal over the active lanes."""
    ballot = p & active
    broadcast(values, ballot, out)
    if verb == VOTE_ANY:
        return (FULL if ballot else 0), 0
    if verb == VOTE_ALL:
        return (FULL if ballot == active else 0), 0
    return (FULL if ballot == 0 or ballot == active else 0), 0


@internal
def to_uniform(values, a, active, previous, accumulates, out):
    """R2UR: the word of the first active lane. The predicate marks lanes that hold another word (X0: or'ed with
    ``previous``): waterfall loops repeat until it is empty."""
    word = values[a, first_lane(active)]
    differs = 0
    for lane in range(LANES):
        differs |= (1 if values[a, lane] != word else 0) << lane
    broadcast(values, word, out)
    return differs | previous if accumulates else differs


@internal
def reduce(values, a, operation, is_signed, active):
    """REDUX over the active lanes."""
    result, is_first = np.int64(0), True
    for lane in range(LANES):
        if (active >> lane) & 1 == 0:
            continue
        word = signed(values[a, lane]) if is_signed else np.int64(values[a, lane])
        if is_first:
            result, is_first = word, False
        elif operation == REDUCE_ADD:
            result += word
        elif operation == REDUCE_MINIMUM:
            result = min(result, word)
        elif operation == REDUCE_MAXIMUM:
            result = max(result, word)
        elif operation == REDUCE_AND:
            result &= word
        elif operation == REDUCE_OR:
            result |= word
        else:
            result ^= word
    return result & WORD


@internal
def match(values, a, active, needs_all, out):
    """MATCH: mask of the active lanes with the lane's word (ANY), or of all when they agree (ALL; predicate)."""
    agree = True
    for lane in range(LANES):
        mask = 0
        for other in range(LANES):
            if (active >> other) & 1 and values[a, other] == values[a, lane]:
                mask |= 1 << other
        if (active >> lane) & 1 and mask != active:
            agree = False
        values[out, lane] = mask
    if needs_all:
        broadcast(values, active if agree else 0, out)
    return FULL if agree else 0


@internal
def source_lane(verb, lane, offset, limits):
    """Lane that a shuffle reads, and whether it lies in the segment (PTX shfl.sync: c packs segment mask and clamp)."""
    clamp, segment = limits & 31, (limits >> 8) & 31
    highest = (lane & segment) | (clamp & ~segment & 31)
    lowest = lane & segment
    if verb == SHUFFLE_UP:
        target = lane - (offset & 31)
        return target, target >= highest
    if verb == SHUFFLE_DOWN:
        target = lane + (offset & 31)
    elif verb == SHUFFLE_BUTTERFLY:
        target = lane ^ (offset & 31)
    else:
        target = lowest | (offset & 31 & ~segment)
    return target, target <= highest


@internal
def shuffle(values, verb, a, b, c, out):
    """SHFL: out[lane] = a[source lane]; a lane outside the segment keeps its own word. Predicate: inside."""
    inside = 0
    for lane in range(LANES):
        target, is_valid = source_lane(verb, lane, np.int64(values[b, lane]), np.int64(values[c, lane]))
        values[out, lane] = values[a, target if is_valid else lane]
        inside |= (1 if is_valid else 0) << lane
    return inside


@internal
def shuffled_mask(values, verb, mask, b, c):
    """A lane mask (unknown lanes of the source) after a shuffle."""
    if mask == 0 or mask == FULL:
        return mask
    result = 0
    for lane in range(LANES):
        target, is_valid = source_lane(verb, lane, np.int64(values[b, lane]), np.int64(values[c, lane]))
        result |= ((mask >> (target if is_valid else lane)) & 1) << lane
    return result
