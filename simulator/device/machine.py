"""The simulated machine of a launch: which SMs are simulated, whom they stand for, and what it has counted.

A full run simulates every SM.  A larger kernel is run on fewer SMs; each stands for a run of the chip's SMs
and issues their memory requests too, with their own CTAs' addresses, so that L2, DRAM and
the L2's bandwidth see the whole chip.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from simulator.hw.config import HardwareConfig
from simulator.hw.timing import Timing
from simulator.isa.effects import (
    CAUSE_EPILOGUE,
    CAUSE_ISSUE,
    CAUSE_TAIL,
    CAUSE_TENSOR,
    COUNTERS,
    EPILOGUE,
    N_CAUSES,
    N_PHASES,
    N_REASONS,
)
from simulator.lower.events import n_mbarriers
from simulator.memory.layout import COUNTER
from simulator.sm.heap import MachineShape
from simulator.sm.inputs import CYCLE, E_PATTERN, E_TENSOR, Program
from simulator.sm.layout import (
    CTA_RUN,
    EVENT_FIELDS,
    EVENTS,
    FINISHED,
    N_EVENTS,
    N_SMS,
    N_SUBPARTITIONS,
    P_BULK_STORE,
    P_STORE,
    P_TENSOR_BUSY,
    P_WRITE_ACCEPTED,
    S_ISSUED,
    S_LAST,
    S_MMA_BUSY,
    S_TENSOR_SEEN,
    SHARE_SHIFT,
    SM_SIZE,
    SMS,
    SMSP_SIZE,
    SMSPS,
    SPANS,
    STACKS,
    STALLS,
    W_BLOCK,
    W_STACK,
    WARP_FIELDS,
    WARPS,
)


@dataclass(frozen=True)
class Plan:
    """How a kernel is simulated. ``n_sms`` simulated SMs of ``n_chip_sms``; ``n_slots`` CTAs per SM;
    one of 2**``sample_shift`` lines is followed through the L2; ``clock_hz`` SM clock assumed for L2 and DRAM rates;
    ``skips_waves``: whether waves that repeat each other are extrapolated."""

    n_sms: int
    n_chip_sms: int
    n_slots: int
    sample_shift: int
    clock_hz: float
    l1_bytes: int
    skips_waves: bool = True


@dataclass(frozen=True)
class Watch:
    """What a replay keeps beside its totals. ``roles``: role of each warp of a CTA (empty: all have one);
    ``n_profiled``: static rows whose stalls are kept apart; ``n_events``: room of the event log.
    ``explains``: whether time is divided by cause (the cycle stack); a replay without is faster."""

    roles: tuple[int, ...] = ()
    n_profiled: int = 0
    n_events: int = 0
    explains: bool = True


NOTHING_MORE = Watch()


@dataclass(frozen=True)
class Run:
    """Outcome of a replay. ``end_cycles`` from launch to the last write; ``stalls`` cycles by reason over all
    simulated warps; ``counters`` chip-wide by name; ``cta_span`` [n, 2] cycles of simulated CTAs (start, end).
    ``issued`` instructions; ``represented``: with those of extrapolated waves; ``busy_cycles``: CTA cycles on simulated SMs.
    ``stack`` ticks int64 [roles, phases, causes]: the time of ``n_subpartitions`` that had a warp, ``end_ticks`` each;
    ``row_stalls`` ticks int64 [roles, rows, reasons] (one row unless the watch profiles); ``events`` int64 [n, 5]."""

    end_cycles: float
    last_issue_cycles: float
    issued: int
    represented: int
    finished: bool
    stalls: np.ndarray
    counters: dict[str, int]
    cta_span: np.ndarray
    busy_cycles: float
    stack: np.ndarray
    n_subpartitions: int
    end_ticks: int
    row_stalls: np.ndarray
    events: np.ndarray
    machine: np.ndarray


def members_of(plan: Plan) -> list[list[int]]:
    """Chip SMs that each simulated SM stands for, itself first."""
    return [list(map(int, part)) for part in np.array_split(np.arange(plan.n_chip_sms), plan.n_sms)]


def first_wave(plan: Plan, members: list[list[int]], n_ctas: int) -> np.ndarray:
    """CTA of each member in each slot at the start, int64 [n_sms * n_slots, most members], -1 none.

    CTAs go out in rounds, one per SM.  A simulated SM without a CTA of its own takes over a member's.
    """
    table = np.full((plan.n_sms * plan.n_slots, max(map(len, members))), -1, np.int64)
    for sm, chip_sms in enumerate(members):
        for slot in range(plan.n_slots):
            ctas = [slot * plan.n_chip_sms + chip_sm for chip_sm in chip_sms]
            placed = [cta for cta in ctas if cta < n_ctas]
            table[sm * plan.n_slots + slot, : len(placed)] = placed
    return table


def coalescer_of(n_chip_sms: int, coalescer_sms: tuple[int, ...]) -> np.ndarray:
    """Request coalescer in front of each chip SM, int64 [n_chip_sms]; SMs are numbered in launch order."""
    sizes = np.array(coalescer_sms)
    bounds = np.cumsum(sizes) * n_chip_sms // sizes.sum()
    return np.searchsorted(bounds, np.arange(n_chip_sms), side="right")


def lags(n_chip_sms: int) -> np.ndarray:
    """Lag of each chip SM's requests as a multiple of the typical one (2**-SHARE_SHIFT): exponentially distributed, int64."""
    u = (np.arange(n_chip_sms) * LAG_STEP % WORD + 0.5) / WORD
    return np.asarray(np.round(-np.log1p(-u) * (1 << SHARE_SHIFT)).astype(np.int64))


LAG_STEP = 0x9E3779B1
WORD = 1 << 32
"""Multiplicative hash of 32 bits."""


def run_step(n_runs: int) -> int:
    """Distance in a round between runs of CTAs on neighbouring SMs: prime to the number of runs, so that none is lost."""
    return next(step for step in RUN_STEPS if math.gcd(step, max(1, n_runs)) == 1)


RUN_STEPS = (7, 5, 3, 1)


def uses_memory(program: Program) -> bool:
    """Whether a program reads or writes global memory."""
    return bool(((program.event_table[:, E_PATTERN] >= 0) | (program.event_table[:, E_TENSOR] >= 0)).any())


def machine_shape(
    hw: HardwareConfig, timing: Timing, plan: Plan, program: Program, watch: Watch = NOTHING_MORE
) -> MachineShape:
    """Sizes of the machine that a plan needs."""
    sections = hw.execution_sections()
    n_partitions = sections.l2.n_partitions or 1
    lines = sections.l2.capacity_bytes // sections.l1.line_bytes // n_partitions >> plan.sample_shift
    domain_of = coalescer_of(plan.n_chip_sms, timing.l2.coalescer_sms)
    return MachineShape(
        members=members_of(plan),
        partition_of=domain_of % n_partitions,
        domain_of=domain_of,
        n_slots=plan.n_slots,
        n_warps=program.n_warps,
        n_mbarriers=n_mbarriers(program.event_table),
        n_ctas=len(program.cta_class),
        n_bases=program.cta_base.shape[1],
        l1_sets=plan.l1_bytes // sections.l1.line_bytes // timing.l1.ways,
        l1_ways=timing.l1.ways,
        n_partitions=n_partitions,
        l2_sets=max(1, lines // timing.l2.ways),
        l2_ways=timing.l2.ways,
        n_domains=len(timing.l2.coalescer_sms),
        merge_slots=timing.l2.coalescer_lines,
        lag_of=lags(plan.n_chip_sms),
        run_step=run_step(plan.n_chip_sms // CTA_RUN),
        roles=watch.roles,
        n_profiled=watch.n_profiled,
        explains=watch.explains,
        n_events=watch.n_events,
    )


def collect(x: np.ndarray, shape: MachineShape, issued: int) -> Run:
    """What a finished (or stuck) machine has counted."""
    spans = x[x[SPANS] : x[SPANS] + 2 * shape.n_ctas].reshape(-1, 2)
    sms = x[x[SMS] : x[SMS] + x[N_SMS] * x[SM_SIZE]].reshape(x[N_SMS], x[SM_SIZE])
    n_warps = shape.n_sms * shape.n_slots * shape.n_warps
    warps = x[x[WARPS] : x[WARPS] + n_warps * WARP_FIELDS].reshape(n_warps, WARP_FIELDS)
    ended = int(spans[:, 1].max(initial=0))
    cta_span = spans[spans[:, 0] >= 0] / CYCLE
    end = max(ended, int(sms[:, [P_STORE, P_WRITE_ACCEPTED, P_BULK_STORE]].max(initial=0)))
    row_stalls = x[x[STALLS] : x[STACKS]].reshape(shape.n_roles, -1, N_REASONS)
    stack, n_subpartitions = finished_stack(x, shape, ended, end)
    return Run(
        end_cycles=end / CYCLE,
        last_issue_cycles=ended / CYCLE,
        issued=issued,
        represented=issued,
        finished=bool((warps[:, W_BLOCK] == FINISHED).all()),
        stalls=row_stalls.sum((0, 1)) / CYCLE,
        counters={name: int(x[COUNTER + i]) for i, name in enumerate(COUNTERS)},
        cta_span=cta_span,
        busy_cycles=float((cta_span[:, 1] - cta_span[:, 0]).sum()),
        stack=stack,
        n_subpartitions=n_subpartitions,
        end_ticks=end,
        row_stalls=row_stalls,
        events=x[x[EVENTS] : x[EVENTS] + x[N_EVENTS] * EVENT_FIELDS].reshape(-1, EVENT_FIELDS),
        machine=x,
    )


def finished_stack(x: np.ndarray, shape: MachineShape, ended: int, end: int) -> tuple[np.ndarray, int]:
    """The cycle stack with what follows each sub-partition's last issue: its slot, tensor work still running, idleness
    until the last CTA has ended (tail), then the last writes (epilogue).

    Returns (int64 [roles, phases, causes] in ticks, sub-partitions that had a warp)."""
    stack = x[x[STACKS] : x[STACKS] + shape.n_roles * N_PHASES * N_CAUSES].reshape(shape.n_roles, N_PHASES, N_CAUSES).copy()
    smsps = [x[SMSPS] + n * x[SMSP_SIZE] for n in range(shape.n_sms * N_SUBPARTITIONS)]
    used = [(n, smsp) for n, smsp in enumerate(smsps) if x[smsp + S_LAST] >= 0]
    for number, smsp in used:
        sm = x[SMS] + number // N_SUBPARTITIONS * x[SM_SIZE]
        row = stack[(x[x[smsp + S_LAST] + W_STACK] - x[STACKS]) // (N_PHASES * N_CAUSES), EPILOGUE]
        left = end - x[smsp + S_ISSUED]
        busy = x[sm + P_TENSOR_BUSY] + x[smsp + S_MMA_BUSY] - x[smsp + S_TENSOR_SEEN]
        for cause, most in (
            (CAUSE_TENSOR, max(0, busy)),
            (CAUSE_ISSUE, CYCLE),
            (CAUSE_EPILOGUE, end - ended),
            (CAUSE_TAIL, left),
        ):
            row[cause] += min(most, left)
            left -= min(most, left)
    return stack, len(used)
