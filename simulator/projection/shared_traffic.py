"""Shared-memory wavefronts and bank conflicts of a launch, as the profiler counts them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from simulator.hw.config import HardwareConfig
from simulator.isa.effects import GROUP_WARPS, TENSOR_ASYNC
from simulator.lower.empty_passes import MmaGroups, synchronization_passes
from simulator.lower.events import EventUse, shared_costs
from simulator.sm.inputs import CYCLE, I_EFFECT, I_IDLE_PASS, Program
from simulator.trace.kernel_trace import KernelTrace, Stream


@dataclass(frozen=True)
class SharedTraffic:
    """Sums over the chip."""

    wavefronts: int
    load_wavefronts: int
    store_wavefronts: int
    tensor_wavefronts: int
    bank_conflicts: int


_LOADS = ("LDS", "LDSM")
_STORES = ("STS", "STSM")
_COUNTED_ONCE = ("SHFL",)
"""Also pass the shared-memory data stage once (measured: smem_wavefronts of kernels without shared accesses)."""
_THREAD_ID = "SR_TID"
OPERAND_BYTES = 128
MMA_ROWS = 64
LOAD, STORE, OTHER, TENSOR, IDLE, CONFLICTS, N_SUMS = range(7)


def shared_traffic(trace: KernelTrace, program: Program, hw: HardwareConfig, counters: Mapping[str, int]) -> SharedTraffic:
    """Wavefronts of loads, stores, atomics, copies into shared memory, MMA operand fetch and passes without data.

    Measured: a shuffle and a read of a thread number count one; a copy that bypasses the L1 counts none, but its
    zero fill does. ``counters`` of the replay say which share of the passes of idle accesses counts.
    """
    wavefronts, conflicts = shared_costs(trace, hw)
    bypass = np.array(["LDGSTS" in o and "BYPASS" in o for o in trace.static.opcode])
    uncounted = bypass[EventUse(trace).instruction] & ~_is_zero_fill(trace)
    costs = _Costs(
        group=_group(trace),
        once=_counted_once(trace),
        idle=program.static[:, I_IDLE_PASS],
        synchronization=synchronization_passes(trace),
        operand=_operand_wavefronts(trace, program),
        wavefronts=np.where(uncounted, 0, wavefronts),
        conflicts=np.where(uncounted, 0, conflicts),
    )
    groups = MmaGroups(trace, program)
    per_class = np.zeros((len(trace.streams), N_SUMS))
    for c, warps in enumerate(trace.streams):
        for s in warps:
            per_class[c] += _sums(s, costs, groups.none_in_flight(s))
    total = per_class[trace.cta_class].sum(axis=0)
    counted = counters["counted_pass_ticks"] / CYCLE / max(1, counters["idle_passes"])
    return SharedTraffic(
        wavefronts=round(total[[LOAD, STORE, OTHER, TENSOR]].sum() + counted * total[IDLE]),
        load_wavefronts=round(total[LOAD]),
        store_wavefronts=round(total[STORE]),
        tensor_wavefronts=round(total[TENSOR]),
        bank_conflicts=round(total[CONFLICTS]),
    )


@dataclass(frozen=True)
class _Costs:
    """Wavefronts: of an issue by static instruction, and of the shared side of an event."""

    group: np.ndarray
    once: np.ndarray
    idle: np.ndarray
    synchronization: np.ndarray
    operand: np.ndarray
    wavefronts: np.ndarray
    conflicts: np.ndarray


def _group(trace: KernelTrace) -> np.ndarray:
    base = trace.static.mnemonics
    return np.select([np.isin(base, _LOADS), np.isin(base, _STORES)], [LOAD, STORE], OTHER)


def _counted_once(trace: KernelTrace) -> np.ndarray:
    static = trace.static
    base = static.mnemonics
    names_thread = np.array([_THREAD_ID in text for text in static.text], bool)
    return np.isin(base, _COUNTED_ONCE) | (base == "S2R") & names_thread


def _is_zero_fill(trace: KernelTrace) -> np.ndarray:
    """Events whose global side has no lane: copies that write zeros, bool [n_events]."""
    pattern = trace.events.pattern
    has_lane = np.append((trace.lane_patterns >= 0).any(axis=1), True)
    return ~has_lane[pattern]


def _operand_wavefronts(trace: KernelTrace, program: Program) -> np.ndarray:
    """Shared operand bytes of an asynchronous MMA over the port's width, per issuing warp; 0 for other instructions."""
    n, k_bytes, a_is_shared = trace.static.argument[:, :3].T
    fetched = (n * k_bytes + a_is_shared * MMA_ROWS * k_bytes) / OPERAND_BYTES / GROUP_WARPS
    return np.where(program.static[:, I_EFFECT] == TENSOR_ASYNC, fetched, 0.0)


def _sums(s: Stream, costs: _Costs, counts_synchronization: np.ndarray) -> np.ndarray:
    """Wavefronts of one warp by kind, float64 [N_SUMS]."""
    sums = np.zeros(N_SUMS)
    on = s.active > 0
    with_event = on & (s.event >= 0)
    event = s.event[with_event]
    np.add.at(sums, costs.group[s.instruction[with_event]], costs.wavefronts[event])
    sums[OTHER] += costs.once[s.instruction[on]].sum()
    sums[OTHER] += costs.synchronization[s.instruction[on & counts_synchronization]].sum()
    sums[IDLE] = costs.idle[s.instruction[~on]].sum()
    sums[TENSOR] = costs.operand[s.instruction[on]].sum()
    sums[CONFLICTS] = costs.conflicts[event].sum()
    return sums
