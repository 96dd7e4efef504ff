"""Control rows: branches, exits, convergence and CTA barriers. They move the program counter in the warp."""

from __future__ import annotations

import numpy as np

from simulator.frontends.sass.execution_log import NO_EVENT, append
from simulator.frontends.sass.semantics.barrier import arrive
from simulator.frontends.sass.semantics.codes import (
    BARRIER,
    BRANCH,
    BRANCH_DIVERGENT,
    BRANCH_INDIRECT,
    CONVERGENCE_BREAK,
    CONVERGENCE_SET,
    CONVERGENCE_WAIT,
    EXIT,
    TRAP,
    WARP_SYNC,
)
from simulator.frontends.sass.semantics.compiled import internal
from simulator.frontends.sass.semantics.control_flow import (
    branch,
    branch_to_register,
    break_lanes,
    exit_lanes,
    wait_for_lanes,
)
from simulator.frontends.sass.semantics.records import WARP_SYNC_BARRIER
from simulator.frontends.sass.semantics.sources import lanes_in
from simulator.frontends.sass.warp_state import BAD_TARGET, COMPLETE, DIFFERS, TRAPPED, UNKNOWN_BRANCH, UNKNOWN_OPERAND


def control_row(rows, cta, warps, warp, log, row, pc, mask, active, doubt):
    """Execute a CONTROL row and log it. ``doubt``: lanes whose guard is unknown. Returns the reason to stop."""
    if cta.tracks and control_differs(cta, warp, row, pc):
        return DIFFERS
    if doubt:
        return UNKNOWN_BRANCH
    if row.verb == BRANCH:
        return branch_row(cta, warp, log, row, pc, mask, active)
    if row.verb == BARRIER:
        return barrier_row(cta, warps, warp, log, row, pc, mask, active)
    if row.verb == TRAP and active:
        return TRAPPED
    if row.verb in (BRANCH_INDIRECT, WARP_SYNC, BRANCH_DIVERGENT) and warp.unknown[row.a] & active:
        return UNKNOWN_BRANCH
    append(cta, log, pc, lanes_in(active), NO_EVENT)
    if row.verb == EXIT and active:
        exit_lanes(warp, pc, mask, active)
    elif row.verb == CONVERGENCE_WAIT:
        wait_for_lanes(warp, pc, mask, row.x0)
    elif row.verb == WARP_SYNC:
        warp.convergence[WARP_SYNC_BARRIER] = np.int64(warp.values[row.a, 0]) & ~warp.exited
        wait_for_lanes(warp, pc, mask, WARP_SYNC_BARRIER)
    elif row.verb == BRANCH_DIVERGENT:
        missing = np.int64(warp.values[row.a, 0]) & ~warp.exited & ~mask
        branch(warp, pc, mask, active if missing else np.int64(0), row.target)
    elif row.verb == BRANCH_INDIRECT:
        inside = branch_to_register(warp, pc, mask, active, row.a, row.x0, cta.code_base, len(rows))
        return COMPLETE if inside else BAD_TARGET
    else:
        if row.verb == CONVERGENCE_SET:
            warp.convergence[row.x0] = active
        elif row.verb == CONVERGENCE_BREAK:
            break_lanes(warp, row.x0, active)
        warp.pc, warp.mask = pc + 1, mask
    return COMPLETE


@internal
def resolved(cta, pc):
    """Was the difference at this row just looked at? Asks once."""
    if cta.override_row != pc:
        return False
    cta.override_row = -1
    return True


@internal
def control_differs(cta, warp, row, pc):
    """Does a control row depend on something that differs between CTAs (and was not looked at yet)?"""
    if resolved(cta, pc):
        return False
    d, dp = warp.difference, warp.predicate_difference
    return (dp[row.guard] | dp[row.p] | d[row.a] | d[row.b]) != 0


@internal
def branch_row(cta, warp, log, row, pc, mask, active):
    """BRA: guard and predicate operand p; x0: any active lane takes all of them along."""
    if warp.predicate_unknown[row.p] & active:
        return UNKNOWN_BRANCH
    taken = active & (warp.predicate[row.p] ^ row.p_invert)
    append(cta, log, pc, lanes_in(active), NO_EVENT)
    if row.x0 and taken:
        taken = mask
    branch(warp, pc, mask, taken, row.target)
    return COMPLETE


@internal
def barrier_row(cta, warps, warp, log, row, pc, mask, active):
    """BAR: one arrival of the warp."""
    event = np.int64(NO_EVENT)
    if active:
        if (warp.unknown[row.a] | warp.unknown[row.b]) & active:
            return UNKNOWN_OPERAND
        warp.pc, warp.mask = pc + 1, mask
        event = arrive(cta, warps, warp, log, row, active)
        if event < 0:
            return UNKNOWN_OPERAND
    warp.pc, warp.mask = pc + 1, mask
    append(cta, log, pc, lanes_in(active), event)
    return COMPLETE
