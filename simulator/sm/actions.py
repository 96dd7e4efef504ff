"""What an issued instruction does: one branch per effect, each calling the room that owns the resource."""

from __future__ import annotations

from simulator.compiled import compiled
from simulator.isa.effects import (
    BULK_COMMIT,
    BULK_LOAD,
    BULK_STORE,
    CAUSE_L2,
    COPY_ARRIVE,
    COPY_COMMIT,
    EVENT_GLOBAL,
    EVENT_LOAD_BOX,
    EVENT_SHARED,
    EVENT_STORE_BOX,
    FENCE,
    GLOBAL_ATOMIC,
    GLOBAL_COPY,
    GLOBAL_LOAD,
    LOCAL_LOAD,
    LOCAL_STORE,
    MBARRIER,
    SHARED_ACCESS,
    SHARED_WAVEFRONTS,
    STALL_FENCE,
    TENSOR_ASYNC,
)
from simulator.memory.calendar import reserve, reserve_share
from simulator.memory.layout import COUNTER
from simulator.sm.async_copy import load_box, store_box
from simulator.sm.barrier import act_on_mbarrier, arrive, mbarrier_of
from simulator.sm.blame import blame_read, blame_shared
from simulator.sm.event_log import note
from simulator.sm.global_memory import lines_of, origin_of, read_global, update_global, write_global
from simulator.sm.inputs import E_COUNT, E_WAVEFRONTS, I_EFFECT, I_INTERVAL, I_KIND, I_LATENCY, I_WRITE
from simulator.sm.layout import (
    BULK_RELEASE,
    BULK_STORE_LATENCY,
    COPY_RING,
    EXPLAINS,
    FILL_WAVEFRONT,
    L1_HIT,
    L1_TAG,
    MBARRIER_PORT,
    OPERAND_RELEASE,
    P_BLOCKED,
    P_N_MEMBERS,
    P_OPERANDS,
    P_PORT,
    P_STORE,
    P_WRITE_ACCEPTED,
    SCOREBOARD_RELEASE,
    STORE_BACKLOG,
    W_COPY_DONE,
    W_COPY_GROUPS,
    W_COPY_LAST,
    W_COPY_WHY,
    W_CTA,
    W_STORE_LAST,
    WAVEFRONT,
    WHY,
)
from simulator.sm.local_memory import read_local, write_local
from simulator.sm.pipes import access_global, access_shared
from simulator.sm.scoreboard import hold
from simulator.sm.tensor_core import issue_mma


@compiled
def act(x, k, sm, smsp, w, row, event, at):
    """Returns (result usable, operands read): the stamps of the write and of the read scoreboard."""
    effect = k[row + I_EFFECT]
    latency = k[row + I_LATENCY]
    done = at + latency
    release = at + x[SCOREBOARD_RELEASE]
    x[WHY] = 0
    if effect == SHARED_ACCESS:
        n = max(1, k[event + E_WAVEFRONTS]) if event >= 0 else 1
        x[COUNTER + SHARED_WAVEFRONTS] += n * x[sm + P_N_MEMBERS]
        last = access_shared(x, smsp, sm, at, n, k[row + I_INTERVAL])
        if x[EXPLAINS]:
            x[WHY] = blame_shared(last - at)
        note(x, EVENT_SHARED, w, at, last, n)
        return last + latency, last + x[OPERAND_RELEASE]
    if effect == TENSOR_ASYNC:
        issue_mma(x, k, w, row, at)
    elif effect == MBARRIER:
        reached = reserve(x, x[sm + P_PORT], at, x[MBARRIER_PORT]) - x[MBARRIER_PORT]
        done = act_on_mbarrier(x, k, w, event, k[row + I_KIND], k[row + I_WRITE], reached + latency)
    elif effect < TENSOR_ASYNC:
        if event < 0:  # a copy whose source predicate is off: shared memory is zero-filled, nothing is requested
            return done, release
        return act_on_memory(x, k, sm, smsp, w, row, event, at)
    elif effect == BULK_LOAD:
        done = load_box(x, k, x[w + W_CTA], event, at)
        note(x, EVENT_LOAD_BOX, w, at, done, mbarrier_of(x, k, x[w + W_CTA], event))
        arrive(x, k, x[w + W_CTA], mbarrier_of(x, k, x[w + W_CTA], event), 0, -k[event + E_COUNT], done)
        release = at + x[BULK_RELEASE]
    elif effect == BULK_STORE:
        done = store_box(x, k, x[w + W_CTA], event, at)
        note(x, EVENT_STORE_BOX, w, at, done, k[event + E_COUNT])
        x[w + W_STORE_LAST] = max(x[w + W_STORE_LAST], done + x[BULK_STORE_LATENCY])
        release = at + x[BULK_RELEASE]
    elif effect in (COPY_COMMIT, BULK_COMMIT):
        group = x[w + W_COPY_GROUPS]
        pending = x[w + W_STORE_LAST] if effect == BULK_COMMIT else x[w + W_COPY_LAST]
        x[w + W_COPY_DONE + (group & (COPY_RING - 1))] = pending
        x[w + W_COPY_GROUPS] = group + 1
    elif effect == COPY_ARRIVE:
        m = mbarrier_of(x, k, x[w + W_CTA], event)
        x[WHY] = x[w + W_COPY_WHY]
        arrive(x, k, x[w + W_CTA], m, k[event + E_COUNT], 0, max(x[w + W_COPY_LAST], at))
    elif effect == FENCE:
        hold(x, w, done, STALL_FENCE)
    return done, release


@compiled
def act_on_memory(x, k, sm, smsp, w, row, event, at):
    """Loads, stores, copies, atomics: through the L1 path, then to the memory system."""
    effect = k[row + I_EFFECT]
    c = x[w + W_CTA]
    if effect in (LOCAL_LOAD, LOCAL_STORE):
        passed = access_global(x, smsp, sm, at, k[event + E_COUNT] * x[WAVEFRONT])
        if effect == LOCAL_LOAD:
            done = read_local(x, k, w, event, passed)
            if x[EXPLAINS]:
                x[WHY] = blame_read(x, done - passed - x[L1_HIT], CAUSE_L2)
        else:
            done = write_local(x, k, w, event, passed)
            press_back(x, sm, passed)
        return done, passed + x[OPERAND_RELEASE]
    first, last = lines_of(k, event, origin_of(x, k, c, 0, event))
    occupancy = max((last - first) * x[L1_TAG], k[event + E_WAVEFRONTS] * x[WAVEFRONT])
    passed = access_global(x, smsp, sm, at, occupancy)
    release = passed + x[OPERAND_RELEASE]
    if effect in (GLOBAL_LOAD, GLOBAL_COPY):  # addresses go along into the queue: the registers are free
        release = at + x[SCOREBOARD_RELEASE]
        done = read_global(x, k, c, event, passed, k[row + I_KIND] > 0)
        if x[EXPLAINS]:
            x[WHY] = blame_read(x, done - passed - x[L1_HIT], CAUSE_L2)
        note(x, EVENT_GLOBAL, w, passed, done, last - first)
        if effect == GLOBAL_LOAD:
            return done, release
        done = reserve_share(x, x[sm + P_OPERANDS], done, k[event + E_WAVEFRONTS] * x[FILL_WAVEFRONT])
        x[w + W_COPY_LAST] = max(x[w + W_COPY_LAST], done)
        x[w + W_COPY_WHY] = x[WHY]
        return done, release
    done = update_global(x, k, c, event, passed) if effect == GLOBAL_ATOMIC else write_global(x, k, c, event, passed)
    press_back(x, sm, passed)
    return done, release


@compiled
def press_back(x, sm, at):
    """A store backlog beyond STORE_BACKLOG holds up the L1 path until it has drained to that."""
    backlog_ends = max(x[sm + P_STORE], x[sm + P_WRITE_ACCEPTED])
    if backlog_ends - at > x[STORE_BACKLOG]:
        x[sm + P_BLOCKED] = max(x[sm + P_BLOCKED], backlog_ends - x[STORE_BACKLOG])
