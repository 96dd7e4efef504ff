"""What a CTA's execution leaves behind: executed rows, and the operands of memory, barrier and tensor instructions.

All warps append to one log; ``segment`` says which entries belong to which warp. Lane patterns are interned: equal
offset tables have one number. Fill counts are in the CTA record.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from simulator.frontends.sass.semantics.codes import LANES, WORD
from simulator.frontends.sass.semantics.compiled import internal
from simulator.frontends.sass.semantics.records import EVENT, records

NO_EVENT = -1
SEGMENT_WARP, SEGMENT_START, SEGMENT_END = range(3)
GLOBAL_ORIGIN = 128
SHARED_ORIGIN = 1024

# An entry packs the row (20 bits), the number of active lanes (6) and the event + 1.
ROW_BITS, ACTIVE_BITS = 20, 6
EVENT_SHIFT = ROW_BITS + ACTIVE_BITS
_HASH_FACTOR = 0x9E3779B1
_HASH_START = 0x811C9DC5


class Log(NamedTuple):
    """``entry`` int64 [capacity]; ``segment`` int64 [n, 3]; ``events`` EVENT records; ``patterns`` int32 [n, L]: bytes from
    the origin, -1 inactive; ``slots`` int32: hash table over patterns (power of two, at least twice their capacity)."""

    entry: np.ndarray
    segment: np.ndarray
    events: np.recarray
    patterns: np.ndarray
    slots: np.ndarray


def new_log(entries: int = 1 << 16, events: int = 1 << 13, patterns: int = 1 << 10) -> Log:
    """Empty log with the given capacities (``patterns`` a power of two)."""
    return Log(
        entry=np.zeros(entries, np.int64),
        segment=np.zeros((1 << 10, 3), np.int64),
        events=records(EVENT, events),
        patterns=np.zeros((patterns, LANES), np.int32),
        slots=np.full(4 * patterns, -1, np.int32),
    )


def grow_entries(log: Log) -> Log:
    """Twice the capacity for executed rows and segments."""
    return log._replace(entry=_doubled(log.entry), segment=_doubled(log.segment))


def grow_events(log: Log) -> Log:
    """Twice the capacity for events."""
    return log._replace(events=_doubled(log.events).view(np.recarray))


def grow_patterns(log: Log, n_patterns: int) -> Log:
    """Twice the capacity for patterns, with a rebuilt hash table."""
    grown = log._replace(patterns=_doubled(log.patterns), slots=np.full(2 * len(log.slots), -1, np.int32))
    _rebuild_slots(grown.patterns, grown.slots, n_patterns)
    return grown


def _doubled(array: np.ndarray) -> np.ndarray:
    return np.concatenate([array, np.zeros_like(array)])


def entry_columns(entry: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(row int32, active lanes uint8, event int32 with NO_EVENT) of packed entries."""
    return (
        (entry & ((1 << ROW_BITS) - 1)).astype(np.int32),
        ((entry >> ROW_BITS) & ((1 << ACTIVE_BITS) - 1)).astype(np.uint8),
        ((entry >> EVENT_SHIFT) - 1).astype(np.int32),
    )


def warp_entries(log: Log, n_segments: int, n_warps: int) -> list[np.ndarray]:
    """Packed entries of each warp, in execution order."""
    parts: list[list[np.ndarray]] = [[] for _ in range(n_warps)]
    for warp, start, end in log.segment[:n_segments].tolist():
        parts[warp].append(log.entry[start:end])
    return [np.concatenate(part) if part else np.zeros(0, np.int64) for part in parts]


@internal
def append(cta, log, row, active_lanes, event):
    """Log one executed row; the caller made room."""
    log.entry[cta.n_logged] = row | (active_lanes << ROW_BITS) | ((event + 1) << EVENT_SHIFT)
    cta.n_logged += 1


@internal
def append_run(cta, log, row, length, active_lanes):
    """Log ``length`` consecutive rows without events."""
    at, entry = cta.n_logged, row | (active_lanes << ROW_BITS)
    for k in range(length):
        log.entry[at + k] = entry + k
    cta.n_logged = at + length


@internal
def new_event(cta, log):
    """Append an empty event and return its number; the caller made room."""
    number = cta.n_events
    event = log.events[number]
    event.pattern = event.shared_pattern = event.mbarrier = event.descriptor = -1
    event.address = event.shared_address = event.count = event.parity = event.cta_mask = event.difference = 0
    for k in range(len(event.coordinate)):
        event.coordinate[k] = event.coordinate_difference[k] = 0
    cta.n_events = number + 1
    return number


@internal
def intern_pattern(cta, log, active, origin):
    """Number of the pattern of ``cta.address`` relative to ``origin`` over the active lanes; the caller made room."""
    number = cta.n_patterns
    for lane in range(LANES):
        log.patterns[number, lane] = cta.address[lane] - origin if (active >> lane) & 1 else -1
    slot = _hash(log.patterns, number) & (len(log.slots) - 1)
    while log.slots[slot] >= 0:
        known = log.slots[slot]
        unlike = 0
        for lane in range(LANES):
            unlike |= log.patterns[known, lane] ^ log.patterns[number, lane]
        if unlike == 0:
            return np.int64(known)
        slot = (slot + 1) & (len(log.slots) - 1)
    log.slots[slot] = number
    cta.n_patterns = number + 1
    return number


@internal
def _hash(patterns, number):
    """32-bit hash of an offset table."""
    state = np.int64(_HASH_START)
    for lane in range(LANES):
        state = ((state ^ (np.int64(patterns[number, lane]) & WORD)) * _HASH_FACTOR) & WORD
        state ^= state >> 15
    return state


@njit(cache=True)
def _rebuild_slots(patterns, slots, n_patterns):
    """Insert every pattern into an empty hash table."""
    for number in range(n_patterns):
        slot = _hash(patterns, number) & (len(slots) - 1)
        while slots[slot] >= 0:
            slot = (slot + 1) & (len(slots) - 1)
        slots[slot] = number


@internal
def pattern_origin(addresses, active, alignment):
    """Lowest active address, rounded down to ``alignment``; 0 without active lanes."""
    lowest, found = np.int64(0), False
    for lane in range(LANES):
        if (active >> lane) & 1 and (not found or addresses[lane] < lowest):
            lowest, found = addresses[lane], True
    return lowest // alignment * alignment
