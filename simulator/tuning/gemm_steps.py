"""What one step over k costs a CTA, for whole columns of designs: cycles of each resource of its SM."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.hw.config import HardwareConfig
from simulator.hw.timing import Timing
from simulator.isa.effects import GROUP_WARPS, LINE_BYTES
from simulator.kernels.gemm_design import LARGEST_MMA_COLUMNS, MMA_ROWS, REGISTERS_BESIDE
from simulator.kernels.gemm_layout import LANE
from simulator.lower.access_answer import bank_rules
from simulator.lower.access_kinds import AccessKind
from simulator.lower.bank_use import bank_use
from simulator.tuning.designs import Designs
from simulator.tuning.gemm_columns import ProductProblem, accumulators, thread_tile, warp_grid

WAVEFRONT_BYTES = 128
MMA_OPERAND_BYTES = 32
"""Bytes of an operand row in one asynchronous multiply-add."""
PLAIN_STEP_INSTRUCTIONS = 60
"""Instructions of a warp beside its multiply-adds in a step of code whose warps do everything (see gemm_multiply, gemm_feeds)."""
PLAIN_STEP_BARRIERS = 4
COPY_BYTES = 16
COPY_INSTRUCTIONS = 5
"""An asynchronous copy and the arithmetic of its pointers."""
OVERLAP_POWER = 8


@dataclass(frozen=True)
class Step:
    """SM cycles of one k step of a CTA, by resource, and ``serial``: of a CTA that is alone."""

    tensor: np.ndarray
    busiest: np.ndarray
    serial: np.ndarray
    loaded_bytes: np.ndarray
    requested_bytes: np.ndarray


def together(*cycles: np.ndarray) -> np.ndarray:
    """Of work that overlaps: the longest, and a little more where others take nearly as long."""
    return np.asarray(np.sum([np.power(one, OVERLAP_POWER) for one in cycles], axis=0) ** (1 / OVERLAP_POWER))


def row_bytes(problem: ProductProblem, d: Designs) -> np.ndarray:
    """Of a tile's row of A or B."""
    return d["tile_k"] * problem.format.n_bytes


def step_cycles(problem: ProductProblem, d: Designs, hw: HardwareConfig, t: Timing) -> Step:
    row = row_bytes(problem, d)
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
    if problem.row_elements * problem.format.n_bytes % t.bulk.aligned_pitch_bytes:
        row_cycles = np.full(len(d), t.bulk.misaligned_row_cycles)
    boxes = (rows_a + rows_b) * (row / box)
    bulk = np.maximum(loaded / t.bulk.fill_bytes_per_cycle, boxes * row_cycles)
    lines = loaded / np.minimum(row, LINE_BYTES)
    lanes = np.maximum(loaded / t.l1.fill_bytes_per_cycle, lines * t.l1.miss_cycles_per_line)
    copies = np.where(d["loads"] == 0, bulk, lanes)
    busiest = together(tensor, port, issue, copies)
    return Step(tensor, busiest, np.maximum(serial, 1.0), loaded, requested)


Parts = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Cycles of a step: tensor cores, shared-memory port beside copies, issue, waits that nothing of the same CTA hides."""


def _warpgroups(problem: ProductProblem, d: Designs, hw: HardwareConfig, t: Timing) -> Parts:
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


def _single_warps(problem: ProductProblem, d: Designs, hw: HardwareConfig, t: Timing) -> Parts:
    m, n, k = problem.format.warp_shape
    bits = m * n * k * 8 * problem.format.n_bytes
    timing = min(t.mma.values(), key=lambda one: abs(one.operand_bits - bits))
    count = d["tile_m"] * d["tile_n"] * d["tile_k"] / (m * n * k)
    tensor = count * timing.interval_cycles / hw.sm.n_subpartitions * np.maximum(1, hw.sm.n_subpartitions / d["warps"])
    along_m, along_n = warp_grid(d)
    fragments = (d["tile_m"] * along_n + d["tile_n"] * along_m) * row_bytes(problem, d) / WAVEFRONT_BYTES
    waits = np.full(len(d), t.shared.matrix_load_latency_cycles + timing.latency_cycles)
    return tensor, fragments * t.shared.wavefront_cycles, count / hw.sm.n_subpartitions, waits


def _threads(problem: ProductProblem, d: Designs, hw: HardwareConfig, t: Timing) -> Parts:
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
