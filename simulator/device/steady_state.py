"""A long launch is replayed until its waves repeat each other; the waves in between are extrapolated.

Time, counters and stalls of whole waves are added at the rate of the last waves that were replayed.  The tail
(the last, partial wave) is always replayed.  Launches whose CTAs differ in length are replayed in full.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from simulator.device.machine import Plan, Run, collect
from simulator.isa.effects import DRAM_READ_BYTES, DRAM_WRITE_BYTES, L2_READ_SECTORS, N_COUNTERS
from simulator.memory.layout import COUNTER
from simulator.sm.engine import run
from simulator.sm.heap import MachineShape
from simulator.sm.inputs import CYCLE, K_N_CTAS, Program
from simulator.sm.layout import CAUSE_OF, NEVER, NEXT_CTA, STALLS

NO_LIMIT = 1 << 62
WINDOW = 4
"""Waves that are compared, and whose mean is the rate of those that follow."""
TIME_TOLERANCE = 0.015
TRAFFIC_TOLERANCE = 0.075
READ_TOLERANCE = 0.01
LENGTH_TOLERANCE = 0.02
"""Relative differences: time between waves of the window, DRAM bytes and L2 reads between its halves (rasters
alternate), instructions per CTA over the grid."""


@dataclass(frozen=True)
class Sample:
    """State after some instructions: ``issued``, time in ticks, ``counters`` [N_COUNTERS], ``books``: ticks of all warps by
    stall reason, then of all sub-partitions by cause (tables STALLS and STACKS of the heap)."""

    issued: int
    ticks: int
    counters: np.ndarray
    books: np.ndarray

    def since(self, other: Sample) -> Sample:
        return Sample(
            self.issued - other.issued, self.ticks - other.ticks, self.counters - other.counters, self.books - other.books
        )


def replay(x: np.ndarray, k: np.ndarray, shape: MachineShape, plan: Plan, program: Program, log: np.ndarray) -> Run:
    """Run the launched machine to its end (or to a deadlock), skipping waves that repeat."""
    wave_ctas = plan.n_chip_sms * plan.n_slots
    per_wave = _instructions_per_wave(program, plan) if plan.skips_waves and len(log) == 0 else 0
    n_waves = shape.n_ctas // wave_ctas
    if per_wave == 0 or n_waves < WINDOW + 2:
        issued, _ = run(x, k, NO_LIMIT, log)
        return collect(x, shape, int(issued))
    samples = [_sample(x, 0, 0)]
    while True:
        issued, soonest = run(x, k, per_wave, log)
        if soonest == NEVER:
            return collect(x, shape, samples[-1].issued + int(issued))
        samples.append(_sample(x, samples[-1].issued + int(issued), int(soonest)))
        skipped = (shape.n_ctas - int(x[NEXT_CTA])) // wave_ctas
        if skipped <= 0:
            break
        if is_steady(samples):
            k[K_N_CTAS] -= skipped * wave_ctas
            break
    issued, _ = run(x, k, NO_LIMIT, log)
    found = collect(x, shape, samples[-1].issued + int(issued))
    if skipped <= 0 or not found.finished:
        return found
    return _extended(found, samples[-1].since(samples[-1 - WINDOW]), skipped * per_wave, plan)


def is_steady(samples: list[Sample]) -> bool:
    """Whether the last WINDOW waves took the same time and moved the same bytes per instruction; the first never counts."""
    if len(samples) < WINDOW + 2:
        return False
    waves = [later.since(earlier) for earlier, later in zip(samples[-WINDOW - 1 :], samples[-WINDOW:], strict=False)]
    times = _per_instruction(waves, lambda wave: wave.ticks)
    reads = _per_instruction(waves, lambda wave: wave.counters[L2_READ_SECTORS])
    traffic = _per_instruction(waves, lambda wave: wave.counters[DRAM_READ_BYTES] + wave.counters[DRAM_WRITE_BYTES])
    return (
        _spread(times) <= TIME_TOLERANCE
        and _spread(_halves(reads)) <= READ_TOLERANCE
        and _spread(_halves(traffic)) <= TRAFFIC_TOLERANCE
    )


def _per_instruction(waves: list[Sample], amount: Callable[[Sample], int]) -> np.ndarray:
    return np.array([amount(wave) / wave.issued for wave in waves])


def _halves(values: np.ndarray) -> np.ndarray:
    """Means of the first and the second half."""
    return np.asarray(values.reshape(2, -1).mean(axis=1))


def _spread(values: np.ndarray) -> float:
    mean = float(values.mean())
    return float(np.abs(values - mean).max()) / mean if mean > 0 else 0.0


def _instructions_per_wave(program: Program, plan: Plan) -> int:
    """Instructions of one wave on the simulated SMs; 0 when the CTAs of the grid differ too much in length."""
    lengths = np.diff(program.stream_start).reshape(-1, program.n_warps).sum(axis=1)
    of_cta = lengths[program.cta_class]
    chunk = plan.n_chip_sms * plan.n_slots
    n_chunks = len(of_cta) // chunk
    if n_chunks == 0:
        return 0
    means = of_cta[: n_chunks * chunk].reshape(n_chunks, chunk).mean(axis=1)
    if _spread(means) > LENGTH_TOLERANCE:
        return 0
    return int(means.mean() * plan.n_sms * plan.n_slots)


def _sample(x: np.ndarray, issued: int, ticks: int) -> Sample:
    books = x[x[STALLS] : x[CAUSE_OF]]
    return Sample(issued, ticks, x[COUNTER : COUNTER + N_COUNTERS].copy(), books.copy())


def _extended(found: Run, window: Sample, instructions: int, plan: Plan) -> Run:
    """``found`` with ``instructions`` more at the rate of ``window``."""
    times = instructions / window.issued
    cycles = window.ticks * times / CYCLE
    row_stalls = np.rint(window.books[: found.row_stalls.size].reshape(found.row_stalls.shape) * times).astype(np.int64)
    ticks = round(cycles * CYCLE)
    stack = apportion(window.books[found.row_stalls.size :], ticks * found.n_subpartitions).reshape(found.stack.shape)
    more = {name: round(int(window.counters[i]) * times) for i, name in enumerate(found.counters)}
    return replace(
        found,
        end_cycles=found.end_cycles + cycles,
        last_issue_cycles=found.last_issue_cycles + cycles,
        stalls=found.stalls + row_stalls.sum((0, 1)) / CYCLE,
        row_stalls=found.row_stalls + row_stalls,
        stack=found.stack + stack,
        end_ticks=found.end_ticks + ticks,
        represented=found.issued + instructions,
        counters={name: value + more[name] for name, value in found.counters.items()},
        busy_cycles=found.busy_cycles + cycles * plan.n_sms * plan.n_slots,
    )


def apportion(parts: np.ndarray, total: int) -> np.ndarray:
    """Integers in proportion to ``parts`` (non-negative, not all 0) whose sum is ``total``: the largest remainders round up."""
    whole = int(parts.sum())
    shares = [divmod(int(part) * total, whole) for part in parts] if whole else [(0, 0)] * len(parts)
    scaled = np.array([share for share, _ in shares], np.int64)
    by_remainder = sorted(range(len(parts)), key=lambda i: -shares[i][1])
    scaled[by_remainder[: total - int(scaled.sum())]] += 1
    return scaled
