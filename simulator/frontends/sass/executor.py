"""The interpreter: runs the warps of a CTA until all have exited or something needs attention.

``run_cta`` executes each warp to its next CTA barrier or exit, in order. It stops early with a reason
(``warp_state``): a full log, a difference between CTAs to be looked at, or an error; ``cta.attention_*`` then says where,
and calling it again goes on from there.
"""

from __future__ import annotations

import numpy as np

from simulator.frontends.sass.execution_log import (
    NO_EVENT,
    SEGMENT_END,
    SEGMENT_START,
    SEGMENT_WARP,
    append,
    append_run,
)
from simulator.frontends.sass.semantics.arithmetic import arithmetic
from simulator.frontends.sass.semantics.barrier import release_after_exit
from simulator.frontends.sass.semantics.codes import ASYNC, CONTROL, MEMORY, OPAQUE, SKIP, TRUE_PREDICATE
from simulator.frontends.sass.semantics.compiled import internal, uncounted
from simulator.frontends.sass.semantics.control import resolved
from simulator.frontends.sass.semantics.control_flow import lowest_runnable, next_merge, take_fragment
from simulator.frontends.sass.semantics.propagation import row_differs
from simulator.frontends.sass.semantics.sources import lanes_in
from simulator.frontends.sass.warp_state import (
    COMPLETE,
    DEADLOCK,
    DIFFERS,
    EVENTS_FULL,
    FINISHED,
    LIMIT,
    LOG_FULL,
    PATTERNS_FULL,
    READY,
)

LOG_MARGIN = 4
EVENT_MARGIN = 4


@uncounted
def run_cta(units, rows, ctas, warps, memory, log, differences):
    """Run all warps of the CTA in ``ctas[0]`` (its limits and launch values are set). Returns the reason to stop,
    COMPLETE when all warps have exited."""
    cta = ctas[0]
    first = cta.next_warp
    while True:
        ran, finished = False, 0
        for position in range(len(warps)):
            warp = warps[(first + position) % len(warps)]
            if warp.status == READY:
                ran = True
                start = cta.n_logged
                reason = run_warp(units, rows, cta, warps, warp, memory, log, differences)
                note_segment(cta, log, warp.number, start)
                if reason != COMPLETE:
                    cta.reason = reason
                    cta.attention_warp = cta.next_warp = warp.number
                    return reason
                if warp.status == FINISHED:
                    release_after_exit(cta, warps)
            finished += 1 if warp.status == FINISHED else 0
        if finished == len(warps):
            return COMPLETE
        first = 0
        if not ran:
            cta.reason = DEADLOCK
            return DEADLOCK


@internal
def note_segment(cta, log, warp, start):
    """Which log entries belong to a warp."""
    if cta.n_logged > start:
        segment = cta.n_segments
        log.segment[segment, SEGMENT_WARP] = warp
        log.segment[segment, SEGMENT_START] = start
        log.segment[segment, SEGMENT_END] = cta.n_logged
        cta.n_segments = segment + 1


@internal
def room(cta, log, run):
    """Is there room to log ``run`` rows and the events and patterns of one?"""
    if cta.n_logged + run + LOG_MARGIN > len(log.entry) or cta.n_segments + 1 >= len(log.segment):
        return LOG_FULL
    if cta.n_events + EVENT_MARGIN > len(log.events):
        return EVENTS_FULL
    if cta.n_patterns + EVENT_MARGIN > len(log.patterns):
        return PATTERNS_FULL
    return LIMIT if cta.n_logged > cta.limit else COMPLETE


@internal
def run_warp(units, rows, cta, warps, warp, memory, log, differences):
    """Run one warp until a CTA barrier, its exit, or a reason to stop; where it stands is saved in the warp."""
    pc, mask = warp.pc, warp.mask
    merge, lanes = next_merge(warp), lanes_in(mask)
    while True:
        if pc == merge:
            mask |= take_fragment(warp, lowest_runnable(warp))
            merge, lanes = next_merge(warp), lanes_in(mask)
            continue
        row = rows[pc]
        run = min(row.run, merge - pc)
        reason = room(cta, log, run)
        if reason != COMPLETE:
            return stop(cta, warp, pc, mask, mask, reason)
        if run > 0:
            append_run(cta, log, pc, run, lanes)
            pc += run
            continue
        active, active_lanes, doubt = mask, lanes, np.int64(0)
        if row.guard != TRUE_PREDICATE or row.guard_invert:
            doubt = warp.predicate_unknown[row.guard] & mask
            active = mask & ((warp.predicate[row.guard] ^ row.guard_invert) | doubt)
            active_lanes = lanes_in(active)
        if row.family == CONTROL:
            reason = units.control_row(rows, cta, warps, warp, log, row, pc, mask, active, doubt)
            if reason != COMPLETE:
                return stop(cta, warp, pc, mask, active, reason)
            if warp.status != READY:
                return COMPLETE
            pc, mask = warp.pc, warp.mask
            merge, lanes = next_merge(warp), lanes_in(mask)
            continue
        reason, event = data_row(units, cta, warp, memory, log, differences, row, pc, active)
        if reason != COMPLETE:
            return stop(cta, warp, pc, mask, active, reason)
        append(cta, log, pc, active_lanes, event)
        pc += 1


@internal
def stop(cta, warp, pc, mask, active, reason):
    """Save where a warp stands; returns the reason."""
    warp.pc, warp.mask = pc, mask
    cta.attention_row, cta.attention_mask = pc, active
    return reason


@internal
def data_row(units, cta, warp, memory, log, differences, row, pc, active):
    """Execute a row that does not change the program counter. Returns (reason, event number or NO_EVENT)."""
    if row.family < MEMORY or row.family == OPAQUE:
        if row.action == SKIP:
            return COMPLETE, NO_EVENT
        differs = cta.tracks and not resolved(cta, pc) and row_differs(warp, row)
        if differs and warp.predicate_difference[row.guard]:
            return DIFFERS, NO_EVENT
        if active == 0 or arithmetic(units, cta, warp, row, differences, active, differs):
            return COMPLETE, NO_EVENT
        return DIFFERS, NO_EVENT
    handle = np.int64(0)
    if cta.tracks:
        if resolved(cta, pc):
            handle = cta.override_handle
        else:
            handle = units.access_difference(cta, warp, memory, row, differences, active)
            if handle < 0:
                return DIFFERS, NO_EVENT
    if active == 0:
        return COMPLETE, NO_EVENT
    if row.family == ASYNC:
        return units.asynchronous(cta, warp, log, row, active, handle)
    copied = warp.predicate[row.p] ^ row.p_invert
    return units.access(cta, warp, memory, log, row, active, copied, handle)
