"""Local memory: each 4-byte word of a thread's frame is one line of the warp, cached in the L1."""

from __future__ import annotations

from simulator.compiled import compiled
from simulator.isa.effects import ALL_SECTORS, FILL_BYTES, L1_HIT_SECTORS, L1_READ_SECTORS, LINE_BYTES, SECTORS_PER_LINE
from simulator.memory.l2 import AS_ASKED
from simulator.memory.layout import COUNTER
from simulator.sm.global_memory import drop_l1, fill_l1, is_sampled, leave_sm, probe_l1, request, write_sampled
from simulator.sm.inputs import E_ADDRESS, E_COUNT
from simulator.sm.layout import (
    C_MEMBERS,
    L1_HIT,
    L1_READY,
    N_SMS,
    P_LAST_DELAY,
    P_N_MEMBERS,
    P_NUMBER,
    P_STORE,
    STORE_BYTE,
    W_CTA,
    W_SM,
)

FRAME_SHIFT = 16
"""Lines set aside per warp record: local frames are far below 2**16 words."""
LOCAL_SPACE = 1 << 58
"""First line number of local memory: above any global address."""
WORD_SHIFT = 2


@compiled
def local_line(x, k, w, m, event):
    """Line of the first word of a local access by warp ``w`` on member ``m`` of its SM."""
    chip_sm = m * x[N_SMS] + x[x[w + W_SM] + P_NUMBER]
    return LOCAL_SPACE + (((chip_sm << 24) + w) << FRAME_SHIFT) + (k[event + E_ADDRESS] >> WORD_SHIFT)


@compiled
def read_local(x, k, w, event, at):
    """Load words of the frame (E_COUNT words a lane); returns when they are there."""
    sm = x[w + W_SM]
    done = at + x[L1_HIT]
    for word in range(k[event + E_COUNT]):
        line = local_line(x, k, w, 0, event) + word
        x[COUNTER + L1_READ_SECTORS] += SECTORS_PER_LINE * x[sm + P_N_MEMBERS]
        record = probe_l1(x, sm, line, ALL_SECTORS, at)
        if record >= 0:
            x[COUNTER + L1_HIT_SECTORS] += SECTORS_PER_LINE * x[sm + P_N_MEMBERS]
            done = max(done, x[record + L1_READY] + x[L1_HIT])
            continue
        back = miss_local(x, k, w, sm, event, word, leave_sm(x, sm, SECTORS_PER_LINE, at))
        fill_l1(x, sm, line, ALL_SECTORS, back, at)
        done = max(done, back + x[L1_HIT])
    return done


@compiled
def miss_local(x, k, w, sm, event, word, at):
    """One word's line leaves the SM, for every member; returns when member 0 has it."""
    back = at + x[sm + P_LAST_DELAY]
    for m in range(x[sm + P_N_MEMBERS]):
        if x[x[w + W_CTA] + C_MEMBERS + m] < 0:
            continue
        x[COUNTER + FILL_BYTES] += LINE_BYTES
        own = local_line(x, k, w, m, event) + word
        if not is_sampled(x, own):
            continue
        when = request(x, x[w + W_CTA], m, own, ALL_SECTORS, AS_ASKED, at)
        if m == 0:
            back = when
    return back


@compiled
def write_local(x, k, w, event, at):
    """Store words of the frame: through to the L2, without a place in the L1; returns when they have left the SM.

    (Measured: every word of a spill that is read back comes from the L2.)
    """
    sm = x[w + W_SM]
    sent = at
    for word in range(k[event + E_COUNT]):
        drop_l1(x, sm, local_line(x, k, w, 0, event) + word)
        sent = max(x[sm + P_STORE], at) + LINE_BYTES * x[STORE_BYTE]
        x[sm + P_STORE] = sent
        for m in range(x[sm + P_N_MEMBERS]):
            if x[x[w + W_CTA] + C_MEMBERS + m] >= 0:
                write_sampled(x, sm, m, local_line(x, k, w, m, event) + word, ALL_SECTORS, sent)
    return sent
