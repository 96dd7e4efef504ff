"""Shared-memory wavefronts and bank conflicts of a launch, as the profiler counts them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.hw.config import HardwareConfig
from simulator.isa.effects import TENSOR_ASYNC
from simulator.lower.events import EventUse, shared_costs
from simulator.sm.inputs import I_EFFECT, Program
from simulator.trace.kernel_trace import KernelTrace


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
GROUP_WARPS = 4
MMA_ROWS = 64


def shared_traffic(trace: KernelTrace, program: Program, hw: HardwareConfig) -> SharedTraffic:
    """Wavefronts of loads, stores, atomics, copies into shared memory and MMA operand fetch.

    Measured: a load or store whose lanes are all off counts one, a shuffle and a read of a thread
    number one, a copy that bypasses the L1 none, a barrier one per CTA (not beside asynchronous MMA).
    """
    wavefronts, conflicts = shared_costs(trace, hw)
    static = trace.static
    base = np.array([opcode.split(".")[0] for opcode in static.opcode])
    group = np.select([np.isin(base, _LOADS), np.isin(base, _STORES)], [LOAD, STORE], OTHER)
    once = np.isin(base, _COUNTED_ONCE) | np.array(
        [b == "S2R" and _THREAD_ID in t for b, t in zip(base, static.text, strict=True)]
    )
    fetches = program.static[:, I_EFFECT] == TENSOR_ASYNC
    per_cta = (base == "BAR") * (0.0 if fetches.any() else 1.0 / trace.launch.n_warps)
    operand = np.where(fetches, _operand_wavefronts(static.argument), 0)
    dummy = np.isin(base, _LOADS + _STORES)
    uncounted = np.array(["LDGSTS" in o and "BYPASS" in o for o in static.opcode])
    wavefronts = np.where(uncounted[EventUse(trace).instruction], 0, wavefronts)
    conflicts = np.where(uncounted[EventUse(trace).instruction], 0, conflicts)
    per_class = np.zeros((len(trace.streams), N_SUMS))
    for c, warps in enumerate(trace.streams):
        for s in warps:
            _add_stream(per_class[c], s, group, once + per_cta, operand, dummy, wavefronts, conflicts)
    total = per_class[trace.cta_class].sum(axis=0)
    return SharedTraffic(
        wavefronts=round(total[LOAD] + total[STORE] + total[OTHER] + total[TENSOR]),
        load_wavefronts=round(total[LOAD]),
        store_wavefronts=round(total[STORE]),
        tensor_wavefronts=round(total[TENSOR]),
        bank_conflicts=round(total[CONFLICTS]),
    )


LOAD, STORE, OTHER, TENSOR, CONFLICTS, N_SUMS = range(6)


def _operand_wavefronts(argument: np.ndarray) -> np.ndarray:
    """Shared operand bytes of an asynchronous MMA over the port's width, per issuing warp."""
    n, k_bytes, a_is_shared = argument[:, 0], argument[:, 1], argument[:, 2]
    return (n * k_bytes + a_is_shared * MMA_ROWS * k_bytes) / OPERAND_BYTES / GROUP_WARPS


def _add_stream(sums, s, group, once, operand, dummy, wavefronts, conflicts) -> None:  # type: ignore[no-untyped-def]
    on = s.active > 0
    with_event = on & (s.event >= 0)
    cost = np.zeros(len(s))
    cost[with_event] = wavefronts[s.event[with_event]]
    idle_load = ~on & dummy[s.instruction]
    np.add.at(sums, group[s.instruction], cost)
    sums[OTHER] += once[s.instruction[on]].sum() + idle_load.sum()
    sums[TENSOR] += operand[s.instruction[on]].sum()
    sums[CONFLICTS] += conflicts[s.event[with_event]].sum()
