"""Projection of a kernel from parts of its work: for pre-checks and comparisons of designs in fractions of a second."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from simulator.device.machine import Watch
from simulator.device.simulate import simulate
from simulator.errors import UserError
from simulator.hw.config import HardwareConfig
from simulator.hw.timing import Timing
from simulator.kernels.sampling import Extent, Sample
from simulator.lower.events import separate_uses
from simulator.lower.program import lower, timing_of
from simulator.projection.bounds import lower_bounds, tensor_cycles
from simulator.projection.clock import SETTLED, sustained_clock_hz
from simulator.projection.interval import DESIGN, interval_of
from simulator.projection.occupancy import Occupancy
from simulator.projection.plan import Budget, choose_plan
from simulator.projection.run import SECTOR_BYTES, stall_shares
from simulator.projection.shared_traffic import shared_traffic
from simulator.projection.stuck import describe_deadlock
from simulator.trace.kernel_trace import KernelTrace

MEGA = 1e6


@dataclass(frozen=True)
class SampledProjection:
    """A whole kernel from parts: ``cycles`` and ``bounds`` in SM cycles, ``time_us``; ``stalls`` shares of the largest
    part; ``smem`` and ``bytes`` as in Projection; ``parts``: how many were simulated; ``seconds`` that took; ``interval``: as
    in Projection, of generated designs."""

    cycles: float
    time_us: float
    clock_mhz: float
    bound_by: str
    bounds: dict[str, float]
    warp_instructions: int
    smem: dict[str, int]
    bytes: dict[str, int]
    stalls: dict[str, float]
    parts: int
    seconds: float
    interval: dict[str, Any]


@dataclass(frozen=True)
class _Part:
    """One simulated part, as numbers that grow linearly with the work."""

    values: dict[str, float]
    stalls: dict[str, float]


def project_sampled(
    build: Callable[[Extent], KernelTrace],
    sample: Sample,
    hw: HardwareConfig,
    resident: Occupancy,
    budget: Budget,
    settles_clock: bool = True,
) -> SampledProjection:
    """Run the parts of ``sample`` and extrapolate. ``settles_clock``: run again at the clock that the whole sustains where
    that differs; comparisons of designs leave it at the first one."""
    started = time.perf_counter()
    timing = timing_of(hw)
    traces = [separate_uses(build(extent)) for extent in sample.extents]
    clock_hz = 0.0
    while True:
        parts = [_run(trace, hw, timing, resident, clock_hz, budget) for trace in traces]
        whole = {name: sample.extrapolate([part.values[name] for part in parts]) for name in parts[0].values}
        settled = sustained_clock_hz(timing.clock, whole["bound.tensor"] / whole["cycles"], whole["cycles"] / whole["clock_hz"])
        if not settles_clock or clock_hz or abs(settled / whole["clock_hz"] - 1) <= SETTLED:
            break
        clock_hz = settled
    bounds = {name.removeprefix("bound."): value for name, value in whole.items() if name.startswith("bound.")}
    cycles = max(whole["cycles"], *bounds.values())
    return SampledProjection(
        cycles=cycles,
        time_us=cycles / whole["clock_hz"] * MEGA,
        clock_mhz=whole["clock_hz"] / MEGA,
        bound_by=max(bounds, key=lambda name: bounds[name]),
        bounds=bounds,
        warp_instructions=round(whole["warp_instructions"]),
        smem={name: max(0, round(whole[name])) for name in ("wavefronts", "bank_conflicts")},
        bytes={name: max(0, round(whole[name])) for name in _BYTES},
        stalls=parts[-1].stalls,
        parts=len(parts),
        seconds=time.perf_counter() - started,
        interval=interval_of(cycles, cycles / whole["clock_hz"] * MEGA, bounds, hw, DESIGN),
    )


_BYTES = {
    "l2_read": "l2_read_sectors",
    "l2_write": "l2_write_sectors",
    "dram_read": "dram_read_bytes",
    "dram_write": "dram_write_bytes",
}


def _run(trace: KernelTrace, hw: HardwareConfig, timing: Timing, resident: Occupancy, clock_hz: float, budget: Budget) -> _Part:
    program = lower(trace, hw)
    busy = tensor_cycles(trace, program)
    clock_hz = clock_hz or (timing.clock.short_tensor_hz if busy else timing.clock.plain_hz)
    run = simulate(program, hw, timing, choose_plan(trace, program, hw, resident, clock_hz, budget), watch=Watch(explains=False))
    if not run.finished:
        raise UserError(describe_deadlock(trace, program, run))
    bounds = lower_bounds(trace, program, hw, timing, run, clock_hz)
    shared = shared_traffic(trace, program, hw, run.counters)
    values = {
        "cycles": run.end_cycles + timing.launch.drain_cycles,
        "clock_hz": clock_hz,
        "warp_instructions": float(trace.warp_instructions),
        "wavefronts": float(shared.wavefronts),
        "bank_conflicts": float(shared.bank_conflicts),
        **{f"bound.{name}": value for name, value in bounds.items()},
        **{name: float(run.counters[c]) * (SECTOR_BYTES if c.endswith("sectors") else 1) for name, c in _BYTES.items()},
    }
    return _Part(values, stall_shares(run))
