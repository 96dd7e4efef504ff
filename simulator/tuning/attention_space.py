"""Attention designs as rows, and their fast screen: blocks, stages, warps, roles, packed heads, splits of the keys."""

from __future__ import annotations

from typing import Literal, Self

import numpy as np
from pydantic import Field, ValidationError, model_validator

from simulator.errors import Unsupported, UserError
from simulator.hw.config import HardwareConfig
from simulator.isa.effects import GROUP_WARPS
from simulator.kernels.attention import resources
from simulator.kernels.attention_design import AttentionDesign
from simulator.kernels.attention_legality import check_attention
from simulator.kernels.gemm_design import MMA_ROWS, Extent, Section
from simulator.kernels.legality import check_registers
from simulator.lower.program import timing_of
from simulator.projection.clock import sustained_clocks_hz
from simulator.projection.occupancy import occupancy
from simulator.tuning.designs import Designs, Estimate, choices, concatenate, product

LOADS = ("tma", "cp_async")
METHODS = ("wgmma", "mma_sync")
KEY_BLOCKS = (32, 64, 80, 96, 112, 128, 144, 160, 176)
STAGES = (1, 2, 3, 4)
SPLITS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64)
SOFTMAX_INSTRUCTIONS = 4
"""Of the usual pipe, per score: maximum, scaled difference, sum, conversion."""

NEAR = ("block_m", "block_n", "warps", "method", "loads", "producer_warps", "split_kv", "pack_gqa")
STEPS = (
    ("block_m", "warps"), ("block_n",), ("stages",), ("method", "loads", "producer_warps", "ping_pong", "warps"), ("ping_pong",),
    ("pack_gqa",), ("split_kv",),
)  # fmt: skip


class AttentionProblem(Section):
    """O = softmax(Q K^T) V. Fields as in AttentionDesign; ``heads_kv`` and ``seq_kv`` are filled in."""

    kind: Literal["attention"] = "attention"
    batch: Extent
    heads: Extent
    heads_kv: Extent | None = None
    seq_q: Extent
    seq_kv: Extent | None = None
    head_dim: int = Field(default=128, ge=16, le=512)
    dtype: Literal["bf16", "fp16"] = "bf16"
    causal: bool = False
    page_size: int | None = Field(default=None, ge=1, le=1 << 16)

    @model_validator(mode="before")
    @classmethod
    def _filled(cls, values: object) -> object:
        if not isinstance(values, dict):
            return values
        heads = values.get("heads_kv") or values.get("heads")
        return values | {"heads_kv": heads, "seq_kv": values.get("seq_kv") or values.get("seq_q")}

    @model_validator(mode="after")
    def _whole_groups(self) -> Self:
        if self.heads % self.kv_heads:
            raise ValueError(f"heads {self.heads} is not a multiple of heads_kv {self.kv_heads}")
        if self.causal and self.seq_q > self.keys:
            raise ValueError(f"causal: seq_q {self.seq_q} is more than seq_kv {self.keys}")
        return self

    @property
    def kv_heads(self) -> int:
        return self.heads_kv or self.heads

    @property
    def keys(self) -> int:
        return self.seq_kv or self.seq_q


def space(problem: AttentionProblem, hw: HardwareConfig) -> Designs:
    """Legal designs on ``hw``. UserError where the problem itself rules them out."""
    special = product(
        choices(("block_m", "warps", "ping_pong"), [(64, 4, 0), (128, 8, 0), (128, 8, 1), (192, 12, 0), (192, 12, 1)]),
        choices(("method", "loads", "producer_warps"), [(0, 0, GROUP_WARPS)]),
    )
    plain = product(
        choices(("block_m", "warps", "ping_pong"), [(64, 4, 0), (128, 4, 0), (128, 8, 0)]),
        choices(("method", "loads", "producer_warps"), [(0, 0, 0), (0, 1, 0), (1, 1, 0)]),
    )
    small = product(
        choices(("block_m", "warps", "ping_pong"), [(16, 1, 0), (32, 2, 0)]),
        choices(("method", "loads", "producer_warps"), [(1, 1, 0)]),
    )
    keys = product(choices(("block_n",), [(n,) for n in KEY_BLOCKS]), choices(("stages",), [(s,) for s in STAGES]))
    core = product(concatenate([special, plain, small]), keys)
    core = core.take(_resident(problem, core, hw) > 0)
    if not len(core):
        raise UserError(f"attention with heads of {problem.head_dim}: no design of the space is legal on {hw.name}")
    packs = [(0,), (1,)] if problem.heads > problem.kv_heads else [(0,)]
    found = product(core, choices(("pack_gqa",), packs), choices(("split_kv",), [(s,) for s in SPLITS]))
    steps = -(-problem.keys // found["block_n"])
    units = _blocks(problem, found)
    return found.take((found["split_kv"] == 1) | ((found["split_kv"] <= steps) & (units * found["split_kv"] <= 8 * hw.sm.count)))


CORE = ("block_m", "warps", "ping_pong", "method", "loads", "producer_warps", "block_n", "stages")
_RESOURCES: dict[str, tuple[int, int, int]] = {}
"""By design: building its code for the registers takes tens of milliseconds, and does not depend on chip or extents."""


def _resident(problem: AttentionProblem, d: Designs, hw: HardwareConfig) -> np.ndarray:
    """CTAs per SM of every design, int64; 0 where it is not legal. Extents do not matter."""
    table = np.stack([d[name] for name in CORE])
    kinds, number = np.unique(table, axis=1, return_inverse=True)
    one = problem.model_copy(update={"batch": 1, "heads": 1, "heads_kv": 1, "seq_q": 4096, "seq_kv": 4096})
    found = [_ctas(one, dict(zip(CORE, kind, strict=True)), hw) for kind in kinds.T.tolist()]
    return np.array(found, np.int64)[number.ravel()]


def _ctas(problem: AttentionProblem, row: dict[str, int], hw: HardwareConfig) -> int:
    try:
        design = design_of(problem, row | {"pack_gqa": 0, "split_kv": 1})
        if check_attention(design, hw):
            return 0
        key = design.model_dump_json()
        if key not in _RESOURCES:
            _RESOURCES[key] = resources(design)
        registers, threads, smem = _RESOURCES[key]
        return 0 if check_registers(registers, threads, hw) else occupancy(hw, registers, threads, smem).ctas_per_sm
    except (ValidationError, UserError, Unsupported):
        return 0


def design_of(problem: AttentionProblem, row: dict[str, int]) -> AttentionDesign:
    """The design of a row."""
    values = problem.model_dump() | {
        "multiply": METHODS[row["method"]],
        "loads": LOADS[row["loads"]],
        "epilogue": "tma" if row["loads"] == 0 else "staged",
        "ping_pong": bool(row["ping_pong"]),
        "pack_gqa": bool(row["pack_gqa"]),
    }
    return AttentionDesign.model_validate(
        values | {name: row[name] for name in ("block_m", "block_n", "stages", "warps", "producer_warps", "split_kv")}
    )


def row_of(design: AttentionDesign) -> dict[str, int]:
    """The row of a design."""
    words = {"method": METHODS.index(design.method), "loads": LOADS.index(design.loads)}
    numbers = ("block_m", "block_n", "stages", "warps", "producer_warps", "split_kv")
    flags = {name: int(getattr(design, name)) for name in ("ping_pong", "pack_gqa")}
    return words | flags | {name: int(getattr(design, name)) for name in numbers}


def requirements(design: AttentionDesign) -> dict[str, int]:
    """Blocks at the edges are masked: any extent will do."""
    return {"batch": 1, "seq_q": 1, "seq_kv": 1}


def preference(d: Designs) -> tuple[np.ndarray, ...]:
    """Among equals: larger blocks of keys, fewer splits."""
    return (-d["block_n"], d["split_kv"])


def _blocks(problem: AttentionProblem, d: Designs) -> np.ndarray:
    """CTAs without splits."""
    group = problem.heads // problem.kv_heads
    rows = np.where(d["pack_gqa"] > 0, problem.seq_q * group, problem.seq_q)
    heads = np.where(d["pack_gqa"] > 0, problem.kv_heads, problem.heads)
    return problem.batch * heads * -(-rows // d["block_m"])


def estimate(problem: AttentionProblem, d: Designs, hw: HardwareConfig) -> Estimate:
    """Times of all designs: launch, and the longest of the busiest SM (products beside or behind the softmax), the latency of
    one CTA's steps, and DRAM."""
    t = timing_of(hw)
    clock = t.clock.short_tensor_hz
    scores = d["block_m"] * d["block_n"]
    group_rate = t.tensor_async.columns_per_cycle * MMA_ROWS * (32 // 2)
    warp_rate = max(one.operand_bits / 16 / one.interval_cycles for one in t.mma.values()) * hw.sm.n_subpartitions
    by_warp = warp_rate * np.minimum(1.0, d["warps"] / hw.sm.n_subpartitions)
    tensor = 2 * scores * problem.head_dim / np.where(d["method"] == 0, group_rate, by_warp)
    per_score = t.pipes["transcendental"].interval_cycles + SOFTMAX_INSTRUCTIONS * t.pipes["alu"].interval_cycles
    softmax = scores / hw.sm.warp_size * per_score / np.minimum(hw.sm.n_subpartitions, d["warps"])
    resident = np.maximum(1, _resident(problem, d, hw))
    units = _blocks(problem, d) * d["split_kv"]
    seen = problem.keys * (0.5 if problem.causal and problem.seq_q == problem.keys else 1.0)
    steps = np.ceil(np.ceil(seen / d["block_n"]) / d["split_kv"])
    on_sm = -(-units // hw.sm.count)
    at_once = np.minimum(resident, on_sm)
    overlaps = (d["producer_warps"] > 0) | (at_once > 1)
    shared = np.where(overlaps, np.maximum(tensor, softmax) + 0.25 * np.minimum(tensor, softmax), tensor + softmax)
    shared = np.where(d["ping_pong"] > 0, np.maximum(tensor, softmax) + 0.1 * np.minimum(tensor, softmax), shared)
    key_bytes = 2 * d["block_n"] * problem.head_dim * 2
    answer = t.l2.near_latency_cycles + t.l2.far_extra_cycles + t.dram.extra_latency_cycles + t.dram.spread_cycles * 4
    latency = answer + key_bytes / t.bulk.fill_bytes_per_cycle
    groups = np.maximum(1, d["warps"] // GROUP_WARPS)
    alone = np.where(d["producer_warps"] > 0, np.maximum(tensor, softmax), tensor + softmax) / groups
    own = np.maximum(alone, (latency + tensor + softmax) / d["stages"])
    chain = -(-on_sm // at_once) * (steps * np.maximum(own, shared) + 2 * latency)
    cycles = np.maximum(chain, on_sm * steps * shared)
    keys = 2.0 * problem.batch * problem.kv_heads * problem.keys * problem.head_dim * 2
    partial = np.where(d["split_kv"] > 1, 2.0 * d["split_kv"], 1.0) * 2
    ends = problem.batch * problem.heads * problem.seq_q * problem.head_dim * (2 + partial)
    dram = (keys + ends) / t.dram.read_bytes_per_second * clock + latency
    cycles = np.maximum(cycles, dram) + t.launch.latency_cycles + t.launch.extra_cold_cycles
    activity = units * steps * tensor / hw.sm.count / cycles
    return Estimate(cycles, cycles / sustained_clocks_hz(t.clock, activity, cycles / clock) * 1e6)
