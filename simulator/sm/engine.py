"""The SM engine: issues instructions in time order and lets each act on the machine.

Event driven: a resource is a busy-until stamp, a scoreboard a completion stamp; when a warp issues, the time
of its next issue is already known, unless it waits for another warp or for a copy.  Simulated SMs advance
in turns of one quantum, far shorter than an L2 latency, over one shared memory system.
``x``: the machine's heap; ``k``: the packed program.
"""

from __future__ import annotations

from simulator.compiled import compiled
from simulator.isa.effects import (
    BARRIER,
    BRANCH,
    BRANCH_RESOLVING,
    CLUSTER_BARRIER,
    FIXED,
    LONG_SCOREBOARD,
    NO_BOARD,
    NO_EFFECT,
    SHORT_SCOREBOARD,
)
from simulator.sm.actions import act
from simulator.sm.barrier import meet_barrier, meet_cluster
from simulator.sm.dispatch import finish_warp
from simulator.sm.inputs import (
    CYCLE,
    I_EFFECT,
    I_IDLE_PASS,
    I_KIND,
    I_LATENCY,
    I_READ,
    I_REASON,
    I_STALL,
    I_WRITE,
    STATIC_SIZE,
    active_lanes,
    event_row,
    static_row,
)
from simulator.sm.layout import (
    LOG_WHY,
    N_SMS,
    N_SUBPARTITIONS,
    NEVER,
    P_SMSPS,
    QUANTUM,
    S_CANDIDATE,
    S_CANDIDATE_AT,
    S_DIRTY,
    S_LAST,
    S_NOW,
    SCOREBOARD_RELEASE,
    SM_SIZE,
    SMS,
    SMSP_SIZE,
    TAKEN_BRANCH,
    W_END,
    W_HELD,
    W_ISSUED,
    W_NEXT,
    W_REASON,
    W_STALLED,
    WHY,
)
from simulator.sm.pipes import execute
from simulator.sm.scheduler import choose_warp
from simulator.sm.scoreboard import hold, mark_scoreboard, prepare
from simulator.sm.stalls import account
from simulator.sm.tensor_core import pass_idle


@compiled
def issue(x, k, sm, smsp, w, at):
    """Warp ``w`` issues its next instruction at ``at``."""
    i = x[w + W_NEXT]
    row = static_row(k, i)
    account(x, k, sm, smsp, w, row, at)
    x[w + W_ISSUED] = at
    x[w + W_HELD] = 0
    x[smsp + S_NOW] = at + CYCLE
    x[smsp + S_LAST] = w
    x[smsp + S_DIRTY] = 1
    effect = NO_EFFECT
    if active_lanes(k, i) > 0:
        effect = k[row + I_EFFECT]
        why = k[row + I_REASON]
        done = at + k[row + I_LATENCY]
        release = at + x[SCOREBOARD_RELEASE]
        if effect == FIXED:
            execute(x, k, row, smsp, sm, at)
        elif effect > FIXED:
            done, release = act(x, k, sm, smsp, w, row, event_row(k, i), at)
            why |= x[WHY]
        if k[row + I_WRITE] != NO_BOARD:
            mark_scoreboard(x, w, k[row + I_WRITE], done, why)
        if k[row + I_READ] != NO_BOARD:
            is_long = k[row + I_REASON] == LONG_SCOREBOARD  # its operands leave through the L1's queue
            mark_scoreboard(x, w, k[row + I_READ], release, LONG_SCOREBOARD if is_long else SHORT_SCOREBOARD)
    elif k[row + I_IDLE_PASS]:
        pass_idle(x, sm, at)
    x[w + W_NEXT] = i + 1
    if i + 1 == x[w + W_END]:
        finish_warp(x, k, w, at)
        return
    x[w + W_STALLED] = at + k[row + I_STALL]
    if effect == BRANCH and static_row(k, i + 1) != row + STATIC_SIZE:
        hold(x, w, at + x[TAKEN_BRANCH], BRANCH_RESOLVING)
    prepare(x, k, w)
    if effect == BARRIER:
        meet_barrier(x, k, w, event_row(k, i), k[row + I_KIND] > 0, at)
    elif effect == CLUSTER_BARRIER:
        meet_cluster(x, k, w, k[row + I_KIND] > 0, at)


@compiled
def advance(x, k, sm, until, log, n_issued):
    """Issue on one SM everything before ``until``; returns (time of its next issue, instructions issued so far).

    ``log`` int64 [n, 3 or 4]: the first n issues as (time, warp record, stream entry, why word of the last wait)."""
    first = x[sm + P_SMSPS]
    last = first + N_SUBPARTITIONS * x[SMSP_SIZE]
    while True:
        best = NEVER
        chosen = -1
        for smsp in range(first, last, x[SMSP_SIZE]):
            if x[smsp + S_DIRTY]:
                choose_warp(x, smsp)
            if x[smsp + S_CANDIDATE_AT] < best:
                best = x[smsp + S_CANDIDATE_AT]
                chosen = smsp
        if best >= until:
            return best, n_issued
        w = x[chosen + S_CANDIDATE]
        if n_issued < log.shape[0]:
            log[n_issued, 0] = best
            log[n_issued, 1] = w
            log[n_issued, 2] = x[w + W_NEXT]
            if log.shape[1] > LOG_WHY:
                log[n_issued, LOG_WHY] = x[w + W_REASON]
        n_issued += 1
        issue(x, k, sm, chosen, w, best)


@compiled
def run(x, k, limit, log):
    """Advance all SMs until nothing is left to issue or ``limit`` instructions were issued.

    Returns (instructions issued, time of the next issue: NEVER when there is none)."""
    n_issued = 0
    until = 0
    soonest = 0
    while n_issued < limit:
        soonest = NEVER
        for sm in range(x[SMS], x[SMS] + x[N_SMS] * x[SM_SIZE], x[SM_SIZE]):
            upcoming, n_issued = advance(x, k, sm, until, log, n_issued)
            soonest = min(soonest, upcoming)
        if soonest == NEVER:
            break
        until = max(until, soonest) + x[QUANTUM]
    return n_issued, soonest
