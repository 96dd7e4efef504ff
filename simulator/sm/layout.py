"""Where simulated SMs live in the machine's heap: record fields and how the heap is laid out.

Several SMs run in one heap. A simulated SM may stand for several chip SMs ("members") that keep its pace: their
memory requests go to the shared L2 with addresses of their own; member 0 is the simulated SM itself.
A warp, CTA slot, warpgroup, sub-partition or SM is named by the offset of its record.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.isa.effects import GROUP_WARPS, N_PIPES, N_REASONS
from simulator.memory.calendar import EMPTY, calendar_size, make_idle
from simulator.memory.layout import N_MEMORY_HEADER, Arena, empty_memory, lay_out_memory

NEVER = 1 << 60
"""A time that does not come by itself: the warp waits for another warp or for a copy."""
RING = 64
"""Entries of the rings of outstanding MMAs and queue starts (a power of two)."""
COPY_RING = 16
"""Entries of a warp's ring of asynchronous copy groups (a power of two)."""
N_SUBPARTITIONS = 4
CTA_RUN = 4
"""After the first wave consecutive CTAs go to one GPC in runs of about four (measured: topology)."""
N_SCOREBOARDS = 6
N_BARRIERS = 16
PORT_SHIFT = 20
"""The shared-memory port resolves 2**20 ticks (16 cycles)."""
OPERAND_SHIFT = 25
"""MMA operands and copies share the port over 2**25 ticks (512 cycles): copies are buffered, so bursts do not hurt."""
PORT_WINDOWS = 1 << 12
SHARE_SHIFT = 16
"""P_FETCH_SHARE is a fraction of 2**16."""

SM_PARAMETERS = (
    "taken_branch",
    "scoreboard_release",
    "tensor_issue",
    "tensor_queue",
    "same_group",
    "wavefront",
    "subpartition_wavefront",
    "subpartition_interval",
    "shared_queue",
    "global_queue",
    "operand_release",
    "l1_hit",
    "l1_tag",
    "l1_miss",
    "fill_byte",
    "store_byte",
    "store_backlog",
    "bulk_issue",
    "bulk_extra",
    "bulk_release",
    "bulk_store_byte",
    "bulk_store_latency",
    "barrier_base",
    "barrier_warp",
    "mbarrier_port",
    "mbarrier_release",
    "cluster_barrier",
    "fill_wavefront",
    "cta_interval",
    "cta_turnaround",
    "launch_latency",
    "quantum",
    "lag",
    "lag_growth",
    "lag_most",
    "lag_restart",
    "lag_load",
)
(
    TAKEN_BRANCH,
    SCOREBOARD_RELEASE,
    TENSOR_ISSUE,
    TENSOR_QUEUE,
    SAME_GROUP,
    WAVEFRONT,
    SUBPARTITION_WAVEFRONT,
    SUBPARTITION_INTERVAL,
    SHARED_QUEUE,
    GLOBAL_QUEUE,
    OPERAND_RELEASE,
    L1_HIT,
    L1_TAG,
    L1_MISS,
    FILL_BYTE,
    STORE_BYTE,
    STORE_BACKLOG,
    BULK_ISSUE,
    BULK_EXTRA,
    BULK_RELEASE,
    BULK_STORE_BYTE,
    BULK_STORE_LATENCY,
    BARRIER_BASE,
    BARRIER_WARP,
    MBARRIER_PORT,
    MBARRIER_RELEASE,
    CLUSTER_BARRIER_TIME,
    FILL_WAVEFRONT,
    CTA_INTERVAL,
    CTA_TURNAROUND,
    LAUNCH_LATENCY,
    QUANTUM,
    LAG,
    LAG_GROWTH,
    LAG_MOST,
    LAG_RESTART,
    LAG_LOAD,
    # Sizes and tables.
    N_SMS,
    N_SLOTS,
    N_WARPS,
    N_MEMBERS,
    N_MBARRIERS,
    N_BASES,
    MEMBER_BASES,
    WARP_SIZE,
    CTA_SIZE,
    SMSP_SIZE,
    SM_SIZE,
    SMS,
    CTAS,
    WARPS,
    GROUPS,
    SMSPS,
    L1S,
    PORTS,
    L1_SETS,
    L1_WAYS,
    STALLS,
    SPANS,
    N_CHIP_SMS,
    N_LARGE,
    N_RUNS,
    RUN_STEP,
    NEXT_CTA,
    PLACES_TAKEN,
    PLACES_TAKEN_LARGE,
    CTAS_FINISHED,
    END_OF_HEADER,
) = range(N_MEMORY_HEADER, N_MEMORY_HEADER + 68)

# Record of a warp.
(
    W_NEXT,
    W_END,
    W_READY,
    W_PIPE,
    W_ISSUED,
    W_STALLED,
    W_REASON,
    W_BLOCK,
    W_TARGET,
    W_LANE,
    W_CTA,
    W_GROUP,
    W_SMSP,
    W_SM,
    W_TENSOR_ISSUED,
    W_TENSOR_GROUPS,
    W_COPY_LAST,
    W_COPY_GROUPS,
    W_STORE_LAST,
    W_PENDING,
    W_PENDING_MBARRIER,
    W_PENDING_PARITY,
    W_HELD,
    W_HELD_REASON,
    W_CLUSTER_ARRIVALS,
    W_SCOREBOARD,
) = range(26)
W_SCOREBOARD_REASON = W_SCOREBOARD + N_SCOREBOARDS
W_COPY_DONE = W_SCOREBOARD_REASON + N_SCOREBOARDS
WARP_FIELDS = W_COPY_DONE + COPY_RING

# What a blocked warp waits for (W_BLOCK).
NOT_BLOCKED, ON_BARRIER, ON_MBARRIER, ON_TENSOR_GROUP, ON_TENSOR_QUEUE, ON_CLUSTER, FINISHED = range(7)

# Record of a CTA slot (BASES: its table of cta_base, [column, member]); then N_MEMBERS CTA numbers (-1 none), then its mbarriers.
(
    C_INDEX,
    C_LIVE,
    C_SM,
    C_FIRST_WARP,
    C_BASES,
    C_CLUSTER_ARRIVED,
    C_CLUSTER_PHASE,
    C_CLUSTER_AT,
    C_LAG,
    C_LAG_AT,
    C_BARRIERS,
) = range(11)
C_MEMBERS = C_BARRIERS + N_BARRIERS

# Record of an mbarrier.
M_PHASE, M_PENDING, M_COUNT, M_BYTES, M_AT, M_DONE_AT, MBARRIER_SIZE = range(7)

# Record of a warpgroup of a CTA slot: MMAs started, groups completed, rings.
G_STARTED, G_COMPLETED, G_ARRIVED = range(3)
G_START_AT = G_ARRIVED + RING
G_DONE_AT = G_START_AT + RING
GROUP_SIZE = G_DONE_AT + RING

# Record of a sub-partition; then its roster of warps.
S_NOW, S_LAST, S_CANDIDATE_AT, S_CANDIDATE, S_DIRTY, S_SHARED_HEAD, S_GLOBAL_HEAD, S_ROSTER_SIZE, S_CONTENDED, S_PIPES = range(10)
S_SHARED_QUEUE = S_PIPES + N_PIPES
S_GLOBAL_QUEUE = S_SHARED_QUEUE + RING
S_ROSTER = S_GLOBAL_QUEUE + RING

# Record of an SM: its shared-memory port (a server), busy-until stamps of its other resources; then the record of each member: L2
# partition and request coalescer next to it, its share of the CTA's lag.
(
    P_PORT,
    P_OPERANDS,
    P_BLOCKED,
    P_BARRIER,
    P_TENSOR,
    P_TENSOR_SINCE,
    P_TENSOR_DRAINED,
    P_TENSOR_GROUP,
    P_TENSOR_ALTERNATES,
    P_FETCH_SHARE,
    P_MISS,
    P_FILL,
    P_STORE,
    P_BULK,
    P_BULK_STORE,
    P_LAUNCH,
    P_WRITE_ACCEPTED,
    P_LAST_SERVED,
    P_LAST_DELAY,
    P_ROTATION,
    P_N_MEMBERS,
    P_SMSPS,
    P_L1,
    P_NUMBER,
    P_MEMBERS,
) = range(25)

MEMBER_PARTITION, MEMBER_DOMAIN, MEMBER_LAG, MEMBER_SIZE = range(4)

# Record of a line in an L1.
L1_LINE, L1_USED, L1_READY, L1_VALID, L1_LINE_SIZE = range(5)


@dataclass(frozen=True)
class MachineShape:
    """Sizes of a simulated machine. ``members[s]``: chip SMs that simulated SM s stands for, itself first;
    ``partition_of``, ``domain_of`` by chip SM: L2 partition next to it, request coalescer in front of it;
    L2 sizes per partition; ``lag_of`` by chip SM: lag of its requests, as a multiple
    (2**-SHARE_SHIFT) of the typical one; ``run_step``: places in a round between runs of CTAs on neighbouring SMs."""

    members: list[list[int]]
    partition_of: np.ndarray
    domain_of: np.ndarray
    n_slots: int
    n_warps: int
    n_mbarriers: int
    n_ctas: int
    n_bases: int
    l1_sets: int
    l1_ways: int
    n_partitions: int
    l2_sets: int
    l2_ways: int
    n_domains: int
    merge_slots: int
    lag_of: np.ndarray
    run_step: int

    @property
    def n_sms(self) -> int:
        return len(self.members)

    @property
    def n_chip_sms(self) -> int:
        return sum(map(len, self.members))


def make_machine(shape: MachineShape, memory_parameters: np.ndarray, sm_parameters: np.ndarray) -> np.ndarray:
    """A heap with idle SMs and empty memories."""
    n_sms, n_slots, n_warps = shape.n_sms, shape.n_slots, shape.n_warps
    n_members = max(map(len, shape.members))
    n_roster = -(-n_slots * n_warps // N_SUBPARTITIONS)
    n_ctas = n_sms * n_slots
    cta_size = C_MEMBERS + n_members + max(1, shape.n_mbarriers) * MBARRIER_SIZE
    smsp_size = S_ROSTER + n_roster
    sm_size = P_MEMBERS + MEMBER_SIZE * n_members
    arena = Arena(END_OF_HEADER)
    memory = lay_out_memory(arena, shape.n_partitions, shape.l2_sets, shape.l2_ways, shape.n_domains, shape.merge_slots)
    header = {
        N_SMS: n_sms,
        N_SLOTS: n_slots,
        N_WARPS: n_warps,
        N_MEMBERS: n_members,
        N_CHIP_SMS: shape.n_chip_sms,
        N_RUNS: shape.n_chip_sms // CTA_RUN,
        RUN_STEP: shape.run_step,
        N_LARGE: sum(len(chip_sms) == n_members for chip_sms in shape.members),
        N_MBARRIERS: shape.n_mbarriers,
        N_BASES: shape.n_bases,
        MEMBER_BASES: arena.take(n_ctas * shape.n_bases * n_members),
        WARP_SIZE: WARP_FIELDS,
        CTA_SIZE: cta_size,
        SMSP_SIZE: smsp_size,
        SM_SIZE: sm_size,
        SMS: arena.take(n_sms * sm_size),
        CTAS: arena.take(n_ctas * cta_size),
        WARPS: arena.take(n_ctas * n_warps * WARP_FIELDS),
        GROUPS: arena.take(n_ctas * -(-n_warps // GROUP_WARPS) * GROUP_SIZE),
        SMSPS: arena.take(n_sms * N_SUBPARTITIONS * smsp_size),
        L1_SETS: max(1, shape.l1_sets),
        L1_WAYS: shape.l1_ways,
        L1S: arena.take(n_sms * max(1, shape.l1_sets) * shape.l1_ways * L1_LINE_SIZE),
        PORTS: arena.take(2 * n_sms * calendar_size(PORT_WINDOWS)),
        STALLS: arena.take(N_REASONS),
        SPANS: arena.take(2 * shape.n_ctas),
    }
    x = np.zeros(arena.size, np.int64)
    empty_memory(x, memory)
    x[: len(memory_parameters)] = memory_parameters
    x[N_MEMORY_HEADER : N_MEMORY_HEADER + len(sm_parameters)] = sm_parameters
    x[list(header)] = list(header.values())
    x[header[SPANS] : header[SPANS] + 2 * shape.n_ctas] = EMPTY
    x[header[L1S] : header[PORTS] : L1_LINE_SIZE] = EMPTY
    _link(x, shape)
    return x


def _link(x: np.ndarray, shape: MachineShape) -> None:
    """Point the records at each other."""
    n_groups = -(-shape.n_warps // GROUP_WARPS)
    for s, chip_sms in enumerate(shape.members):
        sm = x[SMS] + s * x[SM_SIZE]
        x[sm + P_N_MEMBERS] = len(chip_sms)
        x[sm + P_SMSPS] = x[SMSPS] + s * N_SUBPARTITIONS * x[SMSP_SIZE]
        x[sm + P_L1] = x[L1S] + s * x[L1_SETS] * x[L1_WAYS] * L1_LINE_SIZE
        x[sm + P_NUMBER] = s
        x[sm + P_PORT] = x[PORTS] + 2 * s * calendar_size(PORT_WINDOWS)
        x[sm + P_OPERANDS] = x[sm + P_PORT] + calendar_size(PORT_WINDOWS)
        make_idle(x, x[sm + P_PORT], PORT_SHIFT, PORT_WINDOWS)
        make_idle(x, x[sm + P_OPERANDS], OPERAND_SHIFT, PORT_WINDOWS)
        for m, chip_sm in enumerate(chip_sms):
            member = sm + P_MEMBERS + MEMBER_SIZE * m
            x[member + MEMBER_PARTITION] = shape.partition_of[chip_sm]
            x[member + MEMBER_DOMAIN] = shape.domain_of[chip_sm]
            x[member + MEMBER_LAG] = shape.lag_of[chip_sm]
        for q in range(N_SUBPARTITIONS):
            smsp = x[sm + P_SMSPS] + q * x[SMSP_SIZE]
            x[smsp + S_LAST] = EMPTY
            x[smsp + S_DIRTY] = 1
        for slot in range(shape.n_slots):
            number = s * shape.n_slots + slot
            cta = x[CTAS] + number * x[CTA_SIZE]
            x[cta + C_SM] = sm
            x[cta + C_BASES] = x[MEMBER_BASES] + number * shape.n_bases * x[N_MEMBERS]
            x[cta + C_FIRST_WARP] = x[WARPS] + number * shape.n_warps * WARP_FIELDS
            for lane in range(shape.n_warps):
                w = x[cta + C_FIRST_WARP] + lane * WARP_FIELDS
                smsp = x[sm + P_SMSPS] + (slot * shape.n_warps + lane) % N_SUBPARTITIONS * x[SMSP_SIZE]
                x[w + W_LANE] = lane
                x[w + W_CTA] = cta
                x[w + W_GROUP] = x[GROUPS] + (number * n_groups + lane // GROUP_WARPS) * GROUP_SIZE
                x[w + W_SMSP] = smsp
                x[w + W_SM] = sm
                x[w + W_READY] = NEVER
                x[w + W_BLOCK] = FINISHED
                x[w + W_PENDING] = EMPTY
                x[smsp + S_ROSTER + x[smsp + S_ROSTER_SIZE]] = w
                x[smsp + S_ROSTER_SIZE] += 1
