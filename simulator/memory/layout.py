"""Where the memory system lives in the machine's heap.

All mutable state of a simulated machine is one int64 array, the *heap*; a component (a cache, a server, an
SM, a warp) is the offset of its record in it, and a record's fields are named offsets.  Compiled functions
then take one array instead of dozens, and a copy of the heap is a checkpoint.

The heap starts with a header: parameters (times in ticks) and the offsets of the tables below.
"""

from __future__ import annotations

import numpy as np

from simulator.isa.effects import N_COUNTERS
from simulator.memory.calendar import EMPTY, calendar_size, make_idle

MEMORY_PARAMETERS = (
    "near",
    "near_spread",
    "far",
    "dram",
    "dram_spread",
    "dram_load",
    "dram_saturation",
    "dram_refresh",
    "dram_refresh_share",
    "coalescer_sector",
    "l2_write_sector",
    "dram_read_sector",
    "dram_write_sector",
    "dram_mixed_write_sector",
    "turnaround_window",
    "atomic_sector",
    "atomic_same_address",
    "merge_transit",
    "sample_shift",
    "n_partitions",
)
(
    NEAR,
    NEAR_SPREAD,
    FAR,
    DRAM_LATENCY,
    DRAM_SPREAD,
    DRAM_LOAD,
    DRAM_SATURATION,
    DRAM_REFRESH,
    DRAM_REFRESH_SHARE,
    COALESCER_SECTOR,
    L2_WRITE_SECTOR,
    DRAM_READ_SECTOR,
    DRAM_WRITE_SECTOR,
    DRAM_MIXED_WRITE_SECTOR,
    TURNAROUND_WINDOW,
    ATOMIC_SECTOR,
    ATOMIC_SAME_ADDRESS,
    MERGE_TRANSIT,
    SAMPLE_SHIFT,
    N_PARTITIONS,
    # Tables: offsets and sizes.
    L2_TAGS,
    L2_SETS,
    L2_WAYS,
    L2_USES,
    L2_LINES,
    MERGES,
    MERGE_SLOTS,
    COALESCER_SERVERS,
    COALESCER_LOADS,
    L2_WRITE_SERVER,
    DRAM_SERVER,
    ATOMIC_SERVER,
    ADDRESSES,
    ADDRESS_SLOTS,
    LAST_DRAM_READ,
    DRAM_BUSY,
    L2_QUEUED,
    COUNTER,
) = range(38)
N_MEMORY_HEADER = COUNTER + N_COUNTERS

# Record of an L2 line (beside its tag and its last use): when it was asked for and is there, masks of valid and dirty sectors.
L_ASKED, L_READY, L_VALID, L_DIRTY, LINE_SIZE = range(5)

# Record of a read in flight in a request coalescer.
MERGE_LINE, MERGE_MASK, MERGE_AT, MERGE_FOR, MERGE_UNTIL, MERGE_SIZE = range(6)

# Record of how busy the DRAM or a coalescer's port was: window, ticks booked in it, and in the one before.
LOAD_WINDOW, LOAD_NOW, LOAD_BEFORE, LOAD_SIZE = range(4)

SERVERS = (L2_WRITE_SERVER, DRAM_SERVER, ATOMIC_SERVER)
SERVER_SHIFT = 22
"""Chip-wide servers resolve 2**22 ticks (64 cycles)."""
SERVER_WINDOWS = 1 << 14
"""A million cycles of backlog."""
SERVER_SIZE = calendar_size(SERVER_WINDOWS)


class Arena:
    """Hands out consecutive pieces of the heap while it is laid out."""

    def __init__(self, start: int) -> None:
        self.size = start

    def take(self, n: int) -> int:
        """Offset of ``n`` fresh words."""
        offset = self.size
        self.size += n
        return offset


def lay_out_memory(arena: Arena, n_partitions: int, n_sets: int, n_ways: int, n_domains: int, merge_slots: int) -> dict[int, int]:
    """Reserve the memory system's tables. Returns header entries. ``merge_slots``: a power of two."""
    lines = n_partitions * n_sets * n_ways
    return {
        L2_TAGS: arena.take(lines),
        L2_SETS: n_sets,
        L2_WAYS: n_ways,
        L2_USES: arena.take(lines),
        L2_LINES: arena.take(lines * LINE_SIZE),
        MERGES: arena.take(n_domains * merge_slots * MERGE_SIZE),
        MERGE_SLOTS: merge_slots,
        COALESCER_LOADS: arena.take(n_domains * LOAD_SIZE),
        COALESCER_SERVERS: arena.take(n_domains * SERVER_SIZE),
        **{server: arena.take(SERVER_SIZE) for server in SERVERS},
        ADDRESSES: arena.take(merge_slots),
        ADDRESS_SLOTS: merge_slots,
        DRAM_BUSY: arena.take(LOAD_SIZE),
        LAST_DRAM_READ: -(1 << 60),
    }


def empty_memory(heap: np.ndarray, header: dict[int, int]) -> None:
    """Nothing cached, nothing in flight, idle servers."""
    heap[list(header)] = list(header.values())
    heap[header[L2_TAGS] : header[L2_USES]] = EMPTY
    heap[header[MERGES] : header[COALESCER_LOADS] : MERGE_SIZE] = EMPTY
    coalescers = range(header[COALESCER_SERVERS], header[SERVERS[0]], SERVER_SIZE)
    for server in (*coalescers, *(header[name] for name in SERVERS)):
        make_idle(heap, server, SERVER_SHIFT, SERVER_WINDOWS)
