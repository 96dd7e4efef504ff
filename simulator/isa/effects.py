"""Numerals that the lowered program and the engine share: effects, pipes, stall reasons, counters.

Each group is a run of consecutive integers, so that compiled code indexes arrays with them.
"""

from __future__ import annotations

# What an instruction does to the machine. The engine knows these, not opcodes.
(
    NO_EFFECT,
    FIXED,
    SHARED_ACCESS,
    GLOBAL_LOAD,
    GLOBAL_STORE,
    GLOBAL_COPY,
    GLOBAL_ATOMIC,
    LOCAL_LOAD,
    LOCAL_STORE,
    TENSOR_ASYNC,
    BULK_LOAD,
    BULK_STORE,
    BULK_COMMIT,
    MBARRIER,
    BARRIER,
    TENSOR_WAIT,
    COPY_WAIT,
    COPY_COMMIT,
    COPY_ARRIVE,
    BRANCH,
    FENCE,
    CLUSTER_BARRIER,
    N_EFFECTS,
) = range(23)

# Pipes of a sub-partition (an issue to a busy pipe waits). UNPIPED never waits.
(
    UNPIPED,
    PIPE_ALU,
    PIPE_FMA,
    PIPE_FMA_HEAVY,
    PIPE_FMA_HALF,
    PIPE_TRANSCENDENTAL,
    PIPE_FP64,
    PIPE_UNIFORM,
    PIPE_VOTE,
    PIPE_SPECIAL,
    PIPE_TENSOR,
    PIPE_TENSOR_ASYNC,
    PIPE_SHARED,
    PIPE_GLOBAL,
    N_PIPES,
) = range(15)

# Why a resident warp did not issue (names follow the profiler's smsp__average_warps_issue_stalled_*).
STALL_REASONS = (
    "selected",
    "wait",
    "long_scoreboard",
    "short_scoreboard",
    "barrier",
    "gmma",
    "mio_throttle",
    "lg_throttle",
    "math_pipe_throttle",
    "not_selected",
    "dispatch_stall",
    "membar",
    "mbarrier",
    "branch_resolving",
    "drain",
)
(
    SELECTED,
    WAIT,
    LONG_SCOREBOARD,
    SHORT_SCOREBOARD,
    STALL_BARRIER,
    STALL_TENSOR,
    MIO_THROTTLE,
    LG_THROTTLE,
    MATH_THROTTLE,
    NOT_SELECTED,
    DISPATCH,
    STALL_FENCE,
    STALL_MBARRIER,
    BRANCH_RESOLVING,
    DRAIN,
    N_REASONS,
) = range(16)

# What a cycle of a sub-partition went to: the rows of a cycle stack.
CAUSES = (
    "tensor",
    "other_issue",
    "shared_memory",
    "bank_conflicts",
    "tma_latency",
    "l2",
    "hbm_bandwidth",
    "hbm_latency",
    "barrier",
    "dependency",
    "instruction_fetch",
    "prologue",
    "epilogue",
    "tail",
    "launch",
)
(
    CAUSE_TENSOR,
    CAUSE_ISSUE,
    CAUSE_SHARED,
    CAUSE_CONFLICTS,
    CAUSE_TMA,
    CAUSE_L2,
    CAUSE_DRAM_BANDWIDTH,
    CAUSE_DRAM_LATENCY,
    CAUSE_BARRIER,
    CAUSE_DEPENDENCY,
    CAUSE_FETCH,
    CAUSE_PROLOGUE,
    CAUSE_EPILOGUE,
    CAUSE_TAIL,
    CAUSE_LAUNCH,
    N_CAUSES,
) = range(16)
CAUSE_OF_REASON = {
    WAIT: CAUSE_DEPENDENCY,
    LONG_SCOREBOARD: CAUSE_L2,
    SHORT_SCOREBOARD: CAUSE_DEPENDENCY,
    STALL_BARRIER: CAUSE_BARRIER,
    STALL_TENSOR: CAUSE_DEPENDENCY,
    DISPATCH: CAUSE_ISSUE,
    STALL_FENCE: CAUSE_BARRIER,
    STALL_MBARRIER: CAUSE_BARRIER,
    BRANCH_RESOLVING: CAUSE_FETCH,
}
"""Cause of a wait of which only its reason is known."""

# Phases of a warp: its main loop, what comes before and after it.
PHASES = ("steady", "prologue", "epilogue")
STEADY, PROLOGUE, EPILOGUE, N_PHASES = range(4)

# A *why* word says why a warp waits: the stall reason, the cause, and how much of the wait's end has other causes:
# the very end (outer) and what lies before it (middle), in units of 2**WHY_UNIT_SHIFT ticks (a sixteenth of a cycle).
REASON_MASK = 31
CAUSE_MASK = 15
WHY_AMOUNT_MASK = (1 << 22) - 1
WHY_CAUSE_SHIFT = 5
WHY_MIDDLE_SHIFT = 9
WHY_OUTER_SHIFT = 13
WHY_MIDDLE_AMOUNT_SHIFT = 17
WHY_OUTER_AMOUNT_SHIFT = 39
WHY_UNIT_SHIFT = 12

# What the event log records besides issues.
EVENT_MMA, EVENT_LOAD_BOX, EVENT_STORE_BOX, EVENT_PHASE, EVENT_SHARED, EVENT_GLOBAL, EVENT_CTA = range(7)

# Kinds of an MBARRIER effect.
MBARRIER_INIT, MBARRIER_ARRIVE, MBARRIER_EXPECT, MBARRIER_WAIT, MBARRIER_OTHER = range(5)

# Chip-wide counters of a run (scaled from the simulated SMs by the members that each stands for).
COUNTERS = (
    "warp_instructions",
    "l1_read_sectors",
    "l1_hit_sectors",
    "fill_bytes",
    "bulk_fill_bytes",
    "l2_read_sectors",
    "l2_near_hit_sectors",
    "l2_far_hit_sectors",
    "l2_miss_sectors",
    "l2_write_sectors",
    "dram_read_bytes",
    "dram_write_bytes",
    "shared_wavefronts",
    "tensor_busy_ticks",
    "atomic_sectors",
    "idle_passes",
    "counted_pass_ticks",
)
(
    WARP_INSTRUCTIONS,
    L1_READ_SECTORS,
    L1_HIT_SECTORS,
    FILL_BYTES,
    BULK_FILL_BYTES,
    L2_READ_SECTORS,
    L2_NEAR_HIT_SECTORS,
    L2_FAR_HIT_SECTORS,
    L2_MISS_SECTORS,
    L2_WRITE_SECTORS,
    DRAM_READ_BYTES,
    DRAM_WRITE_BYTES,
    SHARED_WAVEFRONTS,
    TENSOR_BUSY_TICKS,
    ATOMIC_SECTORS,
    IDLE_PASSES,
    COUNTED_PASS_TICKS,
    N_COUNTERS,
) = range(18)

# Numbers of the instruction set and of the trace's own units.
WARP_LANES = 32
GROUP_WARPS = 4
"""Warps of a warpgroup."""
NO_BOARD = 7
"""Scoreboard number of an instruction that uses none."""
LINE_SHIFT = 7
LINE_BYTES = 1 << LINE_SHIFT
"""Global addresses are cut into lines of 2**7 bytes: granularity of the trace's pattern origins (kernel_trace.EventTable)."""
SECTOR_SHIFT = 5
"""Sectors have 2**5 bytes."""
ALL_SECTORS = 15
EVEN_SECTORS, ODD_SECTORS = 5, 10
"""Masks of the sectors of a line."""
SECTORS_PER_LINE = 4
MASK_BITS = 8
"""Line offset and sector mask share a word: the mask takes the low bits."""
BYTE = 255
