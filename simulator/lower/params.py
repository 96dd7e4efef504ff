"""A chip's timing as the integer vectors that compiled code reads."""

from __future__ import annotations

import numpy as np

from simulator.hw.config import HardwareConfig
from simulator.hw.timing import Timing
from simulator.lower.instructions import ticks
from simulator.memory.l2 import LOAD_SHIFT, PORT_LOAD_SHIFT, RANDOM_SHIFT
from simulator.memory.layout import MEMORY_PARAMETERS
from simulator.sm.inputs import CYCLE
from simulator.sm.layout import SHARE_SHIFT, SM_PARAMETERS

QUANTUM_CYCLES = 32
"""How far one simulated SM may run ahead of another: well under an L2 latency."""


def lower_sm_parameters(timing: Timing, uses_memory: bool = True, ctas_per_sm: int = 1) -> np.ndarray:
    """SM parameters in ticks, ordered as ``SM_PARAMETERS``. ``ctas_per_sm``: CTAs that an SM runs at a time."""
    t = timing
    lag = t.l2.lag_shared if ctas_per_sm > 1 else t.l2.lag_alone
    values: dict[str, int] = {
        "taken_branch": ticks(t.issue.taken_branch_cycles),
        "scoreboard_release": ticks(t.issue.scoreboard_release_cycles),
        "tensor_issue": ticks(t.tensor_async.issue_interval_cycles),
        "tensor_queue": t.tensor_async.queue_depth,
        "same_group": round(t.tensor_async.same_group_contention * (1 << SHARE_SHIFT)),
        "wavefront": ticks(t.shared.wavefront_cycles),
        "subpartition_wavefront": ticks(t.shared.subpartition_wavefront_cycles),
        "subpartition_interval": ticks(t.shared.subpartition_interval_cycles),
        "shared_queue": t.shared.queue_depth,
        "global_queue": t.l1.queue_depth,
        "operand_release": ticks(t.shared.operand_release_cycles),
        "l1_hit": ticks(t.l1.hit_latency_cycles),
        "l1_tag": ticks(t.l1.tag_cycles_per_line),
        "l1_miss": ticks(t.l1.miss_cycles_per_line),
        "fill_byte": ticks(1 / t.l1.fill_bytes_per_cycle),
        "store_byte": ticks(1 / t.l1.store_bytes_per_cycle),
        "store_backlog": ticks(t.l1.store_backlog_cycles),
        "bulk_issue": ticks(t.bulk.issue_cycles),
        "bulk_extra": ticks(t.bulk.extra_latency_cycles),
        "bulk_release": ticks(t.bulk.operand_release_cycles),
        "bulk_store_byte": ticks(1 / t.bulk.store_bytes_per_cycle),
        "bulk_store_latency": ticks(t.bulk.store_latency_cycles),
        "barrier_base": ticks(t.barrier.base_cycles),
        "barrier_warp": ticks(t.barrier.per_warp_cycles),
        "mbarrier_port": ticks(t.barrier.mbarrier_port_cycles),
        "mbarrier_release": ticks(t.barrier.mbarrier_release_cycles),
        "cluster_barrier": ticks(t.barrier.cluster_barrier_cycles),
        "fill_wavefront": ticks(t.shared.fill_wavefront_cycles),
        "cta_interval": ticks(t.launch.cta_interval_cycles),
        "cta_turnaround": ticks(t.launch.cta_turnaround_cycles),
        "launch_latency": ticks(t.launch.latency_cycles + uses_memory * t.launch.extra_cold_cycles),
        "quantum": QUANTUM_CYCLES * CYCLE,
        "lag": ticks(lag.start_cycles),
        "lag_growth": ticks(lag.growth_cycles / ctas_per_sm),
        "lag_most": ticks(lag.most_cycles),
        "lag_restart": round(lag.restart_share * (1 << SHARE_SHIFT)),
        "lag_load": round(lag.saturation * (1 << PORT_LOAD_SHIFT)),
    }
    return np.array([values[name] for name in SM_PARAMETERS], np.int64)


def lower_memory_parameters(hw: HardwareConfig, timing: Timing, clock_hz: float, sample_shift: int) -> np.ndarray:
    """Memory parameters; L2 and DRAM keep their own clocks, so their latency and cost in SM cycles follow the SM clock."""
    sections = hw.execution_sections()
    sector = sections.l1.sector_bytes

    def per_sector(bytes_per_second: float) -> int:
        return max(1, ticks(sector * clock_hz / bytes_per_second))

    def in_own_time(cycles: float) -> int:
        return ticks(cycles * clock_hz / timing.clock.microbenchmark_hz)

    fabric = ticks(timing.l2.sm_clock_cycles)
    n_coalescers = len(timing.l2.coalescer_sms)
    values: dict[str, int] = {
        "near": fabric + in_own_time(timing.l2.near_latency_cycles - timing.l2.sm_clock_cycles),
        "near_spread": in_own_time(timing.l2.latency_spread_cycles),
        "far": in_own_time(timing.l2.far_extra_cycles),
        "dram": in_own_time(timing.dram.extra_latency_cycles),
        "dram_spread": in_own_time(timing.dram.spread_cycles),
        "dram_load": in_own_time(timing.dram.load_latency_cycles),
        "dram_refresh": in_own_time(timing.dram.refresh_cycles),
        "dram_refresh_share": round(timing.dram.refresh_share * (1 << RANDOM_SHIFT)),
        "dram_saturation": round(timing.dram.saturation_load * (1 << LOAD_SHIFT)),
        "coalescer_sector": per_sector(min(timing.l2.coalescer_bytes_per_second, timing.l2.read_bytes_per_second / n_coalescers)),
        "l2_write_sector": per_sector(timing.l2.write_bytes_per_second),
        "dram_read_sector": per_sector(timing.dram.read_bytes_per_second),
        "dram_write_sector": per_sector(timing.dram.write_bytes_per_second),
        "dram_mixed_write_sector": per_sector(timing.dram.mixed_write_bytes_per_second),
        "turnaround_window": in_own_time(timing.dram.turnaround_window_cycles),
        "atomic_sector": max(1, ticks(clock_hz / timing.l2.atomic_sectors_per_second)),
        "atomic_same_address": max(1, ticks(clock_hz / timing.l2.atomic_same_address_per_second)),
        "merge_transit": fabric + in_own_time(timing.l2.coalescer_transit_cycles - timing.l2.sm_clock_cycles),
        "sample_shift": sample_shift,
        "n_partitions": sections.l2.n_partitions or 1,
    }
    return np.array([values[name] for name in MEMORY_PARAMETERS], np.int64)
