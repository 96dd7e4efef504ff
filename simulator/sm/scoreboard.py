"""When may a warp's next instruction issue? Stall counts, scoreboards, asynchronous groups, queues.

Scoreboards are completion stamps: because each pipe completes in order, "counter is zero" is "the newest
completion has passed".  A stamp of NEVER belongs to a try_wait whose phase is still open.
``x``: the machine's heap; ``k``: the packed program; ``w``: a warp's record.
"""

from __future__ import annotations

from simulator.compiled import compiled
from simulator.isa.effects import (
    COPY_WAIT,
    LONG_SCOREBOARD,
    MBARRIER,
    MBARRIER_WAIT,
    STALL_MBARRIER,
    STALL_TENSOR,
    TENSOR_ASYNC,
    TENSOR_WAIT,
    UNPIPED,
    WAIT,
)
from simulator.sm.inputs import I_ARGUMENT, I_EFFECT, I_KIND, I_PIPE, I_WAIT, active_lanes, static_row
from simulator.sm.layout import (
    COPY_RING,
    G_COMPLETED,
    G_DONE_AT,
    G_START_AT,
    G_STARTED,
    N_SCOREBOARDS,
    NEVER,
    NOT_BLOCKED,
    ON_MBARRIER,
    ON_TENSOR_GROUP,
    ON_TENSOR_QUEUE,
    RING,
    S_DIRTY,
    TENSOR_QUEUE,
    W_BLOCK,
    W_COPY_DONE,
    W_COPY_GROUPS,
    W_COPY_WHY,
    W_GROUP,
    W_HELD,
    W_HELD_REASON,
    W_NEXT,
    W_PENDING,
    W_PIPE,
    W_READY,
    W_REASON,
    W_SCOREBOARD,
    W_SCOREBOARD_REASON,
    W_SMSP,
    W_STALLED,
    W_TARGET,
    W_TENSOR_GROUPS,
    W_TENSOR_ISSUED,
)


@compiled
def block(x, w, what, target, reason):
    """The warp waits for another agent; whoever resolves ``target`` wakes it."""
    x[w + W_BLOCK] = what
    x[w + W_TARGET] = target
    x[w + W_READY] = NEVER
    x[w + W_REASON] = reason


@compiled
def hold(x, w, at, reason):
    """Whatever warp ``w`` does next starts at ``at`` or later; call before ``prepare``."""
    if at > x[w + W_HELD]:
        x[w + W_HELD] = at
        x[w + W_HELD_REASON] = reason


@compiled
def delay(x, w, at, reason):
    """The prepared warp waits at least until ``at``."""
    if at > x[w + W_READY]:
        x[w + W_READY] = at
        x[w + W_REASON] = reason


@compiled
def mark_scoreboard(x, w, board, at, reason):
    """A scoreboard clears when the newest operation on it completes."""
    if at > x[w + W_SCOREBOARD + board]:
        x[w + W_SCOREBOARD + board] = at
        x[w + W_SCOREBOARD_REASON + board] = reason


@compiled
def prepare(x, k, w):
    """Set when warp ``w`` may issue its next instruction, and why it waits until then."""
    i = x[w + W_NEXT]
    row = static_row(k, i)
    is_active = active_lanes(k, i) > 0
    x[w + W_PIPE] = k[row + I_PIPE] if is_active else UNPIPED
    x[w + W_BLOCK] = NOT_BLOCKED
    at = x[w + W_STALLED]
    reason = WAIT
    mask = k[row + I_WAIT]
    if mask != 0:
        for board in range(N_SCOREBOARDS):
            if mask >> board & 1 and x[w + W_SCOREBOARD + board] > at:
                at = x[w + W_SCOREBOARD + board]
                reason = x[w + W_SCOREBOARD_REASON + board]
    if x[w + W_HELD] > at:
        at = x[w + W_HELD]
        reason = x[w + W_HELD_REASON]
    if at == NEVER:
        block(x, w, ON_MBARRIER, 0, STALL_MBARRIER)
        return
    x[w + W_READY] = at
    x[w + W_REASON] = reason
    if is_active and k[row + I_EFFECT] >= TENSOR_ASYNC:
        prepare_asynchronous(x, k, w, row)


@compiled
def prepare_asynchronous(x, k, w, row):
    """Waits for MMA groups, for room in the MMA queue, for copy groups, for an earlier try_wait."""
    effect = k[row + I_EFFECT]
    g = x[w + W_GROUP]
    if effect == TENSOR_WAIT:
        number = x[w + W_TENSOR_GROUPS] - k[row + I_ARGUMENT]
        if number > x[g + G_COMPLETED]:
            block(x, w, ON_TENSOR_GROUP, number, STALL_TENSOR)
        elif number > 0:
            delay(x, w, x[g + G_DONE_AT + ((number - 1) & (RING - 1))], STALL_TENSOR)
    elif effect == TENSOR_ASYNC:
        number = x[w + W_TENSOR_ISSUED] + 1 - x[TENSOR_QUEUE]
        if number > x[g + G_STARTED]:
            block(x, w, ON_TENSOR_QUEUE, number, STALL_TENSOR)
        elif number > 0:
            delay(x, w, x[g + G_START_AT + ((number - 1) & (RING - 1))], STALL_TENSOR)
    elif effect == COPY_WAIT:
        number = x[w + W_COPY_GROUPS] - k[row + I_ARGUMENT]
        if number > 0:
            delay(x, w, x[w + W_COPY_DONE + ((number - 1) & (COPY_RING - 1))], LONG_SCOREBOARD | x[w + W_COPY_WHY])
    elif effect == MBARRIER and k[row + I_KIND] == MBARRIER_WAIT and x[w + W_PENDING] >= 0:
        block(x, w, ON_MBARRIER, 0, STALL_MBARRIER)


@compiled
def renew(x, k, w):
    """What the warp waited for has happened: prepare it again and let its scheduler see it."""
    prepare(x, k, w)
    x[x[w + W_SMSP] + S_DIRTY] = 1
