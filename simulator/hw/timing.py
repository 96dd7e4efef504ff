"""Execution timing of a chip: the part of a configuration that the SM engine and the memory system need.

A chip without this section loads, shows, and answers occupancy and access questions; projecting a
kernel on it says that the section is missing.  Cycles are SM cycles; rates of the L2 and DRAM, which
run on clocks of their own, are per second.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class Section(BaseModel):
    """A frozen group of values; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class PipeTiming(Section):
    """One execution pipe of a sub-partition: cycles between issues, and from issue to usable result."""

    interval_cycles: float = Field(gt=0)
    latency_cycles: float = Field(ge=0)


class IssueTiming(Section):
    """Warp schedulers. ``taken_branch_cycles``: from a taken branch to the next issue of that warp."""

    taken_branch_cycles: float = Field(ge=0)
    scoreboard_release_cycles: float = Field(ge=0)


class TensorAsyncTiming(Section):
    """Warpgroup-wide asynchronous MMA (one tensor-core server per SM).

    Interval = max(N / columns_per_cycle, shared operand bytes / operand_bytes_per_cycle, floor).
    Latency: end of the interval to a waiter's next issue.  ``queue_depth``: instructions accepted
    beside the running one.  ``contention_cycles``: extra dispatch cycles of an instruction of that pipe beside
    running MMAs of several warpgroups; of one warpgroup alone, ``same_group_contention`` of that.
    """

    columns_per_cycle: float = Field(gt=0)
    operand_bytes_per_cycle: float = Field(gt=0)
    register_operand_floor_cycles: float = Field(ge=0)
    shared_operand_latency_cycles: float = Field(ge=0)
    register_operand_latency_cycles: float = Field(ge=0)
    issue_interval_cycles: float = Field(gt=0)
    queue_depth: int = Field(ge=1, le=32)
    contention_cycles: dict[str, float]
    same_group_contention: float = Field(ge=0, le=1)


class SharedTiming(Section):
    """Shared-memory port. One wavefront takes ``wavefront_cycles`` of the SM-wide port and
    ``subpartition_wavefront_cycles`` of its sub-partition's interface, at least ``subpartition_interval_cycles``.
    A wavefront written by an asynchronous copy takes ``fill_wavefront_cycles`` of the port that MMA operands use."""

    wavefront_cycles: float = Field(gt=0)
    fill_wavefront_cycles: float = Field(ge=0)
    subpartition_wavefront_cycles: float = Field(gt=0)
    subpartition_interval_cycles: float = Field(gt=0)
    load_latency_cycles: float = Field(gt=0)
    matrix_load_latency_cycles: float = Field(gt=0)
    operand_release_cycles: float = Field(ge=0)
    queue_depth: int = Field(ge=1, le=64)


class L1Timing(Section):
    """Global accesses inside the SM. Tag stage, data path, miss path, store path."""

    hit_latency_cycles: float = Field(gt=0)
    tag_cycles_per_line: float = Field(gt=0)
    miss_cycles_per_line: float = Field(gt=0)
    fill_bytes_per_cycle: float = Field(gt=0)
    store_bytes_per_cycle: float = Field(gt=0)
    store_backlog_cycles: float = Field(ge=0)
    queue_depth: int = Field(ge=1, le=64)
    ways: int = Field(ge=1)


class BulkTiming(Section):
    """Bulk-copy (tensor map) engine of an SM."""

    issue_cycles: float = Field(ge=0)
    extra_latency_cycles: float = Field(ge=0)
    fill_bytes_per_cycle: float = Field(gt=0)
    row_cycles: float = Field(gt=0)
    full_line_row_cycles: float = Field(gt=0)
    misaligned_row_cycles: float = Field(gt=0)
    aligned_pitch_bytes: int = Field(gt=0)
    operand_release_cycles: float = Field(ge=0)
    store_bytes_per_cycle: float = Field(gt=0)
    store_latency_cycles: float = Field(ge=0)


class BarrierTiming(Section):
    """Named barriers, mbarriers, cluster barriers."""

    base_cycles: float = Field(ge=0)
    per_warp_cycles: float = Field(ge=0)
    mbarrier_latency_cycles: float = Field(ge=0)
    mbarrier_port_cycles: float = Field(ge=0)
    mbarrier_release_cycles: float = Field(ge=0)
    cluster_barrier_cycles: float = Field(ge=0)
    fence_cycles: float = Field(ge=0)
    chip_fence_cycles: float = Field(ge=0)


class LagTiming(Section):
    """How far SMs that run the same code lag behind each other: an exponentially distributed time, of mean ``start_cycles``
    at the start of a CTA, e times as long after each ``growth_cycles`` of a port to the L2 busier than ``saturation`` (after
    half of them where two CTAs share an SM, and so on), at most ``most_cycles``; a new CTA starts with ``restart_share`` of
    what the one before it ended with."""

    start_cycles: float = Field(ge=0)
    growth_cycles: float = Field(gt=0)
    most_cycles: float = Field(ge=0)
    restart_share: float = Field(ge=0, le=1)
    saturation: float = Field(gt=0, le=1)


class L2Timing(Section):
    """L2 seen from an SM. Latencies are from the SM's request to data back at the SM. ``coalescer_sms``: SMs behind
    each request coalescer, in launch order: it merges reads of a line that waits at it or is in flight beyond, and passes
    ``coalescer_bytes_per_second``. ``coalescer_transit_cycles``: latency between SM and coalescer, both ways.
    ``lag_alone``, ``lag_shared``: of CTAs that have their SM alone, of those that share it.
    ``latency_spread_cycles``: from the nearest to the farthest slice. ``sm_clock_cycles`` of the near latency and of the
    transit follow the SM clock, the rest keeps its time."""

    near_latency_cycles: float = Field(gt=0)
    sm_clock_cycles: float = Field(ge=0)
    latency_spread_cycles: float = Field(ge=0)
    far_extra_cycles: float = Field(ge=0)
    read_bytes_per_second: float = Field(gt=0)
    write_bytes_per_second: float = Field(gt=0)
    atomic_sectors_per_second: float = Field(gt=0)
    atomic_same_address_per_second: float = Field(gt=0)
    ways: int = Field(ge=1)
    coalescer_sms: tuple[int, ...]
    coalescer_lines: int = Field(ge=1)
    coalescer_bytes_per_second: float = Field(gt=0)
    coalescer_transit_cycles: float = Field(ge=0)
    lag_alone: LagTiming
    lag_shared: LagTiming


class DramTiming(Section):
    """DRAM behind the L2. ``extra_latency_cycles``: beyond the L2 latency, shortest. On top comes a delay with an
    exponential distribution of mean spread_cycles + load_latency_cycles x u^2 / (1 - u) at utilisation u, at most
    saturation_load: beyond, it is the queue that grows. A share ``refresh_share`` of the reads meets a refresh and waits
    for a part of its ``refresh_cycles``. Writes within ``turnaround_window_cycles`` of a read run at
    ``mixed_write_bytes_per_second`` (bus turnaround)."""

    extra_latency_cycles: float = Field(ge=0)
    spread_cycles: float = Field(ge=0)
    load_latency_cycles: float = Field(ge=0)
    saturation_load: float = Field(gt=0, lt=1)
    refresh_cycles: float = Field(ge=0)
    refresh_share: float = Field(ge=0, lt=1)
    read_bytes_per_second: float = Field(gt=0)
    write_bytes_per_second: float = Field(gt=0)
    mixed_write_bytes_per_second: float = Field(gt=0)
    turnaround_window_cycles: float = Field(ge=0)


class LaunchTiming(Section):
    """Kernel and CTA launch. ``latency_cycles``: from the start of the measured span to the first instruction;
    ``extra_cold_cycles``: on top for kernels that use memory, whose first accesses find translations cold."""

    latency_cycles: float = Field(ge=0)
    extra_cold_cycles: float = Field(ge=0)
    drain_cycles: float = Field(ge=0)
    cta_interval_cycles: float = Field(ge=0)
    cta_turnaround_cycles: float = Field(ge=0)


class ClockTiming(Section):
    """SM clock that a kernel sustains, under its power limit. ``plain_hz``: without tensor cores. With them,
    ``tensor_hz`` at the shares of tensor-core time ``tensor_activity`` (interpolated); kernels shorter than
    ``power_seconds`` end before the limit acts and run at ``short_tensor_hz``. ``microbenchmark_hz``: SM clock at
    which latencies beyond the SM were measured in cycles; they keep their time when the SM clock changes."""

    microbenchmark_hz: float = Field(gt=0)
    plain_hz: float = Field(gt=0)
    short_tensor_hz: float = Field(gt=0)
    power_seconds: float = Field(gt=0)
    tensor_activity: tuple[float, ...]
    tensor_hz: tuple[float, ...]


class MmaTiming(Section):
    """Synchronous MMA by size: ``operand_bits`` = m x n x k x element bits."""

    operand_bits: int = Field(gt=0)
    interval_cycles: float = Field(gt=0)
    latency_cycles: float = Field(gt=0)


class Timing(Section):
    """Everything between a program and cycles; see each group. ``opcodes`` refines ``pipes`` for single
    mnemonics (longest dotted prefix wins, e.g. "IMAD.HI")."""

    issue: IssueTiming
    pipes: dict[str, PipeTiming]
    opcodes: dict[str, PipeTiming]
    mma: dict[str, MmaTiming]
    tensor_async: TensorAsyncTiming
    shared: SharedTiming
    l1: L1Timing
    bulk: BulkTiming
    barrier: BarrierTiming
    l2: L2Timing
    dram: DramTiming
    launch: LaunchTiming
    clock: ClockTiming
