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
from simulator.isa.effects import GROUP_WARPS
from simulator.kernels.gemm_design import LARGEST_MMA_COLUMNS, MMA_ROWS, REGISTERS_BESIDE
from simulator.kernels.gemm_layout import LANE
from simulator.lower.access_answer import bank_rules
from simulator.lower.access_kinds import AccessKind
from simulator.lower.bank_use import bank_use
from simulator.lower.program import timing_of
from simulator.projection.clock import sustained_clocks_hz
from simulator.projection.residency import LaunchShape, ctas_by_resource
from simulator.tuning.designs import Designs, Estimate
from simulator.tuning.gemm_space import (
    DIRECT,
    STAGED,
    GemmProblem,
    accumulators,
    role_register_table,
    smem_bytes,
    thread_tile,
    warp_grid,
)

WAVEFRONT_BYTES = 128
LINE_BYTES = 128
MMA_OPERAND_BYTES = 32
"""Bytes of an operand row in one asynchronous multiply-add."""
PLAIN_STEP_INSTRUCTIONS = 60
"""Instructions of a warp beside its multiply-adds in a step of code whose warps do everything (see gemm_multiply, gemm_feeds)."""
PLAIN_STEP_BARRIERS = 4
COPY_BYTES = 16
COPY_INSTRUCTIONS = 5
"""An asynchronous copy and the arithmetic of its pointers."""
START_INSTRUCTIONS = 150
EPILOGUE_INSTRUCTIONS_PER_ACCUMULATOR = 2
OVERLAP_POWER = 8
LOAD_PASSES = 2
"""The latency of DRAM depends on how busy it is, which depends on the time."""


@dataclass(frozen=True)
class _Step:
    """SM cycles of one k step of a CTA, by resource, and ``serial``: of a CTA that is alone."""

    tensor: np.ndarray
    busiest: np.ndarray
    serial: np.ndarray
    loaded_bytes: np.ndarray
    requested_bytes: np.ndarray


def estimate(problem: GemmProblem, d: Designs, hw: HardwareConfig) -> Estimate:
    """Times of all designs of a table."""
    t = timing_of(hw)
    step = _step(problem, d, hw, t)
    resident = ctas_per_sm(problem, d, hw)
    grid = _grid(problem, d, hw, t, resident)
    traffic = _traffic(problem, d, hw, t, grid)
    clock = t.clock.short_tensor_hz if problem.dtype != "fp32" else t.clock.plain_hz
    dram = (traffic.read / t.dram.read_bytes_per_second + traffic.written / t.dram.write_bytes_per_second) * clock
    path = traffic.merged_share * step.requested_bytes * clock * np.minimum(1.0, grid.units / grid.sms)
    shared = np.maximum(
        path * max(t.l2.coalescer_sms) / t.l2.coalescer_bytes_per_second, path * hw.sm.count / t.l2.read_bytes_per_second
    )
    shared = _together(step.busiest, shared)
    finish = _epilogue(problem, d, hw, t)
    start = t.launch.latency_cycles + t.launch.extra_cold_cycles + grid.at_once * t.launch.cta_interval_cycles
    load = np.zeros(len(d))
    for _ in range(LOAD_PASSES):
        latency = _latency(t, step, traffic.cold_share, load)
        begin = latency + START_INSTRUCTIONS * t.pipes["alu"].interval_cycles
        own = np.maximum(step.serial, (latency + step.tensor) / np.minimum(_depth(d), grid.steps))
        busy = _sm_cycles(d, t, grid, own, shared, begin, finish)
        cycles = start + _together(busy, dram + begin)
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


def _grid(problem: GemmProblem, d: Designs, hw: HardwareConfig, t: Timing, resident: np.ndarray) -> _Grid:
    steps = -(-problem.k // d["tile_k"])
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
    chain = rounds * grid.steps * _together(own, shared) + between
    work = grid.on_sm * grid.steps * shared + np.where(grid.at_once == 1, between, 0.0)
    return np.maximum(chain, work) + begin + finish


def _together(*cycles: np.ndarray) -> np.ndarray:
    """Of work that overlaps: the longest, and a little more where others take nearly as long."""
    return np.asarray(np.sum([np.power(one, OVERLAP_POWER) for one in cycles], axis=0) ** (1 / OVERLAP_POWER))


def ctas_per_sm(problem: GemmProblem, d: Designs, hw: HardwareConfig) -> np.ndarray:
    """Resident CTAs by the allocation rules, with about the registers that generated code takes."""
    threads = 32 * (d["warps"] + d["producer_warps"])
    shapes = np.stack([_registers(problem, d, hw), threads, smem_bytes(d, problem), d["cluster"]])
    kinds, number = np.unique(shapes, axis=1, return_inverse=True)
    found = [min(ctas_by_resource(hw, LaunchShape(int(r), int(n), int(s), int(c))).values()) for r, n, s, c in kinds.T]
    return np.maximum(1, np.array(found, np.int64))[number.ravel()]


def _registers(problem: GemmProblem, d: Designs, hw: HardwareConfig) -> np.ndarray:
    """Registers per thread: of the launch where roles move them; else accumulators, fragments and pointers, about."""
    held = accumulators(d)
    copies = np.where(d["loads"] == 0, 0, (d["tile_m"] + d["tile_n"]) * _row_bytes(problem, d) // COPY_BYTES // (32 * d["warps"]))
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


def _row_bytes(problem: GemmProblem, d: Designs) -> np.ndarray:
    return d["tile_k"] * problem.format.n_bytes


def _units(problem: GemmProblem, d: Designs) -> np.ndarray:
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


def _step(problem: GemmProblem, d: Designs, hw: HardwareConfig, t: Timing) -> _Step:
    row = _row_bytes(problem, d)
    rows_a, rows_b = np.minimum(d["tile_m"], problem.m), np.minimum(d["tile_n"], problem.n)
    loaded = (rows_a + rows_b) * row
    requested = row * (
        rows_a / np.where(d["multicast"] == 1, d["cluster"], 1) + rows_b / np.where(d["multicast"] == 2, d["cluster"], 1)
    )
    fill_port = loaded / WAVEFRONT_BYTES * t.shared.fill_wavefront_cycles
    barriers = t.barrier.base_cycles + t.barrier.per_warp_cycles * d["warps"]
    tensor = np.zeros(len(d))
    port, issue, waits = fill_port.copy(), np.zeros(len(d)), np.zeros(len(d))
    for method, parts in enumerate((_warpgroups, _single_warps, _threads)):
        rows = d["method"] == method
        if rows.any():
            own = parts(problem, d.take(rows), hw, t)
            tensor[rows], issue[rows], waits[rows] = own[0], own[2], own[3]
            port[rows] += own[1]
    copies_of_thread = np.where(d["loads"] == 0, 0, loaded / COPY_BYTES / (hw.sm.warp_size * d["warps"]))
    beside = PLAIN_STEP_INSTRUCTIONS + COPY_INSTRUCTIONS * copies_of_thread
    issue += np.where(d["producer_warps"] > 0, 0, d["warps"] * beside / hw.sm.n_subpartitions)
    serial = np.where(
        d["producer_warps"] > 0,
        np.maximum(tensor, issue),
        np.maximum(tensor, PLAIN_STEP_BARRIERS * barriers + PLAIN_STEP_INSTRUCTIONS * t.pipes["alu"].interval_cycles) + waits,
    )
    box = np.minimum(row, np.maximum(d["swizzle"], 16))
    row_cycles = np.where(box >= LINE_BYTES, t.bulk.full_line_row_cycles, t.bulk.row_cycles)
    if problem.k * problem.format.n_bytes % t.bulk.aligned_pitch_bytes:
        row_cycles = np.full(len(d), t.bulk.misaligned_row_cycles)
    boxes = (rows_a + rows_b) * (row / box)
    bulk = np.maximum(loaded / t.bulk.fill_bytes_per_cycle, boxes * row_cycles)
    lines = loaded / np.minimum(row, LINE_BYTES)
    lanes = np.maximum(loaded / t.l1.fill_bytes_per_cycle, lines * t.l1.miss_cycles_per_line)
    copies = np.where(d["loads"] == 0, bulk, lanes)
    busiest = _together(tensor, port, issue, copies)
    return _Step(tensor, busiest, np.maximum(serial, 1.0), loaded, requested)


Parts = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Cycles of a step: tensor cores, shared-memory port beside copies, issue, waits that nothing of the same CTA hides."""


def _warpgroups(problem: GemmProblem, d: Designs, hw: HardwareConfig, t: Timing) -> Parts:
    columns = np.minimum(d["tile_n"], LARGEST_MMA_COLUMNS)
    async_t = t.tensor_async
    operands = (MMA_ROWS + columns) * MMA_OPERAND_BYTES / async_t.operand_bytes_per_cycle
    interval = np.maximum(columns / async_t.columns_per_cycle, operands)
    per_group = np.where(d["ping_pong"] > 0, d["tile_m"], d["tile_m"] // np.maximum(1, d["warps"] // GROUP_WARPS)) // MMA_ROWS
    of_group = per_group * (d["tile_k"] // problem.format.async_k)
    n = d["tile_m"] // MMA_ROWS * (d["tile_k"] // problem.format.async_k)
    held = accumulators(d)
    is_spilled = held + REGISTERS_BESIDE > hw.sm.max_registers_per_thread
    several = d["warps"] > GROUP_WARPS
    waits_each = (d["producer_warps"] == 0) & (d["stages"] > 1)
    waits_each &= is_spilled | (several & np.where(d["loads"] == 0, (held >= 128) | (of_group <= 4), columns == 256))
    exposed = async_t.shared_operand_latency_cycles + 2 * async_t.issue_interval_cycles
    waits = np.where(waits_each, of_group * exposed, 0.0)
    waits += np.where(is_spilled, 2 * 40 * d["warps"] * WAVEFRONT_BYTES / t.l1.store_bytes_per_cycle, 0.0)
    return n * interval, n * operands, of_group * async_t.issue_interval_cycles, waits


def _single_warps(problem: GemmProblem, d: Designs, hw: HardwareConfig, t: Timing) -> Parts:
    m, n, k = problem.format.warp_shape
    bits = m * n * k * 8 * problem.format.n_bytes
    timing = min(t.mma.values(), key=lambda one: abs(one.operand_bits - bits))
    count = d["tile_m"] * d["tile_n"] * d["tile_k"] / (m * n * k)
    tensor = count * timing.interval_cycles / hw.sm.n_subpartitions * np.maximum(1, hw.sm.n_subpartitions / d["warps"])
    along_m, along_n = warp_grid(d)
    fragments = (d["tile_m"] * along_n + d["tile_n"] * along_m) * _row_bytes(problem, d) / WAVEFRONT_BYTES
    waits = np.full(len(d), t.shared.matrix_load_latency_cycles + timing.latency_cycles)
    return tensor, fragments * t.shared.wavefront_cycles, count / hw.sm.n_subpartitions, waits


def _threads(problem: GemmProblem, d: Designs, hw: HardwareConfig, t: Timing) -> Parts:
    edge_m, edge_n = thread_tile(d)
    loads = _row_wavefronts(edge_m, LANE // 8, hw) + _row_wavefronts(edge_n, LANE % 8, hw)
    wavefronts = d["warps"] * d["tile_k"] * loads
    multiplies = d["tile_m"] * d["tile_n"] * d["tile_k"] / hw.sm.warp_size
    others = d["warps"] * d["tile_k"] * (-(-edge_m // 4) + -(-edge_n // 4))
    issue = (multiplies * t.pipes["fma"].interval_cycles + others) / np.minimum(hw.sm.n_subpartitions, d["warps"])
    return np.zeros(len(d)), wavefronts * t.shared.wavefront_cycles, issue, np.full(len(d), t.shared.load_latency_cycles)


def _row_wavefronts(edge: np.ndarray, place: np.ndarray, hw: HardwareConfig) -> np.ndarray:
    """Of a warp that loads ``edge`` neighbouring elements a thread, 16 bytes at a time, threads at ``place`` along the row."""
    rules = bank_rules(hw)
    one = {int(e): bank_use(AccessKind.LDS, 16, place * int(e) * 4, rules).wavefronts for e in np.unique(edge)}
    return -(-edge // 4) * np.select([edge == e for e in one], list(one.values()))


def _latency(t: Timing, step: _Step, cold_share: np.ndarray, load: np.ndarray) -> np.ndarray:
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


def _traffic(problem: GemmProblem, d: Designs, hw: HardwareConfig, t: Timing, grid: _Grid) -> _Traffic:
    """Waves of tiles in lockstep over k; each L2 partition keeps its own copy of what is read."""
    if hw.l2 is None:
        raise UserError(f"designs cannot be screened on {hw.name}: it has no L2 cache")
    element = problem.format.n_bytes
    tiles_m, tiles_n = -(-problem.m // d["tile_m"]), -(-problem.n // d["tile_n"])
    at_once = np.minimum(grid.sms * grid.at_once, tiles_m * tiles_n)
    rows = np.minimum(d["group_m"] * np.where(d["multicast"] == 2, d["cluster"], 1), tiles_m)
    columns = np.clip(-(-at_once // rows), 1, tiles_n)
    rows = np.minimum(tiles_m, np.maximum(rows, -(-at_once // columns)))
    a = np.minimum(rows * d["tile_m"], problem.m) * problem.k * element
    b = np.minimum(columns * d["tile_n"], problem.n) * problem.k * element
    whole = (problem.m + problem.n) * problem.k * element
    every = tiles_m * tiles_n / np.minimum(rows * columns, tiles_m * tiles_n) * (a + b)
    by_group = problem.m * problem.k * element + problem.n * problem.k * element * np.ceil(tiles_m / rows)
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


def _epilogue(problem: GemmProblem, d: Designs, hw: HardwareConfig, t: Timing) -> np.ndarray:
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
