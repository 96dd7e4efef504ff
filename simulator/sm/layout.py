"""Where simulated SMs live in the machine's heap: record fields and how the heap is laid out.

Several SMs run in one heap. A simulated SM may stand for several chip SMs ("members") that keep its pace: their
memory requests go to the shared L2 with addresses of their own; member 0 is the simulated SM itself.
A warp, CTA slot, warpgroup, sub-partition or SM is named by the offset of its record.
"""

from __future__ import annotations

from simulator.isa.effects import N_PIPES
from simulator.memory.layout import N_MEMORY_HEADER

NEVER = 1 << 60
"""A time that does not come by itself: the warp waits for another warp or for a copy."""
RING = 64
"""Entries of the rings of outstanding MMAs and queue starts (a power of two)."""
COPY_RING = 16
"""Entries of a warp's ring of asynchronous copy groups (a power of two)."""
N_SUBPARTITIONS = 4
CTA_RUN = 4
"""After the first wave consecutive CTAs go to one GPC in runs of about four (measured: topology)."""
LOG_WHY = 3
"""Column of an issue log that takes the why word, if the log has it."""
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
    STALL_STRIDE,
    EXPLAINS,
    STACKS,
    CAUSE_OF,
    WHY,
    MISS_QUEUED,
    EVENTS,
    EVENT_ROOM,
    N_EVENTS,
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
) = range(N_MEMORY_HEADER, N_MEMORY_HEADER + 77)

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
    W_STALLS,
    W_STACK,
    W_COPY_WHY,
    W_SCOREBOARD,
) = range(29)
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
M_PHASE, M_PENDING, M_COUNT, M_BYTES, M_AT, M_DONE_AT, M_WHY, M_DONE_WHY, MBARRIER_SIZE = range(9)

# Record of an event: its kind, whose it is (a record), start, end, a number that depends on the kind.
EVENT_KIND, EVENT_OF, EVENT_START, EVENT_END, EVENT_NUMBER, EVENT_FIELDS = range(6)

# Record of a warpgroup of a CTA slot: MMAs started, groups completed, rings.
G_STARTED, G_COMPLETED, G_ARRIVED = range(3)
G_START_AT = G_ARRIVED + RING
G_DONE_AT = G_START_AT + RING
GROUP_SIZE = G_DONE_AT + RING

# Record of a sub-partition; then its roster of warps.
(
    S_NOW,
    S_LAST,
    S_CANDIDATE_AT,
    S_CANDIDATE,
    S_DIRTY,
    S_SHARED_HEAD,
    S_GLOBAL_HEAD,
    S_ROSTER_SIZE,
    S_CONTENDED,
    S_ISSUED,
    S_MMA_BUSY,
    S_TENSOR_SEEN,
    S_PIPES,
) = range(13)
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
    P_TENSOR_BUSY,
    P_TENSOR_STRETCHED,
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
) = range(27)

MEMBER_PARTITION, MEMBER_DOMAIN, MEMBER_LAG, MEMBER_SIZE = range(4)

# Record of a line in an L1.
L1_LINE, L1_USED, L1_READY, L1_VALID, L1_LINE_SIZE = range(5)
