"""Global accesses of an SM: L1, miss path, requests to the shared memory system.

A simulated SM stands for several chip SMs; each access is also requested for them, with their own CTAs'
addresses, so that the L2 sees the whole chip's traffic.  The order among them rotates.
"""

from __future__ import annotations

from numba import njit

from simulator.isa.effects import (
    ATOMIC_SECTORS,
    FILL_BYTES,
    L1_HIT_SECTORS,
    L1_READ_SECTORS,
    SERVED_COALESCED,
)
from simulator.memory.calendar import reserve
from simulator.memory.l2 import read_line, scatter, sectors_in, write_line
from simulator.memory.layout import (
    ADDRESS_SLOTS,
    ADDRESSES,
    ATOMIC,
    ATOMIC_SAME_ADDRESS,
    ATOMIC_SECTOR,
    COUNTER,
    L2_READ,
    L2_SECTOR,
    NEAR,
    SAMPLE_SHIFT,
)
from simulator.sm.inputs import (
    E_ADDRESS,
    E_COUNT,
    E_PATTERN,
    K_LINES,
    K_N_SLOTS,
    K_SLOTS,
    K_VARIANTS,
    LINE_BYTES,
    base_of,
)
from simulator.sm.layout import (
    C_MEMBERS,
    C_SM,
    FILL_BYTE,
    L1_HIT,
    L1_LINE,
    L1_LINE_SIZE,
    L1_MISS,
    L1_READY,
    L1_SETS,
    L1_USED,
    L1_VALID,
    L1_WAYS,
    P_FILL,
    P_L1,
    P_LAST_DELAY,
    P_LAST_SERVED,
    P_MEMBERS,
    P_MISS,
    P_N_MEMBERS,
    P_ROTATION,
    P_STORE,
    P_WRITE_ACCEPTED,
    STORE_BYTE,
)

LINE_SHIFT = 7
SECTOR_SHIFT = 5
MASK_BITS = 8


@njit(cache=True)
def origin_of(k, event, cta):
    """Global address of an event's pattern origin for one CTA."""
    return k[event + E_ADDRESS] + base_of(k, event, 0, cta)


@njit(cache=True)
def lines_of(k, event, origin):
    """Entries of the line table that an access at ``origin`` touches: (first, one past last)."""
    slot = k[k[K_SLOTS] + (origin & (LINE_BYTES - 1))]
    variant = k[K_VARIANTS] + k[event + E_PATTERN] * k[K_N_SLOTS] + slot
    return k[variant], k[variant + 1]


@njit(cache=True)
def line_and_mask(k, entry, origin):
    """Line number and sector mask of a line-table entry for an access at ``origin``."""
    packed = k[k[K_LINES] + entry]
    return (origin >> LINE_SHIFT) + (packed >> MASK_BITS), packed & ((1 << MASK_BITS) - 1)


@njit(cache=True)
def is_sampled(x, line):
    """Whether a line is followed by address; the others take the fate of the last one that was."""
    shift = x[SAMPLE_SHIFT]
    return shift == 0 or (scatter(line) >> 52) & ((1 << shift) - 1) == 0


@njit(cache=True)
def request(x, sm, m, line, mask, at):
    """Read one line from L2 or beyond for member ``m``: (where it was served, when it is at the SM)."""
    if is_sampled(x, line):
        member = sm + P_MEMBERS + 2 * m
        served, back = read_line(x, line, mask, x[member], x[member + 1], at)
        x[sm + P_LAST_SERVED] = served
        x[sm + P_LAST_DELAY] = back - at
        return served, back
    return x[sm + P_LAST_SERVED], at + x[sm + P_LAST_DELAY]


@njit(cache=True)
def l1_set(x, sm, line):
    """Offset of the L1 set of a line."""
    return x[sm + P_L1] + (line ^ (line >> LINE_SHIFT)) % x[L1_SETS] * x[L1_WAYS] * L1_LINE_SIZE


@njit(cache=True)
def probe_l1(x, sm, line, mask, at):
    """L1 look-up: record of the line when all its sectors are there, else -1."""
    first = l1_set(x, sm, line)
    for record in range(first, first + x[L1_WAYS] * L1_LINE_SIZE, L1_LINE_SIZE):
        if x[record + L1_LINE] == line and x[record + L1_VALID] & mask == mask:
            x[record + L1_USED] = at
            return record
    return -1


@njit(cache=True)
def fill_l1(x, sm, line, mask, ready, at):
    """Put sectors into the L1, evicting the least recently used line of the set."""
    first = l1_set(x, sm, line)
    victim = first
    for record in range(first, first + x[L1_WAYS] * L1_LINE_SIZE, L1_LINE_SIZE):
        if x[record + L1_LINE] == line:
            victim = record
            break
        if x[record + L1_USED] < x[victim + L1_USED]:
            victim = record
    if x[victim + L1_LINE] != line:
        x[victim + L1_LINE] = line
        x[victim + L1_VALID] = 0
    x[victim + L1_VALID] |= mask
    x[victim + L1_READY] = ready
    x[victim + L1_USED] = at


@njit(cache=True)
def leave_sm(x, sm, n_sectors, at):
    """Take the miss path and the fill port for one line; returns when the request leaves the SM."""
    x[sm + P_MISS] = max(x[sm + P_MISS], at) + x[L1_MISS]
    x[sm + P_FILL] = max(x[sm + P_FILL], at) + (n_sectors << SECTOR_SHIFT) * x[FILL_BYTE]
    return max(x[sm + P_MISS], x[sm + P_FILL])


@njit(cache=True)
def share_l2(x, n_sectors, at, back):
    """Take L2 bandwidth for sectors requested at ``at``; data expected ``back`` comes no earlier than served."""
    if n_sectors == 0:
        return back
    return max(back, reserve(x, L2_READ, at, n_sectors * x[L2_SECTOR]) + x[NEAR])


@njit(cache=True)
def read_global(x, k, c, event, at, is_cached):
    """All lines of a load: returns when the last sector is there. ``is_cached``: whether the L1 is used."""
    sm = x[c + C_SM]
    origin = origin_of(k, event, x[c + C_MEMBERS])
    first, last = lines_of(k, event, origin)
    done = at + x[L1_HIT]
    for entry in range(first, last):
        line, mask = line_and_mask(k, entry, origin)
        n = sectors_in(mask)
        x[COUNTER + L1_READ_SECTORS] += n * x[sm + P_N_MEMBERS]
        record = probe_l1(x, sm, line, mask, at) if is_cached else -1
        if record >= 0:
            x[COUNTER + L1_HIT_SECTORS] += n * x[sm + P_N_MEMBERS]
            done = max(done, x[record + L1_READY] + x[L1_HIT])
            continue
        back = miss(x, k, c, sm, event, entry - first, line, mask, leave_sm(x, sm, n, at))
        if is_cached:
            fill_l1(x, sm, line, mask, back, at)
        done = max(done, back + x[L1_HIT])
    return done


@njit(cache=True)
def miss(x, k, c, sm, event, nth, line, mask, at):
    """The ``nth`` line of an access leaves the SM, for every member; returns when member 0 has it."""
    n = sectors_in(mask)
    n_members = x[sm + P_N_MEMBERS]
    rotation = x[sm + P_ROTATION]
    x[sm + P_ROTATION] = rotation + 1
    n_reads = 0
    back = at
    for turn in range(n_members):
        m = (turn + rotation) % n_members
        cta = x[c + C_MEMBERS + m]
        if cta < 0:
            continue
        x[COUNTER + FILL_BYTES] += n << SECTOR_SHIFT
        own = line
        if m > 0:
            origin = origin_of(k, event, cta)
            first, last = lines_of(k, event, origin)
            if first + nth >= last:
                continue
            own, _ = line_and_mask(k, first + nth, origin)
        served, when = request(x, sm, m, own, mask, at)
        if served != SERVED_COALESCED:
            n_reads += n
        if m == 0:
            back = when
    return share_l2(x, n_reads, at, back)


@njit(cache=True)
def write_sampled(x, sm, line, mask, at):
    """Write one line to the L2 if it is followed; the SM notes when the L2 has taken it."""
    if is_sampled(x, line):
        x[sm + P_WRITE_ACCEPTED] = max(x[sm + P_WRITE_ACCEPTED], write_line(x, line, mask, at))


@njit(cache=True)
def write_global(x, k, c, event, at):
    """All lines of a store, for every member; returns when the SM's store port has sent it."""
    sm = x[c + C_SM]
    sent = at
    for m in range(x[sm + P_N_MEMBERS]):
        cta = x[c + C_MEMBERS + m]
        if cta < 0:
            continue
        origin = origin_of(k, event, cta)
        first, last = lines_of(k, event, origin)
        for entry in range(first, last):
            line, mask = line_and_mask(k, entry, origin)
            if m == 0:
                sent = max(x[sm + P_STORE], at) + (sectors_in(mask) << SECTOR_SHIFT) * x[STORE_BYTE]
                x[sm + P_STORE] = sent
            write_sampled(x, sm, line, mask, sent)
    return sent


@njit(cache=True)
def update_global(x, k, c, event, at):
    """Atomics and reductions at the L2, for every member; returns when an old value is back at the SM.

    E_COUNT: the largest number of lanes on one address, which the L2 does one after another.
    """
    sm = x[c + C_SM]
    done = at
    for m in range(x[sm + P_N_MEMBERS]):
        cta = x[c + C_MEMBERS + m]
        if cta < 0:
            continue
        origin = origin_of(k, event, cta)
        first, last = lines_of(k, event, origin)
        for entry in range(first, last):
            line, mask = line_and_mask(k, entry, origin)
            n = sectors_in(mask)
            x[COUNTER + ATOMIC_SECTORS] += n
            served = reserve(x, ATOMIC, at, n * x[ATOMIC_SECTOR])
            address = x[ADDRESSES] + (scatter(line) & (x[ADDRESS_SLOTS] - 1))
            served = max(served, x[address]) + k[event + E_COUNT] * x[ATOMIC_SAME_ADDRESS]
            x[address] = served
            write_sampled(x, sm, line, mask, at)
            if m == 0:
                x[sm + P_STORE] = max(x[sm + P_STORE], at) + (n << SECTOR_SHIFT) * x[STORE_BYTE]
                done = max(done, served)
    x[sm + P_WRITE_ACCEPTED] = max(x[sm + P_WRITE_ACCEPTED], done)
    return done + x[NEAR]
