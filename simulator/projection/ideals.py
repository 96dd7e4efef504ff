"""Resources made ideal, one at a time: as other hardware values, or as an edit of the lowered program.

A what-if replays the kernel on such a machine; nothing is estimated from the cycle stack.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from simulator.hw.config import HardwareConfig
from simulator.isa.effects import FIXED, PIPE_TENSOR, PIPE_TRANSCENDENTAL, TENSOR_ASYNC
from simulator.lower.events import shared_costs
from simulator.sm.inputs import (
    CYCLE,
    E_WAVEFRONTS,
    I_CONTENTION,
    I_EFFECT,
    I_INTERVAL,
    I_LATENCY,
    I_PIPE,
    I_PORT,
    I_STALL,
    Program,
)
from simulator.trace.kernel_trace import KernelTrace

ENDLESS = 1e18
"""A rate that never limits."""
NEXT_TO_NOTHING = 1e-4
"""Cycles, where a chip must have some."""

Edit = Callable[[Program, KernelTrace, HardwareConfig], Program]


@dataclass(frozen=True)
class Ideal:
    """``causes``: rows of the cycle stack that it removes, in whole or in part; ``values``: hardware values by dotted path."""

    name: str
    sentence: str
    causes: tuple[str, ...]
    values: Mapping[str, Any] = field(default_factory=dict)
    edit: Edit | None = None

    def chip(self, hw: HardwareConfig) -> HardwareConfig:
        """The chip with this resource ideal."""
        for path, value in self.values.items():
            hw = with_value(hw, path.split("."), value)
        return hw


def with_value(section: Any, path: list[str], value: Any) -> Any:
    """A frozen section with one value replaced."""
    name, *rest = path
    return section.model_copy(update={name: with_value(getattr(section, name), rest, value) if rest else value})


def without_conflicts(program: Program, trace: KernelTrace, hw: HardwareConfig) -> Program:
    """Every shared-memory access takes the fewest wavefronts that its bytes need."""
    table = program.event_table.copy()
    table[:, E_WAVEFRONTS] -= np.minimum(shared_costs(trace, hw)[1], np.maximum(table[:, E_WAVEFRONTS] - 1, 0))
    return program._replace(event_table=table)


def with_free_pipes(program: Program, trace: KernelTrace, hw: HardwareConfig) -> Program:
    """Arithmetic pipes take an instruction every cycle, also beside asynchronous MMA."""
    static = program.static.copy()
    plain = (static[:, I_EFFECT] == FIXED) & (static[:, I_PIPE] != PIPE_TENSOR)
    static[plain, I_INTERVAL] = 0
    static[:, I_CONTENTION] = 0
    return program._replace(static=static)


def with_free_transcendentals(program: Program, trace: KernelTrace, hw: HardwareConfig) -> Program:
    """Exponentials, reciprocals and their like take one issue slot and nothing else."""
    static = program.static.copy()
    static[static[:, I_PIPE] == PIPE_TRANSCENDENTAL, I_INTERVAL] = 0
    return program._replace(static=static)


def with_results_at_once(program: Program, trace: KernelTrace, hw: HardwareConfig) -> Program:
    """Results of arithmetic are there in the next cycle."""
    static = program.static.copy()
    static[:, I_STALL] = CYCLE
    static[static[:, I_EFFECT] == FIXED, I_LATENCY] = CYCLE
    return program._replace(static=static)


def with_endless_tensor_cores(program: Program, trace: KernelTrace, hw: HardwareConfig) -> Program:
    """MMAs take no tensor-core time and fetch no operands."""
    static = program.static.copy()
    mma = (static[:, I_EFFECT] == TENSOR_ASYNC) | (static[:, I_PIPE] == PIPE_TENSOR)
    static[mma, I_INTERVAL] = 1
    static[mma, I_PORT] = 0
    return program._replace(static=static)


IDEALS = (
    Ideal("no_bank_conflicts", "no shared-memory access has a bank conflict", ("bank_conflicts",), edit=without_conflicts),
    Ideal(
        "endless_shared_memory",
        "shared memory serves every wavefront at once",
        ("shared_memory", "bank_conflicts"),
        {
            "timing.shared.wavefront_cycles": NEXT_TO_NOTHING,
            "timing.shared.fill_wavefront_cycles": 0.0,
            "timing.shared.subpartition_wavefront_cycles": NEXT_TO_NOTHING,
            "timing.shared.subpartition_interval_cycles": NEXT_TO_NOTHING,
        },
    ),
    Ideal(
        "endless_hbm",
        "memory has any bandwidth",
        ("hbm_bandwidth",),
        {
            "timing.dram.read_bytes_per_second": ENDLESS,
            "timing.dram.write_bytes_per_second": ENDLESS,
            "timing.dram.mixed_write_bytes_per_second": ENDLESS,
            "timing.dram.load_latency_cycles": 0.0,
        },
    ),
    Ideal(
        "no_hbm_latency",
        "memory answers as fast as the L2",
        ("hbm_latency",),
        {"timing.dram.extra_latency_cycles": 0.0, "timing.dram.spread_cycles": 0.0},
    ),
    Ideal(
        "endless_l2",
        "the L2 and the way to it have any bandwidth",
        ("l2", "hbm_bandwidth"),
        {
            "timing.l2.read_bytes_per_second": ENDLESS,
            "timing.l2.write_bytes_per_second": ENDLESS,
            "timing.l1.fill_bytes_per_cycle": ENDLESS,
            "timing.l1.store_bytes_per_cycle": ENDLESS,
            "timing.l1.miss_cycles_per_line": NEXT_TO_NOTHING,
            "timing.bulk.fill_bytes_per_cycle": ENDLESS,
            "timing.bulk.store_bytes_per_cycle": ENDLESS,
        },
    ),
    Ideal(
        "hidden_memory_latency",
        "every load is issued early enough (a deep enough pipeline): latency 0, bandwidth as it is",
        ("l2", "hbm_latency", "tma_latency", "prologue"),
        {
            "timing.l2.near_latency_cycles": NEXT_TO_NOTHING,
            "timing.l2.latency_spread_cycles": 0.0,
            "timing.l2.far_extra_cycles": 0.0,
            "timing.dram.extra_latency_cycles": 0.0,
            "timing.dram.spread_cycles": 0.0,
            "timing.bulk.extra_latency_cycles": 0.0,
        },
    ),
    Ideal(
        "free_barriers",
        "barriers and mbarriers answer at once (warps still wait for each other)",
        ("barrier",),
        {
            "timing.barrier.base_cycles": 0.0,
            "timing.barrier.per_warp_cycles": 0.0,
            "timing.barrier.mbarrier_latency_cycles": 0.0,
            "timing.barrier.mbarrier_port_cycles": 0.0,
            "timing.barrier.mbarrier_release_cycles": 0.0,
            "timing.barrier.cluster_barrier_cycles": 0.0,
        },
    ),
    Ideal("free_pipes", "arithmetic pipes are never busy", ("other_issue",), edit=with_free_pipes),
    Ideal("results_at_once", "arithmetic has no latency", ("dependency",), edit=with_results_at_once),
    Ideal("endless_tensor_cores", "tensor cores take no time", ("tensor",), edit=with_endless_tensor_cores),
    Ideal("free_branches", "branches cost nothing", ("instruction_fetch",), {"timing.issue.taken_branch_cycles": 0.0}),
    Ideal(
        "free_launch",
        "launching the grid and its CTAs costs nothing",
        ("launch",),
        {
            "timing.launch.latency_cycles": 0.0,
            "timing.launch.extra_cold_cycles": 0.0,
            "timing.launch.drain_cycles": 0.0,
            "timing.launch.cta_interval_cycles": 0.0,
            "timing.launch.cta_turnaround_cycles": 0.0,
        },
    ),
)
PERFECT_TAIL = Ideal(
    "perfect_tail", "the grid fills whole waves: every CTA costs what those of full waves do", ("tail",)
)


def whole_waves(trace: KernelTrace, wave_ctas: int) -> KernelTrace | None:
    """The launch cut to its full waves, None if it has none or nothing beyond them. Its grid is one row of CTAs."""
    n_full = trace.launch.n_ctas // wave_ctas * wave_ctas
    if n_full in (0, trace.launch.n_ctas):
        return None
    launch = replace(trace.launch, grid=(n_full, 1, 1))
    return replace(trace, launch=launch, cta_class=trace.cta_class[:n_full], cta_base=trace.cta_base[:n_full])
