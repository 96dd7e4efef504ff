"""Trace and chip in, Projection out."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from simulator.device.machine import Plan, Run, Watch
from simulator.device.scout import cycles_of_start
from simulator.device.simulate import simulate
from simulator.errors import UserError
from simulator.hw.config import HardwareConfig
from simulator.isa.effects import SECTOR_SHIFT, STALL_REASONS
from simulator.lower.program import lower, ready_to_lower, timing_of
from simulator.lower.regions import roles_of
from simulator.projection.bounds import lower_bounds, tensor_cycles
from simulator.projection.clock import SETTLED, expected_clock_hz, sustained_clock_hz
from simulator.projection.cycle_stack import cycle_stack
from simulator.projection.diagnosis import diagnose
from simulator.projection.interval import interval_of
from simulator.projection.occupancy import Occupancy, occupancy
from simulator.projection.plan import DEFAULT_INSTRUCTION_BUDGET, choose_plan
from simulator.projection.projection import Projection
from simulator.projection.shared_traffic import SharedTraffic, shared_traffic
from simulator.projection.stuck import describe_deadlock
from simulator.sm.inputs import Program
from simulator.trace.kernel_trace import KernelTrace

MEGA = 1e6
MOST_CLOCKS = 3
"""Replays of a kernel whose clock depends on how busy it keeps the tensor cores."""
SCOUT_SHARE, SCOUT_INSTRUCTIONS = 0.1, 500_000
"""The clock is scouted on this share of the instructions of a replay, at most so many. On 32 measured matrix kernels (`fit`) its
clock is within 0.2 % (median) of the one that the whole replay settles at, and beyond 3 % for one, which takes 50 us."""

SECTOR_BYTES = 1 << SECTOR_SHIFT


@dataclass(frozen=True)
class Replay:
    """A finished replay and what it was made of. ``roles``: names of the warp roles; ``clock_hz``: the SM clock it settled at."""

    trace: KernelTrace
    program: Program
    resident: Occupancy
    plan: Plan
    roles: tuple[str, ...]
    run: Run
    clock_hz: float
    explains: bool


def replay_trace(
    trace: KernelTrace,
    hw: HardwareConfig,
    instruction_budget: int = DEFAULT_INSTRUCTION_BUDGET,
    profile: bool = False,
    explains: bool = True,
    edit: Callable[[Program, KernelTrace, HardwareConfig], Program] | None = None,
) -> Replay:
    """Replay ``trace`` on ``hw``, again if its clock settles elsewhere. ``profile``: keep stalls of each instruction apart;
    ``explains``: divide time by cause; ``edit``: change the lowered program before.

    Raises as ``project_trace``.
    """
    timing = timing_of(hw)
    trace = ready_to_lower(trace)
    program = lower(trace, hw)
    if edit is not None:
        program = edit(program, trace, hw)
    resident = occupancy(
        hw,
        trace.registers_per_thread,
        trace.launch.n_threads,
        trace.smem_bytes_per_cta,
        cluster=int(np.prod(trace.launch.cluster)),
    )
    busy_cycles = tensor_cycles(trace, program) / hw.sm.count
    clock_hz = expected_clock_hz(timing.clock, busy_cycles)
    plan = choose_plan(trace, program, hw, resident, clock_hz, instruction_budget)
    if busy_cycles:
        plan = _at_scouted_clock(trace, program, hw, plan, busy_cycles)
    roles, role_of_warp = roles_of(trace, program.static)
    watch = Watch(role_of_warp, len(trace.static) if profile else 0, explains=explains)
    for attempt in range(1, MOST_CLOCKS + 1):
        run = simulate(program, hw, timing, plan, watch=watch)
        if not run.finished:
            raise UserError(describe_deadlock(trace, program, run))
        settled = _settled(plan, sustained_clock_hz(timing.clock, busy_cycles / run.end_cycles, run.end_cycles / plan.clock_hz))
        if settled is plan or attempt == MOST_CLOCKS:
            break
        plan = settled
    return Replay(trace, program, resident, plan, roles, run, plan.clock_hz, explains)


def _at_scouted_clock(trace: KernelTrace, program: Program, hw: HardwareConfig, plan: Plan, busy_cycles: float) -> Plan:
    """The plan at the clock that a kernel would sustain if it kept the pace of its start."""
    timing = timing_of(hw)
    n_simulated = trace.warp_instructions * plan.n_sms / plan.n_chip_sms
    start = cycles_of_start(program, hw, timing, plan, min(int(SCOUT_SHARE * n_simulated), SCOUT_INSTRUCTIONS))
    if start is None:
        return plan
    issued, cycles = start
    end_cycles = cycles * n_simulated / issued
    return _settled(plan, sustained_clock_hz(timing.clock, busy_cycles / end_cycles, end_cycles / plan.clock_hz))


def _settled(plan: Plan, clock_hz: float) -> Plan:
    """The plan at another clock; itself when that is near the assumed one."""
    return plan if abs(clock_hz / plan.clock_hz - 1) <= SETTLED else replace(plan, clock_hz=clock_hz)


def project_trace(
    trace: KernelTrace, hw: HardwareConfig, instruction_budget: int = DEFAULT_INSTRUCTION_BUDGET, explains: bool = True
) -> Projection:
    """Replay ``trace`` on ``hw``. ``instruction_budget``: warp instructions to issue at most, about. Without ``explains``
    the replay is faster, and the projection has no cycle stack.

    Raises UserError for a launch or instruction set that the chip refuses and for a kernel that deadlocks,
    Unsupported for what is not modelled.
    """
    started = time.perf_counter()
    return project_replay(replay_trace(trace, hw, instruction_budget, explains=explains), hw, started)


def project_replay(replay: Replay, hw: HardwareConfig, started: float) -> Projection:
    """What a replay that began at ``started`` (seconds of time.perf_counter) says."""
    timing = timing_of(hw)
    trace, program, run, plan, clock_hz = replay.trace, replay.program, replay.run, replay.plan, replay.clock_hz
    resident = replay.resident
    bounds = lower_bounds(trace, program, hw, timing, run, clock_hz)
    cycles = max(run.end_cycles + timing.launch.drain_cycles, *bounds.values())
    shared = shared_traffic(trace, program, hw, run.counters)
    bound_by = max(bounds, key=lambda name: bounds[name])
    explanation: dict[str, Any] = {}
    if replay.explains:
        stack = cycle_stack(run, plan, trace.launch.n_ctas, replay.roles, shared, cycles, timing.launch.drain_cycles, bound_by)
        explanation = {
            "cycle_stack": stack.shares,
            "attribution": stack.to_json(),
            "diagnosis": diagnose(
                stack.shares, trace.launch.n_ctas, hw.sm.count, clock_hz, hw.execution_sections().clock.boost_hz
            ),
        }
    return Projection(
        kernel=trace.kernel,
        hw=hw.name,
        hw_digest=hw.digest(),
        cycles=cycles,
        time_us=cycles / clock_hz * MEGA,
        interval=interval_of(cycles, cycles / clock_hz * MEGA, bounds, hw),
        clock_mhz=clock_hz / MEGA,
        bound_by=bound_by,
        bounds=bounds,
        occupancy=_occupancy(resident, run, plan, hw, trace, cycles),
        waves=trace.launch.n_ctas / (hw.sm.count * resident.ctas_per_sm),
        tail_fraction=_tail(run, timing.launch.latency_cycles, plan),
        warp_instructions=trace.warp_instructions,
        smem={"wavefronts": shared.wavefronts, "bank_conflicts": shared.bank_conflicts},
        bytes=_bytes(run),
        stalls=stall_shares(run),
        weakest_inputs=weakest_inputs(hw),
        simulated={
            "fraction": run.issued / max(1, trace.warp_instructions),
            "seconds": time.perf_counter() - started,
        },
        counters=_counters(trace, program, run, cycles, clock_hz, shared, hw),
        warnings=list(trace.warnings),
        **explanation,
    )


def _occupancy(
    resident: Occupancy, run: Run, plan: Plan, hw: HardwareConfig, trace: KernelTrace, cycles: float
) -> dict[str, Any]:
    answer = resident.to_json()
    busy = run.busy_cycles * trace.launch.n_warps
    answer["achieved"] = min(1.0, busy / (plan.n_sms * _active_cycles(hw, cycles) * hw.sm.max_warps))
    return answer


def _active_cycles(hw: HardwareConfig, cycles: float) -> float:
    """Cycles in which an SM that gets CTAs has one: a profiler's shares of active cycles leave the launch out."""
    return max(1.0, cycles - timing_of(hw).launch.latency_cycles)


def _tail(run: Run, launch_cycles: float, plan: Plan) -> float:
    """Share of the busy span after the first simulated SM slot ran out of CTAs."""
    end = run.cta_span[:, 1]
    if not len(end):
        return 0.0
    last = np.sort(end)[-min(len(end), plan.n_sms * plan.n_slots) :]
    return float((last[-1] - last[0]) / max(1.0, run.last_issue_cycles - launch_cycles))


def _bytes(run: Run) -> dict[str, int]:
    c = run.counters
    return {
        "l2_read": c["l2_read_sectors"] * SECTOR_BYTES,
        "l2_write": c["l2_write_sectors"] * SECTOR_BYTES,
        "dram_read": c["dram_read_bytes"],
        "dram_write": c["dram_write_bytes"],
    }


def stall_shares(run: Run) -> dict[str, float]:
    """Resident warp time by reason; the shares sum to 1."""
    total = float(run.stalls.sum())
    return {name: float(value) / total for name, value in zip(STALL_REASONS, run.stalls, strict=True)}


def weakest_inputs(hw: HardwareConfig) -> list[dict[str, Any]]:
    """Timing values that rest on less than a measurement, weakest first."""
    rank = {"assumed": 0, "extrapolated": 1, "derived": 2}
    weak: list[dict[str, Any]] = []
    for path in hw.provenance:
        origin = hw.provenance[path]
        confidence = str(getattr(origin.confidence, "value", origin.confidence))
        if path.startswith("timing.") and confidence in rank:
            weak.append({"path": path, "value": origin.value, "source": origin.source, "confidence": confidence})
    return sorted(weak, key=lambda row: (rank[row["confidence"]], row["path"]))[:N_WEAKEST]


N_WEAKEST = 8


def _counters(
    trace: KernelTrace,
    program: Program,
    run: Run,
    cycles: float,
    clock_hz: float,
    shared: SharedTraffic,
    hw: HardwareConfig,
) -> dict[str, float]:
    """Predicted hardware counters under the names of the measured columns."""
    c = run.counters
    stalls = run.stalls / max(1, run.represented)
    named = {f"stall_{name}": float(value) for name, value in zip(STALL_REASONS, stalls, strict=True)}
    active = min(hw.sm.count, trace.launch.n_ctas) * _active_cycles(hw, cycles)
    return {
        **named,
        "ncu_time_ns": cycles / clock_hz * 1e9,
        "l2_read_sectors": float(c["l2_read_sectors"]),
        "l2_write_sectors": float(c["l2_write_sectors"]),
        "l2_miss_sectors": float(c["l2_miss_sectors"]),
        "dram_read_bytes": float(c["dram_read_bytes"]),
        "dram_write_bytes": float(c["dram_write_bytes"]),
        "l2_to_sm_bytes": float(c["fill_bytes"]),
        "l2_to_sm_tma_bytes": float(c["bulk_fill_bytes"]),
        "l1_gld_hit_sectors": float(c["l1_hit_sectors"]),
        "smem_wavefronts": float(shared.wavefronts),
        "smem_wavefronts_ld": float(shared.load_wavefronts),
        "smem_wavefronts_st": float(shared.store_wavefronts),
        "smem_wavefronts_gmma": float(shared.tensor_wavefronts),
        "smem_bank_conflicts": float(shared.bank_conflicts),
        "tensor_active_pct": min(100.0, 100.0 * tensor_cycles(trace, program) / active),
        "issue_active_pct": min(100.0, 100.0 * trace.warp_instructions / (hw.sm.n_subpartitions * active)),
    }
