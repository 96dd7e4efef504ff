"""Global accesses of an SM: L1, miss path, requests to the shared memory system.

A simulated SM stands for several chip SMs; each access is also requested for them, with their own CTAs'
addresses, so that the L2 sees the whole chip's traffic.  The order among them rotates.
"""

from __future__ import annotations

from simulator.compiled import compiled
from simulator.isa.effects import (
    ATOMIC_SECTORS,
    FILL_BYTES,
    L1_HIT_SECTORS,
    L1_READ_SECTORS,
    LINE_BYTES,
    LINE_SHIFT,
    MASK_BITS,
    SECTOR_SHIFT,
)
from simulator.memory.calendar import reserve
from simulator.memory.l2 import AS_ASKED, port_load, read_line, scatter, sectors_in, write_line
from simulator.memory.layout import (
    ADDRESS_SLOTS,
    ADDRESSES,
    ATOMIC_SAME_ADDRESS,
    ATOMIC_SECTOR,
    ATOMIC_SERVER,
    COUNTER,
    NEAR,
    SAMPLE_SHIFT,
)
from simulator.sm.inputs import (
    E_ADDRESS,
    E_BASE,
    E_COUNT,
    E_PATTERN,
    K_LINES,
    K_N_SLOTS,
    K_SLOTS,
    K_VARIANTS,
)
from simulator.sm.layout import (
    C_BASES,
    C_LAG,
    C_LAG_AT,
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
    LAG_GROWTH,
    LAG_LOAD,
    LAG_MOST,
    MEMBER_DOMAIN,
    MEMBER_LAG,
    MEMBER_PARTITION,
    MEMBER_SIZE,
    MISS_QUEUED,
    N_MEMBERS,
    P_FILL,
    P_L1,
    P_LAST_DELAY,
    P_MEMBERS,
    P_MISS,
    P_N_MEMBERS,
    P_ROTATION,
    P_STORE,
    P_WRITE_ACCEPTED,
    SHARE_SHIFT,
    STORE_BYTE,
)


@compiled
def origin_of(x, k, c, m, event):
    """Global address of an event's pattern origin for member ``m`` of CTA slot ``c``."""
    return k[event + E_ADDRESS] + member_base(x, k, c, m, event, 0)


@compiled
def member_base(x, k, c, m, event, d):
    """Difference of the address (d = 0) or of coordinate ``d`` of an event for member ``m``."""
    column = k[event + E_BASE + d]
    return x[x[c + C_BASES] + column * x[N_MEMBERS] + m] if column >= 0 else 0


@compiled
def lines_of(k, event, origin):
    """Entries of the line table that an access at ``origin`` touches: (first, one past last)."""
    slot = k[k[K_SLOTS] + (origin & (LINE_BYTES - 1))]
    variant = k[K_VARIANTS] + k[event + E_PATTERN] * k[K_N_SLOTS] + slot
    return k[variant], k[variant + 1]


@compiled
def line_and_mask(k, entry, origin):
    """Line number and sector mask of a line-table entry for an access at ``origin``."""
    packed = k[k[K_LINES] + entry]
    return (origin >> LINE_SHIFT) + (packed >> MASK_BITS), packed & ((1 << MASK_BITS) - 1)


@compiled
def is_sampled(x, line):
    """Whether a line is followed by address; the others take the fate of the last one that was."""
    shift = x[SAMPLE_SHIFT]
    return shift == 0 or (scatter(line) >> 52) & ((1 << shift) - 1) == 0


@compiled
def request(x, c, m, line, mask, promotion, at):
    """Read one line from L2 or beyond for member ``m`` of a CTA slot: when it is at the SM. ``promotion``: see read_line."""
    sm = x[c + C_SM]
    member = sm + P_MEMBERS + MEMBER_SIZE * m
    when = at + (x[c + C_LAG] * x[member + MEMBER_LAG] >> SHARE_SHIFT)
    delay = read_line(x, line, mask, promotion, x[member + MEMBER_PARTITION], x[member + MEMBER_DOMAIN], when) - when
    x[sm + P_LAST_DELAY] = delay
    return at + delay


@compiled
def grow_lag(x, c, at):
    """SMs that share a saturated port to the L2 drift apart (measured: sync_lag)."""
    passed = at - x[c + C_LAG_AT]
    if passed <= 0:
        return
    x[c + C_LAG_AT] = at
    if port_load(x, x[x[c + C_SM] + P_MEMBERS + MEMBER_DOMAIN]) > x[LAG_LOAD]:
        x[c + C_LAG] = min(x[LAG_MOST], x[c + C_LAG] + x[c + C_LAG] * (passed >> LAG_SHIFT) // (x[LAG_GROWTH] >> LAG_SHIFT))


LAG_SHIFT = 8
"""Keeps products of two times within 63 bits."""


@compiled
def l1_set(x, sm, line):
    """Offset of the L1 set of a line."""
    return x[sm + P_L1] + (line ^ (line >> LINE_SHIFT)) % x[L1_SETS] * x[L1_WAYS] * L1_LINE_SIZE


@compiled
def probe_l1(x, sm, line, mask, at):
    """L1 look-up: record of the line when all its sectors are there, else -1."""
    first = l1_set(x, sm, line)
    for record in range(first, first + x[L1_WAYS] * L1_LINE_SIZE, L1_LINE_SIZE):
        if x[record + L1_LINE] == line and x[record + L1_VALID] & mask == mask:
            x[record + L1_USED] = at
            return record
    return -1


@compiled
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


@compiled
def drop_l1(x, sm, line):
    """Forget a line that the L1 may hold."""
    first = l1_set(x, sm, line)
    for record in range(first, first + x[L1_WAYS] * L1_LINE_SIZE, L1_LINE_SIZE):
        if x[record + L1_LINE] == line:
            x[record + L1_VALID] = 0


@compiled
def leave_sm(x, sm, n_sectors, at):
    """Take the miss path and the fill port for one line; returns when the request leaves the SM."""
    x[sm + P_MISS] = max(x[sm + P_MISS], at) + x[L1_MISS]
    x[sm + P_FILL] = max(x[sm + P_FILL], at) + (n_sectors << SECTOR_SHIFT) * x[FILL_BYTE]
    leaves = max(x[sm + P_MISS], x[sm + P_FILL])
    x[MISS_QUEUED] = leaves - at
    return leaves


@compiled
def read_global(x, k, c, event, at, is_cached):
    """All lines of a load: returns when the last sector is there. ``is_cached``: whether the L1 is used."""
    sm = x[c + C_SM]
    origin = origin_of(x, k, c, 0, event)
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


@compiled
def rotate(x, sm, n_members):
    """Member after which the next request starts: one further each time."""
    m = x[sm + P_ROTATION] + 1
    x[sm + P_ROTATION] = m if m < n_members else 0
    return x[sm + P_ROTATION]


@compiled
def miss(x, k, c, sm, event, nth, line, mask, at):
    """The ``nth`` line of an access leaves the SM, for every member; returns when member 0 has it."""
    n_members = x[sm + P_N_MEMBERS]
    m = rotate(x, sm, n_members)
    grow_lag(x, c, at)
    n_live = 0
    back = at + x[sm + P_LAST_DELAY]
    own_offset = line - (origin_of(x, k, c, 0, event) >> LINE_SHIFT)
    for _ in range(n_members):
        m = m + 1 if m + 1 < n_members else 0
        if x[c + C_MEMBERS + m] < 0:
            continue
        n_live += 1
        origin = origin_of(x, k, c, m, event)
        own = (origin >> LINE_SHIFT) + own_offset
        if not is_sampled(x, own) or (m > 0 and not touches(k, event, origin, nth)):
            continue
        when = request(x, c, m, own, mask, AS_ASKED, at)
        if m == 0:
            back = when
    x[COUNTER + FILL_BYTES] += n_live * (sectors_in(mask) << SECTOR_SHIFT)
    return back


@compiled
def touches(k, event, origin, nth):
    """Whether an access at ``origin`` has an ``nth`` line (a different misalignment may touch fewer)."""
    first, last = lines_of(k, event, origin)
    return first + nth < last


@compiled
def write_sampled(x, sm, m, line, mask, at):
    """Member ``m`` writes one line to the L2 if it is followed; the SM notes when the L2 has taken it."""
    if is_sampled(x, line):
        accepted = write_line(x, line, mask, x[sm + P_MEMBERS + MEMBER_SIZE * m + MEMBER_PARTITION], at)
        x[sm + P_WRITE_ACCEPTED] = max(x[sm + P_WRITE_ACCEPTED], accepted)


@compiled
def write_global(x, k, c, event, at):
    """All lines of a store, for every member; returns when the SM's store port has sent it."""
    sm = x[c + C_SM]
    sent = at
    for m in range(x[sm + P_N_MEMBERS]):
        if x[c + C_MEMBERS + m] < 0:
            continue
        origin = origin_of(x, k, c, m, event)
        first, last = lines_of(k, event, origin)
        for entry in range(first, last):
            line, mask = line_and_mask(k, entry, origin)
            if m == 0:
                sent = max(x[sm + P_STORE], at) + (sectors_in(mask) << SECTOR_SHIFT) * x[STORE_BYTE]
                x[sm + P_STORE] = sent
            write_sampled(x, sm, m, line, mask, sent)
    return sent


@compiled
def update_global(x, k, c, event, at):
    """Atomics and reductions at the L2, for every member; returns when an old value is back at the SM.

    E_COUNT: the largest number of lanes on one address, which the L2 does one after another.
    """
    sm = x[c + C_SM]
    done = at
    for m in range(x[sm + P_N_MEMBERS]):
        if x[c + C_MEMBERS + m] < 0:
            continue
        origin = origin_of(x, k, c, m, event)
        first, last = lines_of(k, event, origin)
        for entry in range(first, last):
            line, mask = line_and_mask(k, entry, origin)
            n = sectors_in(mask)
            x[COUNTER + ATOMIC_SECTORS] += n
            served = reserve(x, x[ATOMIC_SERVER], at, n * x[ATOMIC_SECTOR])
            address = x[ADDRESSES] + (scatter(line) & (x[ADDRESS_SLOTS] - 1))
            served = max(served, x[address]) + k[event + E_COUNT] * x[ATOMIC_SAME_ADDRESS]
            x[address] = served
            write_sampled(x, sm, m, line, mask, at)
            if m == 0:
                x[sm + P_STORE] = max(x[sm + P_STORE], at) + (n << SECTOR_SHIFT) * x[STORE_BYTE]
                done = max(done, served)
    x[sm + P_WRITE_ACCEPTED] = max(x[sm + P_WRITE_ACCEPTED], done)
    return done + x[NEAR]
