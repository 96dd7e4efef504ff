"""Memory verbs: every access becomes an event; data moves only where an address, branch or barrier may need it.

Shared and local memory are functional byte by byte, with unknown marks. Global loads return the contents of buffers
that the launch describes and are unknown otherwise; a global store makes the contents of its buffer unknown.
"""

from __future__ import annotations

import numpy as np

from simulator.frontends.sass.execution_log import (
    GLOBAL_ORIGIN,
    SHARED_ORIGIN,
    intern_pattern,
    new_event,
    pattern_origin,
)
from simulator.frontends.sass.memory_image import overwrite, read_word
from simulator.frontends.sass.semantics.addresses import (
    copy_target_addresses,
    frame_addresses,
    global_addresses,
    is_inside,
    is_uniform,
    shared_addresses,
)
from simulator.frontends.sass.semantics.atomics import shared_atomic
from simulator.frontends.sass.semantics.codes import (
    ASYNC_COPY,
    EXECUTE,
    GENERIC_READ,
    GLOBAL_ATOMIC,
    GLOBAL_READ,
    LANES,
    LOCAL_READ,
    LOCAL_WRITE,
    MARK_UNKNOWN,
    MATRIX_READ,
    MATRIX_WRITE,
    SHARED_ATOMIC,
    SHARED_READ,
    SHARED_WRITE,
    SKIP,
)
from simulator.frontends.sass.semantics.compiled import internal
from simulator.frontends.sass.semantics.local_memory import forget_local, local_read, local_write
from simulator.frontends.sass.semantics.sources import extend
from simulator.frontends.sass.warp_state import BAD_ADDRESS, COMPLETE, UNKNOWN_ADDRESS

MATRIX_ROW_BYTES = 16


def access(cta, warp, memory, log, row, active, copied, handle):
    """Execute a MEMORY row for the active lanes (not empty). ``copied``: lanes whose ASYNC_COPY source is read;
    ``handle``: difference of the address. Returns (reason, event number)."""
    unknown = warp.unknown
    if (unknown[row.a] | unknown[row.a_hi] | unknown[row.b] | unknown[row.b_hi]) & active:
        return UNKNOWN_ADDRESS, -1
    if row.verb in (LOCAL_READ, LOCAL_WRITE):
        return local_access(cta, warp, memory, log, row, active)
    if SHARED_READ <= row.verb <= MATRIX_WRITE:
        return shared_access(cta, warp, log, row, active)
    global_addresses(cta, warp, row)
    event = global_event(cta, log, active if row.verb != ASYNC_COPY else active & copied, handle)
    if row.verb == ASYNC_COPY:
        return async_copy_target(cta, warp, log, row, active, event), event
    if row.verb in (GLOBAL_READ, GENERIC_READ):
        if row.action != SKIP:
            global_read(cta, warp, memory, row, active)
        return COMPLETE, event
    overwrite_lanes(cta, memory, active)
    if row.verb == GLOBAL_ATOMIC:
        mark_unknown(warp, row, active)
    return COMPLETE, event


@internal
def global_event(cta, log, active, handle):
    """Event of a global access over the active lanes."""
    number = new_event(cta, log)
    event = log.events[number]
    event.address = pattern_origin(cta.address, active, GLOBAL_ORIGIN)
    event.pattern = intern_pattern(cta, log, active, event.address)
    event.difference = handle
    return number


@internal
def mark_unknown(warp, row, active):
    """The result registers are not known in the active lanes."""
    for k in range(row.n_dest):
        warp.unknown[row.dest + k] |= active


@internal
def overwrite_lanes(cta, memory, active):
    """Stores to buffers with known contents."""
    if len(memory.start) == 0:
        return
    for lane in range(LANES):
        if (active >> lane) & 1:
            overwrite(memory, cta.address[lane])


@internal
def global_read(cta, warp, memory, row, active):
    """Known contents into the result registers. x1 bytes a lane; x2: sub-word values are sign extended."""
    if row.action != EXECUTE or len(memory.start) == 0:
        mark_unknown(warp, row, active)
        return
    each = min(row.x1, 4)
    for k in range(row.n_dest):
        target, missing = row.dest + k, np.int64(0)
        for lane in range(LANES):
            if (active >> lane) & 1:
                word, found = read_word(memory, cta.address[lane] + 4 * k, each)
                warp.values[target, lane] = extend(word, each, row.x2)
                missing |= np.int64(0 if found else 1) << lane
        warp.unknown[target] = (warp.unknown[target] & ~active) | missing


@internal
def shared_access(cta, warp, log, row, active):
    """Event and data of an access to the own CTA's shared window."""
    shared_addresses(cta, warp, row)
    if not is_inside(cta, active, row.x1, cta.shared_limit):
        return BAD_ADDRESS, -1
    number = new_event(cta, log)
    event = log.events[number]
    event.shared_address = pattern_origin(cta.address, active, SHARED_ORIGIN)
    event.pattern = intern_pattern(cta, log, active, event.shared_address)
    if row.verb == SHARED_ATOMIC:
        shared_atomic(cta, warp, row, active)
    elif row.action == EXECUTE and row.verb == SHARED_READ:
        shared_read(cta, warp, row, active)
    elif row.action == EXECUTE and row.verb == SHARED_WRITE:
        shared_write(cta, warp, row, active)
    elif row.action == EXECUTE and row.verb == MATRIX_WRITE:
        forget_shared(cta, active, MATRIX_ROW_BYTES)
    elif row.action != SKIP and row.verb in (SHARED_READ, MATRIX_READ):
        mark_unknown(warp, row, active)
    return COMPLETE, number


@internal
def forget_shared(cta, active, n_bytes):
    """Shared bytes whose new contents are not known."""
    for lane in range(LANES):
        if (active >> lane) & 1:
            for k in range(n_bytes):
                cta.shared_unknown[cta.address[lane] + k] = 1


@internal
def shared_read(cta, warp, row, active):
    """Shared bytes into the result registers."""
    each = min(row.x1, 4)
    for k in range(row.n_dest):
        target, missing = row.dest + k, np.int64(0)
        for lane in range(LANES):
            if (active >> lane) & 1 == 0:
                continue
            at, word = cta.address[lane] + 4 * k, np.int64(0)
            for byte in range(each):
                word |= np.int64(cta.shared[at + byte]) << (8 * byte)
                missing |= np.int64(cta.shared_unknown[at + byte]) << lane
            warp.values[target, lane] = extend(word, each, row.x2)
        warp.unknown[target] = (warp.unknown[target] & ~active) | missing


@internal
def shared_write(cta, warp, row, active):
    """x3 registers from row c on into shared bytes (c_hi: the same row for all)."""
    each = min(row.x1, 4)
    for k in range(row.x3):
        origin = row.c if row.c_hi else row.c + k
        for lane in range(LANES):
            if (active >> lane) & 1 == 0:
                continue
            at, word = cta.address[lane] + 4 * k, np.int64(warp.values[origin, lane])
            mark = (warp.unknown[origin] >> lane) & 1
            for byte in range(each):
                cta.shared[at + byte] = (word >> (8 * byte)) & 255
                cta.shared_unknown[at + byte] = mark


@internal
def local_access(cta, warp, memory, log, row, active):
    """Event and data of an access to the thread's frame."""
    frame_addresses(cta, warp, row)
    if not is_inside(cta, active, row.x1, cta.frame_bytes):
        return BAD_ADDRESS, -1
    number = new_event(cta, log)
    event = log.events[number]
    if is_uniform(cta, active):
        event.address = pattern_origin(cta.address, active, 1)
    else:
        event.address = pattern_origin(cta.address, active, GLOBAL_ORIGIN)
        event.pattern = intern_pattern(cta, log, active, event.address)
    if row.action == EXECUTE and row.verb == LOCAL_WRITE:
        local_write(cta, warp, memory, row, active)
    elif row.action == MARK_UNKNOWN and row.verb == LOCAL_WRITE:
        forget_local(cta, warp, memory, row, active)
    elif row.action == EXECUTE:
        local_read(cta, warp, memory, row, active)
    elif row.action != SKIP and row.verb == LOCAL_READ:
        mark_unknown(warp, row, active)
    return COMPLETE, number


@internal
def async_copy_target(cta, warp, log, row, active, number):
    """Shared side of an ASYNC_COPY, x1 bytes a lane."""
    if (warp.unknown[row.c] | warp.unknown[row.c_hi]) & active:
        return UNKNOWN_ADDRESS
    copy_target_addresses(cta, warp, row)
    if not is_inside(cta, active, row.x1, cta.shared_limit):
        return BAD_ADDRESS
    event = log.events[number]
    event.shared_address = pattern_origin(cta.address, active, SHARED_ORIGIN)
    event.shared_pattern = intern_pattern(cta, log, active, event.shared_address)
    if row.action == EXECUTE:
        forget_shared(cta, active, row.x1)
    return COMPLETE
