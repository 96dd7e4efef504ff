"""Divergence and reconvergence of one warp.

A warp is a running part (program counter, lanes) and other *fragments*. The runnable fragment with the lowest counter
runs; fragments that meet at one counter merge. BSSY names the lanes that a convergence barrier collects, BSYNC parks a
fragment until all of them (that have not exited) arrived, BREAK takes lanes out.
"""

from __future__ import annotations

import numpy as np

from simulator.frontends.sass.semantics.codes import LANES
from simulator.frontends.sass.semantics.compiled import internal
from simulator.frontends.sass.semantics.records import N_CONVERGENCE
from simulator.frontends.sass.semantics.sources import signed
from simulator.frontends.sass.warp_state import FINISHED

INSTRUCTION_BYTES = 16
NO_MERGE = 1 << 60


@internal
def push_fragment(warp, pc, mask, wait):
    """Add a fragment that is not running; joins one at the same counter with the same wait."""
    count = warp.n_fragments
    for k in range(count):
        if warp.fragment_pc[k] == pc and warp.fragment_wait[k] == wait:
            warp.fragment_mask[k] |= mask
            return
    warp.fragment_pc[count] = pc
    warp.fragment_mask[count] = mask
    warp.fragment_wait[count] = wait
    warp.n_fragments = count + 1


@internal
def take_fragment(warp, position):
    """Remove a fragment and return its lanes."""
    mask = warp.fragment_mask[position]
    last = warp.n_fragments - 1
    warp.fragment_pc[position] = warp.fragment_pc[last]
    warp.fragment_mask[position] = warp.fragment_mask[last]
    warp.fragment_wait[position] = warp.fragment_wait[last]
    warp.n_fragments = last
    return mask


@internal
def lowest_runnable(warp):
    """Position of the runnable fragment with the lowest counter, -1 if none."""
    found = -1
    for k in range(warp.n_fragments):
        if warp.fragment_wait[k] == 0 and (
            found < 0 or warp.fragment_pc[k] < warp.fragment_pc[found]
        ):
            found = k
    return found


@internal
def next_merge(warp):
    """Lowest counter at which a runnable fragment waits to be met."""
    found = lowest_runnable(warp)
    return warp.fragment_pc[found] if found >= 0 else np.int64(NO_MERGE)


@internal
def resume_lowest(warp):
    """Make the lowest runnable fragment the running one; parked fragments go on when nothing else can (their partners
    never come). Marks the warp finished when no fragment is left."""
    found = lowest_runnable(warp)
    if found < 0:
        if warp.n_fragments == 0:
            warp.status = FINISHED
            warp.mask = 0
            return
        for k in range(warp.n_fragments):
            warp.fragment_wait[k] = 0
        found = lowest_runnable(warp)
    pc = warp.fragment_pc[found]
    mask = take_fragment(warp, found)
    found = lowest_runnable(warp)
    while found >= 0 and warp.fragment_pc[found] == pc:
        mask |= take_fragment(warp, found)
        found = lowest_runnable(warp)
    warp.pc = pc
    warp.mask = mask


@internal
def branch(warp, pc, mask, taken, target):
    """Lanes ``taken`` of ``mask`` go to ``target``, the others to the next row."""
    if warp.n_fragments == 0 and (taken == mask or taken == 0):
        warp.pc = target if taken else pc + 1
        warp.mask = mask
        return
    if taken:
        push_fragment(warp, target, taken, 0)
    if mask & ~taken:
        push_fragment(warp, pc + 1, mask & ~taken, 0)
    resume_lowest(warp)


@internal
def branch_to_register(warp, pc, mask, taken, a, offset, base, n_rows):
    """Each taken lane goes to register a + offset, a byte address; the code begins at ``base``. False when that lies
    outside the code."""
    for lane in range(LANES):
        if (taken >> lane) & 1:
            address = signed(warp.values[a, lane]) + offset - base
            if address < 0 or address >= INSTRUCTION_BYTES * n_rows or address % INSTRUCTION_BYTES:
                return False
            push_fragment(warp, address // INSTRUCTION_BYTES, np.int64(1) << lane, 0)
    if mask & ~taken:
        push_fragment(warp, pc + 1, mask & ~taken, 0)
    resume_lowest(warp)
    return True


@internal
def exit_lanes(warp, pc, mask, leaving):
    """Lanes end; the others go on."""
    warp.exited |= leaving
    staying = mask & ~leaving
    if staying:
        push_fragment(warp, pc + 1, staying, 0)
    release_converged(warp)
    resume_lowest(warp)


@internal
def wait_for_lanes(warp, pc, mask, barrier):
    """Park the running part until the lanes of a convergence barrier have arrived."""
    missing = warp.convergence[barrier] & ~warp.exited & ~mask
    if missing == 0 or warp.n_fragments == 0:
        warp.pc = pc + 1
        warp.mask = mask
        return
    push_fragment(warp, pc + 1, mask, barrier + 1)
    release_converged(warp)
    resume_lowest(warp)


@internal
def break_lanes(warp, barrier, leaving):
    """Lanes leave a convergence barrier."""
    warp.convergence[barrier] &= ~leaving
    release_converged(warp)


@internal
def release_converged(warp):
    """Let parked fragments run whose convergence barrier is complete."""
    for barrier in range(N_CONVERGENCE):
        parked = np.int64(0)
        for k in range(warp.n_fragments):
            if warp.fragment_wait[k] == barrier + 1:
                parked |= warp.fragment_mask[k]
        if parked and warp.convergence[barrier] & ~warp.exited & ~parked == 0:
            for k in range(warp.n_fragments):
                if warp.fragment_wait[k] == barrier + 1:
                    warp.fragment_wait[k] = 0
