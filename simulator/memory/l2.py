"""The L2 as SMs see it: two partitions with a copy each, a home partition per line, DRAM behind.

Rules (silicon: near and far latency steps, misses at 1.85 x DRAM traffic, GEMM traffic of an LRU of half
the capacity): a read looks up the partition next to its SM; a miss whose home is the other partition looks
there and leaves a copy near; what misses at home comes from DRAM.  Writes go to the home partition, without
a fill; the partition next to the SM keeps a copy.  Reads of a line that is still on its way wait for it.
``x`` is the machine's heap (layout.py).
"""

from __future__ import annotations

import numpy as np

from simulator.compiled import compiled
from simulator.isa.effects import (
    ALL_SECTORS,
    DRAM_READ_BYTES,
    DRAM_WRITE_BYTES,
    EVEN_SECTORS,
    L2_FAR_HIT_SECTORS,
    L2_MISS_SECTORS,
    L2_NEAR_HIT_SECTORS,
    L2_READ_SECTORS,
    L2_WRITE_SECTORS,
    LINE_BYTES,
    ODD_SECTORS,
    SECTOR_SHIFT,
)
from simulator.memory.calendar import reserve
from simulator.memory.layout import (
    COALESCER_LOADS,
    COALESCER_SECTOR,
    COALESCER_SERVERS,
    COUNTER,
    DRAM_BUSY,
    DRAM_LATENCY,
    DRAM_LOAD,
    DRAM_MIXED_WRITE_SECTOR,
    DRAM_READ_SECTOR,
    DRAM_REFRESH,
    DRAM_REFRESH_SHARE,
    DRAM_SATURATION,
    DRAM_SERVER,
    DRAM_SPREAD,
    DRAM_WRITE_SECTOR,
    FAR,
    L2_LINES,
    L2_QUEUED,
    L2_SETS,
    L2_TAGS,
    L2_USES,
    L2_WAYS,
    L2_WRITE_SECTOR,
    L2_WRITE_SERVER,
    L_ASKED,
    L_DIRTY,
    L_READY,
    L_VALID,
    LAST_DRAM_READ,
    LINE_SIZE,
    LOAD_BEFORE,
    LOAD_NOW,
    LOAD_SIZE,
    LOAD_WINDOW,
    MERGE_AT,
    MERGE_FOR,
    MERGE_LINE,
    MERGE_MASK,
    MERGE_SIZE,
    MERGE_SLOTS,
    MERGE_TRANSIT,
    MERGE_UNTIL,
    MERGES,
    N_PARTITIONS,
    NEAR,
    NEAR_SPREAD,
    SAMPLE_SHIFT,
    SERVER_SIZE,
    TURNAROUND_WINDOW,
)


@compiled
def scatter(line):
    """Spread a line number over 62 bits (multiplicative hash), for sets, partitions and sampling."""
    h = line * 0x1E3779B97F4A7C15 & 0x7FFFFFFFFFFFFFFF
    return (h ^ (h >> 29)) & 0x3FFFFFFFFFFFFFFF


@compiled
def sectors_in(mask):
    """Number of 32-byte sectors in a four-bit mask."""
    return (mask & 1) + (mask >> 1 & 1) + (mask >> 2 & 1) + (mask >> 3 & 1)


@compiled
def home_of(x, h):
    """Home partition of a line by its hash."""
    return (h >> 40) % x[N_PARTITIONS]


@compiled
def first_place(x, partition, h):
    """First place of the set of a line (the low hash bits, scaled to the number of sets)."""
    return (partition * x[L2_SETS] + ((h & 0xFFFFFFFF) * x[L2_SETS] >> 32)) * x[L2_WAYS]


@compiled
def find(x, partition, h, line):
    """Place of ``line`` in a partition (index into tags and lines), or -1."""
    first = first_place(x, partition, h)
    tags = x[L2_TAGS]
    for place in range(first, first + x[L2_WAYS]):
        if x[tags + place] == line:
            return place
    return -1


@compiled
def record_at(x, place):
    """Offset of the record of a place."""
    return x[L2_LINES] + place * LINE_SIZE


@compiled
def write_back(x, at, sectors):
    """Send evicted dirty sectors to DRAM; a write close to reads also pays the bus turnaround."""
    mixed = at - x[LAST_DRAM_READ] < x[TURNAROUND_WINDOW]
    x[COUNTER + DRAM_WRITE_BYTES] += sectors << 5
    reserve(x, x[DRAM_SERVER], at, sectors * x[DRAM_MIXED_WRITE_SECTOR if mixed else DRAM_WRITE_SECTOR])


@compiled
def make_room(x, partition, h, line, at):
    """Evict the least recently used line of a set for ``line``; returns its place."""
    first = first_place(x, partition, h)
    uses = x[L2_USES]
    place = first
    for other in range(first + 1, first + x[L2_WAYS]):
        if x[uses + other] < x[uses + place]:
            place = other
    record = record_at(x, place)
    if x[record + L_DIRTY] != 0:
        write_back(x, at, sectors_in(x[record + L_DIRTY]) << x[SAMPLE_SHIFT])
    x[x[L2_TAGS] + place] = line
    x[record + L_VALID] = 0
    x[record + L_DIRTY] = 0
    return place


@compiled
def install(x, partition, h, line, mask, ready, at):
    """Put sectors of a line into a partition. Returns its record."""
    place = find(x, partition, h, line)
    if place < 0:
        place = make_room(x, partition, h, line, at)
    record = record_at(x, place)
    x[record + L_VALID] |= mask
    x[record + L_ASKED] = at
    x[record + L_READY] = ready
    x[x[L2_USES] + place] = at
    return record


@compiled
def filled(x, record, at):
    """When a line is there for a read ``at``.

    SMs are simulated out of step: where a later read has asked for the line, this one is the first in truth, and waits
    as long as that one did.
    """
    return x[record + L_READY] - max(0, x[record + L_ASKED] - at)


@compiled
def near_latency(x, h):
    """From an SM to the L2 and back: slices lie at different distances (by line hash)."""
    return x[NEAR] + ((h & 0xFFFF) * x[NEAR_SPREAD] >> 16)


@compiled
def note_load(x, load, shift, at, amount):
    """Count service per window of 2**``shift`` ticks in a record, to know how busy a unit was lately."""
    window = at >> shift
    if window > x[load + LOAD_WINDOW]:
        x[load + LOAD_BEFORE] = x[load + LOAD_NOW] if window == x[load + LOAD_WINDOW] + 1 else 0
        x[load + LOAD_NOW] = 0
        x[load + LOAD_WINDOW] = window
    x[load + LOAD_NOW] += amount


@compiled
def dram_delay(x, h):
    """Extra latency of a DRAM read: exponential, its mean grows with the load (measured latency under load); some reads
    meet a refresh, and wait for a part of it.

    With sampling a followed line stands for 2**SAMPLE_SHIFT lines that a copy waits for together: the largest of
    that many delays.
    """
    load = min(x[x[DRAM_BUSY] + LOAD_BEFORE], x[DRAM_SATURATION]) / (1 << LOAD_SHIFT)
    mean = x[DRAM_SPREAD] + x[DRAM_LOAD] * load * load / (1.0 - load)
    u = ((h >> 16 & RANDOM_MASK) + 1) / (RANDOM_MASK + 2)
    lines = 1 << x[SAMPLE_SHIFT]
    delay = -np.log1p(-(u ** (1.0 / lines))) * mean
    share = x[DRAM_REFRESH_SHARE] / (RANDOM_MASK + 1)
    met = 1.0 - (1.0 - share) ** lines
    v = (h >> 38 & RANDOM_MASK) / (RANDOM_MASK + 1)
    if v < met:
        delay += x[DRAM_REFRESH] * (v / met) ** (1.0 / max(1.0, lines * share))
    return int(delay)


RANDOM_SHIFT = 20
RANDOM_MASK = (1 << RANDOM_SHIFT) - 1
LOAD_SHIFT = 27
"""Load is averaged over 2**27 ticks (2,048 cycles)."""


@compiled
def fetch_from_dram(x, h, mask, at):
    """Read sectors from DRAM; returns when they are at the SM, had it asked their home partition."""
    n = sectors_in(mask) << x[SAMPLE_SHIFT]
    x[COUNTER + DRAM_READ_BYTES] += n << 5
    x[LAST_DRAM_READ] = max(x[LAST_DRAM_READ], at)
    amount = n * x[DRAM_READ_SECTOR]
    note_load(x, x[DRAM_BUSY], LOAD_SHIFT, at, amount)
    return reserve(x, x[DRAM_SERVER], at, amount) + x[DRAM_LATENCY] + dram_delay(x, h) + near_latency(x, h)


@compiled
def port_load(x, domain):
    """Ticks of service that a coalescer's port gave in the last window."""
    return x[x[COALESCER_LOADS] + domain * LOAD_SIZE + LOAD_BEFORE]


PORT_LOAD_SHIFT = 28
"""Load of a port is taken over 2**28 ticks (4,096 cycles)."""


@compiled
def join(x, merge, at):
    """When a read ``at`` that joins one in flight has its data. As with ``filled``, it may be the first of the two."""
    later = x[merge + MERGE_AT] - at
    return x[merge + MERGE_UNTIL] - later if later > 0 else max(x[merge + MERGE_UNTIL], at + x[MERGE_TRANSIT])


@compiled
def read_line(x, line, mask, promotion, partition, domain, at):
    """Read sectors of one line for an SM. Returns when the data is at the SM. ``promotion``: bytes that a miss fills.

    The coalescer of a group of SMs merges a read with one of the same sectors that waits at its port to the L2 or is in
    flight beyond it; the port carries what is left (measured: read_lag, read_bandwidth, queued_merging).
    """
    h = scatter(line)
    merge = x[MERGES] + (domain * x[MERGE_SLOTS] + ((h >> 20) & (x[MERGE_SLOTS] - 1))) * MERGE_SIZE
    is_in_flight = x[merge + MERGE_LINE] == line and abs(at - x[merge + MERGE_AT]) < x[merge + MERGE_FOR]
    if is_in_flight and x[merge + MERGE_MASK] & mask == mask:
        return join(x, merge, at)
    n = sectors_in(mask) << x[SAMPLE_SHIFT]
    x[COUNTER + L2_READ_SECTORS] += n
    place = find(x, partition, h, line)
    record = record_at(x, place)
    if place >= 0 and (x[record + L_VALID] & mask) == mask:
        x[COUNTER + L2_NEAR_HIT_SECTORS] += n
        x[x[L2_USES] + place] = at
        back = max(at + near_latency(x, h ^ domain * DOMAIN_HASH), filled(x, record, at))
    else:
        back = fill_near(x, line, h, promoted(mask, promotion), partition, at)
        if promotion > LINE_BYTES:
            fill_near(x, line ^ 1, scatter(line ^ 1), ALL_SECTORS, partition, at)
    passed = reserve(x, x[COALESCER_SERVERS] + domain * SERVER_SIZE, at, n * x[COALESCER_SECTOR])
    note_load(x, x[COALESCER_LOADS] + domain * LOAD_SIZE, PORT_LOAD_SHIFT, at, n * x[COALESCER_SECTOR])
    x[L2_QUEUED] = max(0, passed + x[NEAR] - back)
    back = max(back, passed + x[NEAR])
    x[merge + MERGE_FOR] = back - at - x[MERGE_TRANSIT]
    x[merge + MERGE_UNTIL] = max(back, x[merge + MERGE_UNTIL]) if is_in_flight else back
    x[merge + MERGE_MASK] = x[merge + MERGE_MASK] | mask if is_in_flight else mask
    x[merge + MERGE_LINE] = line
    x[merge + MERGE_AT] = at
    return back


DOMAIN_HASH = 0x9E37
"""Makes the distance to a slice differ between groups of SMs."""


AS_ASKED = 0
"""Promotion of a read that fills only the sectors it asks for."""


@compiled
def promoted(mask, promotion):
    """Sectors that a miss of ``mask`` fills: whole aligned pieces of ``promotion`` bytes (measured: half_lines)."""
    if promotion >= LINE_BYTES:
        return ALL_SECTORS
    if promotion > 1 << SECTOR_SHIFT:
        return mask | (mask & ODD_SECTORS) >> 1 | (mask & EVEN_SECTORS) << 1
    return mask


@compiled
def fill_near(x, line, h, mask, partition, at):
    """Bring sectors into the partition next to the SM. Returns when they are at the SM."""
    back = read_beyond_near(x, line, h, mask, partition, at)
    install(x, partition, h, line, mask, back, at)
    return back


@compiled
def read_beyond_near(x, line, h, mask, partition, at):
    """A near miss: ask the home partition, then DRAM. Returns when it is at the SM."""
    n = sectors_in(mask) << x[SAMPLE_SHIFT]
    x[COUNTER + L2_MISS_SECTORS] += n
    home = home_of(x, h)
    if home == partition:
        return fetch_from_dram(x, h, mask, at)
    x[COUNTER + L2_READ_SECTORS] += n
    place = find(x, home, h, line)
    record = record_at(x, place)
    if place >= 0 and (x[record + L_VALID] & mask) == mask:
        x[COUNTER + L2_FAR_HIT_SECTORS] += n
        x[x[L2_USES] + place] = at
        return max(at + near_latency(x, h) + x[FAR], filled(x, record, at))
    x[COUNTER + L2_MISS_SECTORS] += n
    back = fetch_from_dram(x, h, mask, at) + x[FAR]
    install(x, home, h, line, mask, back, at)
    return back


@compiled
def write_line(x, line, mask, from_partition, at):
    """Write sectors of one line at their home; returns when the L2 has taken them.

    The partition next to the SM passes a write for the other one on and keeps a copy: it counts in both, and a read that
    follows hits near (measured: 1.5 writes and 1.0 reads per sector of spills).
    """
    h = scatter(line)
    n = sectors_in(mask) << x[SAMPLE_SHIFT]
    home = home_of(x, h)
    x[COUNTER + L2_WRITE_SECTORS] += n if home == from_partition else 2 * n
    for partition in range(x[N_PARTITIONS]):
        if partition == home:
            continue
        if partition == from_partition:
            install(x, partition, h, line, mask, at, at)
            continue
        place = find(x, partition, h, line)
        if place >= 0:
            x[record_at(x, place) + L_VALID] = 0
    record = install(x, home, h, line, mask, at, at)
    x[record + L_DIRTY] |= mask
    return reserve(x, x[L2_WRITE_SERVER], at, n * x[L2_WRITE_SECTOR])
