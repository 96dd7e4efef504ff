"""The fast screen of GEMM designs: closed forms over whole columns, from nothing but the chip's configuration.

A kernel takes its launch, and then the longest of: the work of the busiest SM (tensor cores, shared-memory port, issue,
copies) with its quantisation into tiles; the chain of one CTA after another (fill, steps at their latency, epilogue); the
bytes that pass each coalescer; DRAM. It has no queues and no conflicts: it says what is worth simulating, not how long that
takes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.errors import UserError
from simulator.hw.config import HardwareConfig
from simulator.hw.timing import Timing
from simulator.isa.effects import GROUP_WARPS, LINE_BYTES
from simulator.kernels.gemm_design import REGISTERS_BESIDE
from simulator.lower.program import timing_of
from simulator.projection.clock import sustained_clocks_hz
from simulator.projection.residency import LaunchShape, ctas_by_resource
from simulator.tuning.designs import Designs, Estimate
from simulator.tuning.gemm_columns import DIRECT, STAGED, ProductProblem, accumulators, role_register_table, smem_bytes
from simulator.tuning.gemm_steps import COPY_BYTES, Step, row_bytes, step_cycles, together

START_INSTRUCTIONS = 150
EPILOGUE_INSTRUCTIONS_PER_ACCUMULATOR = 2
LOAD_PASSES = 2
"""The latency of DRAM depends on how busy it is, which depends on the time."""


def estimate(problem: ProductProblem, d: Designs, hw: HardwareConfig) -> Estimate:
    """Times of all designs of a table."""
    t = timing_of(hw)
    step = step_cycles(problem, d, hw, t)
    resident = ctas_per_sm(problem, d, hw)
    grid = _grid(problem, d, hw, t, resident)
    traffic = _traffic(problem, d, hw, t, grid)
    clock = t.clock.short_tensor_hz if problem.dtype != "fp32" else t.clock.plain_hz
    dram = (traffic.read / t.dram.read_bytes_per_second + traffic.written / t.dram.write_bytes_per_second) * clock
    path = traffic.merged_share * step.requested_bytes * clock * np.minimum(1.0, grid.units / grid.sms)
    shared = np.maximum(
        path * max(t.l2.coalescer_sms) / t.l2.coalescer_bytes_per_second, path * hw.sm.count / t.l2.read_bytes_per_second
    )
    shared = together(step.busiest, shared)
    finish = _epilogue(problem, d, hw, t)
    start = t.launch.latency_cycles + t.launch.extra_cold_cycles + grid.at_once * t.launch.cta_interval_cycles
    load = np.zeros(len(d))
    for _ in range(LOAD_PASSES):
        latency = _latency(t, step, traffic.cold_share, load)
        begin = latency + START_INSTRUCTIONS * t.pipes["alu"].interval_cycles
        own = np.maximum(step.serial, (latency + step.tensor) / np.minimum(_depth(d), grid.steps))
        busy = _sm_cycles(d, t, grid, own, shared, begin, finish)
        cycles = start + together(busy, dram + begin)
        load = np.minimum(t.dram.saturation_load, dram / cycles)
    activity = grid.units * grid.steps * step.tensor / hw.sm.count / cycles
    return Estimate(cycles, cycles / sustained_clocks_hz(t.clock, activity, cycles / clock) * 1e6)


@dataclass(frozen=True)
class _Grid:
    """``units`` of work (tiles, or splits of them) over ``sms``; the busiest SM does ``on_sm``, ``at_once`` at a time, of
    ``steps`` each."""

    units: np.ndarray
    sms: np.ndarray
    on_sm: np.ndarray
    at_once: np.ndarray
    steps: np.ndarray


def _grid(problem: ProductProblem, d: Designs, hw: HardwareConfig, t: Timing, resident: np.ndarray) -> _Grid:
    steps = problem.k_steps(d["tile_k"])
    units, sms = _units(problem, d), _usable_sms(d, hw, t)
    streams = d["stream_k"] > 0
    on_sm = np.where(streams, resident, -(-units // sms))
    per_unit = np.where(streams, -(-units * steps // (sms * resident)), -(-steps // d["split_k"]))
    units = np.where(streams, sms * resident, units)
    return _Grid(units, sms, on_sm, np.minimum(resident, on_sm), per_unit)


def _depth(d: Designs) -> np.ndarray:
    """Stages in flight while a CTA waits: where multiply-adds are asynchronous, one is still held by those of the step before,
    and asynchronous copies are waited for one stage early."""
    keeps_one = (d["method"] == 0) | (d["loads"] > 0)
    return np.maximum(1, d["stages"] - keeps_one)


def _sm_cycles(
    d: Designs, t: Timing, grid: _Grid, own: np.ndarray, shared: np.ndarray, begin: np.ndarray, finish: np.ndarray
) -> np.ndarray:
    """The busiest SM: one CTA after another at its own pace, or all their steps through what they share."""
    rounds = -(-grid.on_sm // grid.at_once)
    persists = np.where(d["ping_pong"] > 0, 0.0, finish)
    between = (rounds - 1) * np.where(d["persistent"] > 0, persists, finish + begin + t.launch.cta_turnaround_cycles)
    chain = rounds * grid.steps * together(own, shared) + between
    work = grid.on_sm * grid.steps * shared + np.where(grid.at_once == 1, between, 0.0)
    return np.maximum(chain, work) + begin + finish


def ctas_per_sm(problem: ProductProblem, d: Designs, hw: HardwareConfig) -> np.ndarray:
    """Resident CTAs by the allocation rules, with about the registers that generated code takes."""
    threads = 32 * (d["warps"] + d["producer_warps"])
    shapes = np.stack([_registers(problem, d, hw), threads, smem_bytes(d, problem), d["cluster"]])
    kinds, number = np.unique(shapes, axis=1, return_inverse=True)
    found = [min(ctas_by_resource(hw, LaunchShape(int(r), int(n), int(s), int(c))).values()) for r, n, s, c in kinds.T]
    return np.maximum(1, np.array(found, np.int64))[number.ravel()]


def _registers(problem: ProductProblem, d: Designs, hw: HardwareConfig) -> np.ndarray:
    """Registers per thread: of the launch where roles move them; else accumulators, fragments and pointers, about."""
    held = accumulators(d)
    copies = np.where(d["loads"] == 0, 0, (d["tile_m"] + d["tile_n"]) * row_bytes(problem, d) // COPY_BYTES // (32 * d["warps"]))
    pointers = np.where(d["loads"] == 0, 10, 2 * copies)
    found = np.select(
        [d["method"] == 0, d["method"] == 1],
        [held + REGISTERS_BESIDE + pointers, 5 * held // 2 + REGISTERS_BESIDE + pointers],
        11 * held // 8 + REGISTERS_BESIDE + pointers,
    )
    for groups, (consumer, producer) in role_register_table().items():
        of_role = (d["producer_warps"] > 0) & (d["warps"] == GROUP_WARPS * groups)
        found = np.where(of_role, (consumer * groups + producer) // (groups + 1) // 8 * 8, found)
    return np.minimum(found, hw.sm.max_registers_per_thread)


def _units(problem: ProductProblem, d: Designs) -> np.ndarray:
    """Tiles, or splits of tiles, that are handed out; clusters round up."""
    tiles_m, tiles_n = -(-problem.m // d["tile_m"]), -(-problem.n // d["tile_n"])
    along_m = np.where(d["multicast"] == 1, 1, d["cluster"])
    along_n = np.where(d["multicast"] == 1, d["cluster"], 1)
    return -(-tiles_m // along_m) * -(-tiles_n // along_n) * d["cluster"] * d["split_k"]


def _usable_sms(d: Designs, hw: HardwareConfig, t: Timing) -> np.ndarray:
    """SMs that clusters can fill: a cluster lives behind one coalescer."""
    groups = np.array(t.l2.coalescer_sms)
    whole = {size: int((groups // size * size).sum()) for size in np.unique(d["cluster"]).tolist()}
    return np.select([d["cluster"] == size for size in whole], [np.int64(min(n, hw.sm.count)) for n in whole.values()])


def _latency(t: Timing, step: Step, cold_share: np.ndarray, load: np.ndarray) -> np.ndarray:
    """From the request of a stage to the last of its lines: the farthest slice of the L2, for the share of lines that are new to
    it the slowest answer of DRAM (exponential delays, refreshes), the transfer, the barrier."""
    l2 = t.l2.near_latency_cycles + t.l2.latency_spread_cycles + t.l2.far_extra_cycles
    barrier = t.barrier.mbarrier_latency_cycles + t.barrier.mbarrier_release_cycles
    lines = step.loaded_bytes / LINE_BYTES
    mean = t.dram.spread_cycles + t.dram.load_latency_cycles * load**2 / (1 - load)
    refresh = t.dram.refresh_cycles * (1 - (1 - t.dram.refresh_share) ** lines)
    dram = t.dram.extra_latency_cycles + mean * np.log1p(lines) + refresh
    return l2 + t.bulk.extra_latency_cycles + barrier + cold_share * dram + step.loaded_bytes / t.bulk.fill_bytes_per_cycle


@dataclass(frozen=True)
class _Traffic:
    """Bytes from and to DRAM; ``cold_share``: of a wave's different bytes that come from DRAM; ``merged_share``: of the bytes
    that SMs ask for that are left when those behind a coalescer have asked together."""

    read: np.ndarray
    written: np.ndarray
    cold_share: np.ndarray
    merged_share: np.ndarray


def _traffic(problem: ProductProblem, d: Designs, hw: HardwareConfig, t: Timing, grid: _Grid) -> _Traffic:
    """Waves of tiles in lockstep over k; each L2 partition keeps its own copy of what is read."""
    if hw.l2 is None:
        raise UserError(f"designs cannot be screened on {hw.name}: it has no L2 cache")
    tiles_m, tiles_n = -(-problem.m // d["tile_m"]), -(-problem.n // d["tile_n"])
    at_once = np.minimum(grid.sms * grid.at_once, tiles_m * tiles_n)
    rows = np.minimum(d["group_m"] * np.where(d["multicast"] == 2, d["cluster"], 1), tiles_m)
    columns = np.clip(-(-at_once // rows), 1, tiles_n)
    rows = np.minimum(tiles_m, np.maximum(rows, -(-at_once // columns)))
    of_a, of_b = problem.operand_bytes
    a = np.minimum(rows * d["tile_m"], problem.m) / problem.m * of_a
    b = np.minimum(columns * d["tile_n"], problem.n) / problem.n * of_b
    whole = of_a + of_b
    every = tiles_m * tiles_n / np.minimum(rows * columns, tiles_m * tiles_n) * (a + b)
    by_group = of_a + of_b * np.ceil(tiles_m / rows)
    capacity = hw.l2.capacity_bytes / hw.l2.n_partitions
    read = np.where(whole <= capacity, whole, np.where(a + b <= capacity, np.minimum(by_group, every), every))
    read = np.maximum(read, whole)
    written = np.full(len(d), float(problem.m * problem.n * problem.result_bytes)) * d["split_k"]
    n = np.minimum(grid.at_once * max(t.l2.coalescer_sms), at_once) / d["cluster"]
    different = d["tile_m"] * _different(rows, n) + d["tile_n"] * _different(columns, n)
    merged = np.minimum(1.0, different / (n * (d["tile_m"] + d["tile_n"])))
    return _Traffic(read, np.maximum(0.0, written - capacity), np.minimum(1.0, read / np.maximum(every, 1.0)), merged)


def _different(kinds: np.ndarray, n: np.ndarray) -> np.ndarray:
    """How many of ``kinds`` occur among ``n`` draws."""
    return np.asarray(kinds * (1 - (1 - 1 / kinds) ** n))


def _epilogue(problem: ProductProblem, d: Designs, hw: HardwareConfig, t: Timing) -> np.ndarray:
    """From the last multiply-add of a tile to its last store."""
    held = accumulators(d)
    warps = np.where(d["ping_pong"] > 0, GROUP_WARPS, d["warps"])
    issue = held * EPILOGUE_INSTRUCTIONS_PER_ACCUMULATOR * warps / hw.sm.n_subpartitions * t.pipes["alu"].interval_cycles
    size = d["tile_m"] * d["tile_n"] * problem.result_bytes
    is_added = (d["split_k"] > 1) | (d["stream_k"] > 0)
    reductions = d["tile_m"] * d["tile_n"] / hw.sm.warp_size * 8
    stores = np.select(
        [is_added, d["epilogue"] == DIRECT, d["epilogue"] == STAGED],
        [reductions, 2 * size / t.l1.store_bytes_per_cycle, size / t.l1.store_bytes_per_cycle],
        size / t.bulk.store_bytes_per_cycle,
    )
    return issue + stores + t.bulk.store_latency_cycles + t.barrier.base_cycles + t.barrier.per_warp_cycles * warps
