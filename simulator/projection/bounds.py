"""Lower bounds of a launch in SM cycles: what each resource alone would need. None may exceed the projection."""

from __future__ import annotations

import numpy as np

from simulator.device.machine import Run
from simulator.hw.config import HardwareConfig
from simulator.hw.timing import Timing
from simulator.isa.effects import FIXED, GROUP_WARPS, TENSOR_ASYNC
from simulator.sm.inputs import CYCLE, E_WAVEFRONTS, I_EFFECT, I_INTERVAL, Program
from simulator.trace.kernel_trace import KernelTrace


def lower_bounds(
    trace: KernelTrace, program: Program, hw: HardwareConfig, timing: Timing, run: Run, clock_hz: float
) -> dict[str, float]:
    """Cycles by resource: instruction issue, tensor cores, shared-memory port, L2 reads, DRAM, launch."""
    n_sms = hw.sm.count
    instructions = trace.warp_instructions
    counters = run.counters
    bounds = {
        "launch": timing.launch.latency_cycles,
        "issue": instructions / (n_sms * hw.sm.n_subpartitions),
        "tensor": tensor_cycles(trace, program) / n_sms,
        "shared_memory": shared_wavefronts(trace, program) * timing.shared.wavefront_cycles / n_sms,
        "l2": counters["fill_bytes"] / timing.l1.fill_bytes_per_cycle / n_sms
        if counters["bulk_fill_bytes"] == 0
        else counters["fill_bytes"] / timing.bulk.fill_bytes_per_cycle / n_sms,
        "dram": dram_seconds(counters["dram_read_bytes"], counters["dram_write_bytes"], timing) * clock_hz,
    }
    return {name: float(value) for name, value in bounds.items()}


def dram_seconds(read_bytes: float, write_bytes: float, timing: Timing) -> float:
    """Least time of reads and writes, which share the bus: writes at the rate that they have without turnarounds."""
    return read_bytes / timing.dram.read_bytes_per_second + write_bytes / timing.dram.write_bytes_per_second


def per_class_total(trace: KernelTrace, weight_of_stream: list[list[float]]) -> float:
    """Sum over the grid of a weight per (class, warp)."""
    per_class = np.array([sum(weights) for weights in weight_of_stream])
    return float(per_class[trace.cta_class].sum())


def tensor_cycles(trace: KernelTrace, program: Program) -> float:
    """Tensor-core cycles of the launch, summed over SMs (one warpgroup MMA is issued by four warps)."""
    static = program.static
    interval = static[:, I_INTERVAL] / CYCLE
    weight = np.where(static[:, I_EFFECT] == TENSOR_ASYNC, interval / GROUP_WARPS, 0.0)
    mma = (static[:, I_EFFECT] == FIXED) & np.char.endswith(trace.static.mnemonics, "MMA")
    weight = np.where(mma, interval / GROUP_WARPS, weight)
    return per_class_total(trace, [[float(weight[s.instruction[s.active > 0]].sum()) for s in warps] for warps in trace.streams])


def shared_wavefronts(trace: KernelTrace, program: Program) -> int:
    """Shared-memory wavefronts of loads, stores and atomics of the launch."""
    shared = np.isin(trace.static.mnemonics, SHARED_BASES)
    wavefronts = program.event_table[:, E_WAVEFRONTS]
    totals = []
    for warps in trace.streams:
        row = []
        for s in warps:
            used = (s.event >= 0) & shared[s.instruction] & (s.active > 0)
            row.append(float(wavefronts[s.event[used]].sum()))
        totals.append(row)
    return int(per_class_total(trace, totals))


SHARED_BASES = ("LDS", "STS", "LDSM", "STSM", "ATOMS")
