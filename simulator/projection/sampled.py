"""Projection of a kernel from parts of its work: for pre-checks and comparisons of designs in fractions of a second."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from simulator.device.machine import Plan, Watch
from simulator.device.simulate import simulate
from simulator.errors import UserError
from simulator.hw.config import HardwareConfig
from simulator.hw.timing import Timing
from simulator.kernels.sampling import Extent, Sample
from simulator.lower.program import lower, ready_to_lower, timing_of
from simulator.projection.bounds import lower_bounds, tensor_cycles
from simulator.projection.clock import SETTLED, expected_clock_hz, sustained_clock_hz
from simulator.projection.interval import DESIGN, interval_of
from simulator.projection.occupancy import Occupancy
from simulator.projection.plan import Budget, choose_plan
from simulator.projection.run import SECTOR_BYTES, stall_shares
from simulator.projection.shared_traffic import shared_traffic
from simulator.projection.stuck import describe_deadlock
from simulator.sm.inputs import Program
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
class _Run:
    """One simulated part, as numbers that grow linearly with the work."""

    values: dict[str, float]
    stalls: dict[str, float]


def project_sampled(parts: Parts, sample: Sample, budget: Budget, settles_clock: bool = True) -> SampledProjection:
    """Run the parts of ``sample`` and extrapolate. ``settles_clock``: at the clock that the whole is expected to sustain, and
    again where it sustains another; comparisons of designs leave it at that of short kernels."""
    started = time.perf_counter()
    clock = parts.timing.clock
    busy = sample.extrapolate([parts.lowered(extent).tensor_cycles for extent in sample.extents])
    clock_hz = clock.short_tensor_hz if busy > 0 else clock.plain_hz
    if settles_clock:
        clock_hz = expected_clock_hz(clock, busy)
    while True:
        runs = [parts.run(extent, clock_hz, budget) for extent in sample.extents]
        whole = {name: sample.extrapolate([run.values[name] for run in runs]) for name in runs[0].values}
        settled = sustained_clock_hz(clock, whole["bound.tensor"] / whole["cycles"], whole["cycles"] / clock_hz)
        if not settles_clock or abs(settled / clock_hz - 1) <= SETTLED:
            break
        clock_hz, settles_clock = settled, False
    bounds = {name.removeprefix("bound."): value for name, value in whole.items() if name.startswith("bound.")}
    cycles = max(whole["cycles"], *bounds.values())
    return SampledProjection(
        cycles=cycles,
        time_us=cycles / clock_hz * MEGA,
        clock_mhz=clock_hz / MEGA,
        bound_by=max(bounds, key=lambda name: bounds[name]),
        bounds=bounds,
        warp_instructions=round(whole["warp_instructions"]),
        smem={name: max(0, round(whole[name])) for name in ("wavefronts", "bank_conflicts")},
        bytes={name: max(0, round(whole[name])) for name in _BYTES},
        stalls=runs[-1].stalls,
        parts=len(runs),
        seconds=time.perf_counter() - started,
        interval=interval_of(cycles, cycles / clock_hz * MEGA, bounds, parts.hw, DESIGN),
    )


_BYTES = {
    "l2_read": "l2_read_sectors",
    "l2_write": "l2_write_sectors",
    "dram_read": "dram_read_bytes",
    "dram_write": "dram_write_bytes",
}


@dataclass(frozen=True)
class _Lowered:
    """One part before it runs. ``tensor_cycles``: least cycles that it keeps the tensor cores of an SM busy."""

    trace: KernelTrace
    program: Program
    tensor_cycles: float


class Parts:
    """Parts of one kernel's work: ``build(extent)`` is their trace, on a chip with ``resident`` CTAs an SM. What was built,
    lowered or run once is not again."""

    def __init__(self, build: Callable[[Extent], KernelTrace], hw: HardwareConfig, resident: Occupancy) -> None:
        self.build, self.hw, self.resident = build, hw, resident
        self.timing = timing_of(hw)
        self._lowered: dict[Extent, _Lowered] = {}
        self._runs: dict[tuple[Extent, Plan], _Run] = {}

    def lowered(self, extent: Extent) -> _Lowered:
        if extent not in self._lowered:
            trace = ready_to_lower(self.build(extent))
            program = lower(trace, self.hw)
            self._lowered[extent] = _Lowered(trace, program, tensor_cycles(trace, program))
        return self._lowered[extent]

    def run(self, extent: Extent, clock_hz: float, budget: Budget) -> _Run:
        """Simulate a part. UserError where its warps wait for each other."""
        part = self.lowered(extent)
        plan = choose_plan(part.trace, part.program, self.hw, self.resident, clock_hz, budget)
        if (extent, plan) not in self._runs:
            self._runs[extent, plan] = _run(part, self.hw, self.timing, plan)
        return self._runs[extent, plan]


def _run(part: _Lowered, hw: HardwareConfig, timing: Timing, plan: Plan) -> _Run:
    trace, program = part.trace, part.program
    run = simulate(program, hw, timing, plan, watch=Watch(explains=False))
    if not run.finished:
        raise UserError(describe_deadlock(trace, program, run))
    bounds = lower_bounds(trace, program, hw, timing, run, plan.clock_hz)
    shared = shared_traffic(trace, program, hw, run.counters)
    values = {
        "cycles": run.end_cycles + timing.launch.drain_cycles,
        "warp_instructions": float(trace.warp_instructions),
        "wavefronts": float(shared.wavefronts),
        "bank_conflicts": float(shared.bank_conflicts),
        **{f"bound.{name}": value for name, value in bounds.items()},
        **{name: float(run.counters[c]) * (SECTOR_BYTES if c.endswith("sectors") else 1) for name, c in _BYTES.items()},
    }
    return _Run(values, stall_shares(run))
