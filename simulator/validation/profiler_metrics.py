"""Which figure of a projection is the counterpart of which of the profiler's metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from simulator.validation.predictions import stalls_per_issue

WORK, TRAFFIC, CLOCK, OVERLAP, WAITING, TOTAL = "work", "traffic", "clock", "overlap", "waiting", "total"
"""What kind of figure a metric is, in the order in which differences are looked for."""

STALLS_PER_ISSUE = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"


@dataclass(frozen=True)
class Metric:
    """One comparable figure. ``path``: of the projection's document, times ``factor`` in the base unit of the profiler;
    ``names``: the profiler's metric names and its labels on the details page; ``grows``: +1 if more of it means a longer
    time, -1 if less does, 0 if it says nothing about time; ``part_of``: names of the metrics whose sum is the whole that a
    difference is judged by (186 bank conflicts mean little among 90,000 wavefronts)."""

    path: tuple[str, ...]
    names: tuple[str, ...]
    kind: str
    grows: int = 1
    factor: float = 1.0
    part_of: tuple[str, ...] = ()


def _counter(name: str, *names: str, kind: str = TRAFFIC, grows: int = 1, part_of: tuple[str, ...] = ()) -> Metric:
    return Metric(("counters", name), names, kind, grows, part_of=part_of)


_WAVEFRONTS = ("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",)
_L2_SECTORS = ("lts__t_sectors_op_read.sum", "lts__t_sectors_op_write.sum")
_DRAM_BYTES = ("dram__bytes_read.sum", "dram__bytes_write.sum")
METRICS = (
    Metric(("occupancy", "warps_per_cta"), ("launch__warps_per_block",), WORK, 0),
    Metric(("warp_instructions",), ("smsp__inst_executed.sum", "sm__inst_executed.sum", "Executed Instructions"), WORK),
    _counter("smem_wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", kind=WORK),
    _counter("smem_wavefronts_ld", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", kind=WORK, part_of=_WAVEFRONTS),
    _counter("smem_wavefronts_st", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum", kind=WORK, part_of=_WAVEFRONTS),
    _counter("smem_wavefronts_gmma", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_gmma.sum", kind=WORK, part_of=_WAVEFRONTS),
    Metric(
        ("smem", "bank_conflicts"), ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",), WORK, part_of=_WAVEFRONTS
    ),
    _counter("l1_gld_hit_sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum", grows=-1),
    _counter("l2_to_sm_bytes", "l1tex__m_xbar2l1tex_read_bytes.sum"),
    _counter("l2_to_sm_tma_bytes", "l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld.sum"),
    _counter("l2_read_sectors", "lts__t_sectors_op_read.sum", part_of=_L2_SECTORS),
    _counter("l2_write_sectors", "lts__t_sectors_op_write.sum", part_of=_L2_SECTORS),
    _counter("l2_miss_sectors", "lts__t_sectors_lookup_miss.sum"),
    Metric(("bytes", "dram_read"), ("dram__bytes_read.sum",), TRAFFIC, part_of=_DRAM_BYTES),
    Metric(("bytes", "dram_write"), ("dram__bytes_write.sum",), TRAFFIC, part_of=_DRAM_BYTES),
    Metric(
        ("clock_mhz",),
        ("smsp__cycles_elapsed.avg.per_second", "sm__cycles_elapsed.avg.per_second", "SM Frequency"),
        CLOCK,
        -1,
        1e6,
    ),
    Metric(("occupancy", "occupancy"), ("sm__maximum_warps_per_active_cycle_pct", "Theoretical Occupancy"), OVERLAP, -1, 100),
    Metric(
        ("occupancy", "achieved"), ("sm__warps_active.avg.pct_of_peak_sustained_active", "Achieved Occupancy"), OVERLAP, -1, 100
    ),
    Metric(("waves",), ("launch__waves_per_multiprocessor", "Waves Per SM"), OVERLAP, 1),
    _counter("tensor_active_pct", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", kind=OVERLAP, grows=-1),
    _counter(
        "issue_active_pct", "smsp__issue_active.avg.pct_of_peak_sustained_active", "Issue Slots Busy", kind=OVERLAP, grows=-1
    ),
    Metric(("cycles",), ("sm__cycles_elapsed.max", "gpc__cycles_elapsed.max", "sm__cycles_elapsed.avg", "Elapsed Cycles"), TOTAL),
    Metric(("time_us",), ("gpu__time_duration.sum", "Duration"), TOTAL, 1, 1e-6),
)
TIME, CYCLES = METRICS[-1], METRICS[-2]


def projected(document: Mapping[str, Any], metric: Metric) -> float | None:
    """The projection's figure in the profiler's base unit, None if the document lacks it."""
    value: Any = document
    for key in metric.path:
        if not isinstance(value, Mapping) or key not in value:
            return None
        value = value[key]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) * metric.factor


def projected_stalls(document: Mapping[str, Any]) -> dict[str, float]:
    """Warps per issue by the profiler's stall reason."""
    stalls = document.get("stalls")
    if not isinstance(stalls, Mapping) or not stalls.get("selected"):
        return {}
    return stalls_per_issue({str(reason): float(share) for reason, share in stalls.items()})
