"""Attention designs to traces, and what the other rooms ask of the family."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from simulator.isa.effects import GROUP_WARPS
from simulator.kernels import attention_plain, attention_specialized
from simulator.kernels.attention_design import AttentionDesign
from simulator.kernels.attention_operands import allocate
from simulator.kernels.attention_tiles import divide, n_ctas, units
from simulator.kernels.gemm_design import REGISTERS_BESIDE
from simulator.kernels.legality import variants
from simulator.kernels.sampling import Extent
from simulator.kernels.writer import KernelWriter
from simulator.trace.kernel_trace import KernelTrace, Launch

SAMPLE_STEPS = 6
"""A step of attention takes an order more instructions than one of a GEMM."""
SECOND_KERNEL = "the parts of a split sequence are added by a second kernel, which is not projected"


def build(design: AttentionDesign, instruction_set: str, extent: Extent | None = None) -> KernelTrace:
    """The kernel that a compiler would make of ``design`` for chips that execute ``instruction_set``; ``extent``: how much
    of each CTA's work it does."""
    launch = Launch((n_ctas(design, extent), 1, 1), (32 * design.n_warps, 1, 1), (1, 1, 1), design.smem_bytes)
    kernel = KernelWriter(f"attention_{design.method}_{design.dtype}", instruction_set, launch)
    operands = allocate(design, kernel)
    write = attention_specialized.build if design.producer_warps else attention_plain.build
    write(design, kernel, operands, divide(design, extent))
    return kernel.trace(_launch_registers(design, kernel), tuple(_warnings(design, kernel)))


def _warnings(design: AttentionDesign, kernel: KernelWriter) -> Iterator[str]:
    if design.split_kv > 1:
        yield SECOND_KERNEL
    if not design.producer_warps and (over := kernel.live_registers() - design.max_registers) > 0:
        yield f"{over} registers more than {design.max_registers} live at once: a compiler spills some, which is not projected"


def extent_of(design: AttentionDesign) -> Extent:
    """Rounds of CTAs, and steps of the CTA with the most keys."""
    return Extent(units(design), design.steps_per_split)


def launched_on(design: AttentionDesign, n_sms: int, ctas_per_sm: int) -> AttentionDesign:
    """How many CTAs run at once: by their rounds a long launch is sampled."""
    return design if design.resident_ctas else design.model_copy(update={"resident_ctas": n_sms * max(1, ctas_per_sm)})


@lru_cache(maxsize=16)
def resources(design: AttentionDesign) -> tuple[int, int, int]:
    """(registers per thread, threads, bytes of shared memory) of a CTA, from the code alone."""
    kernel = KernelWriter("resources", "", Launch((1, 1, 1), (32 * design.n_warps, 1, 1)))
    kind = attention_specialized.SpecializedKernel if design.producer_warps else attention_plain.PlainKernel
    kind(design, kernel, allocate(design, kernel))
    return _launch_registers(design, kernel), 32 * design.n_warps, design.smem_bytes


def _launch_registers(design: AttentionDesign, kernel: KernelWriter) -> int:
    """Registers per thread at launch: the mean of what the roles keep, where warpgroups move registers; else every warp, that
    of a producer too, has what a multiplying one needs."""
    if design.producer_warps != GROUP_WARPS:
        least = design.matrix_registers + REGISTERS_BESIDE if design.producer_warps else 0
        return max(least, min(kernel.live_registers(), design.max_registers))
    consumer, producer = design.role_registers
    return (consumer * design.warpgroups + producer) // (design.warpgroups + 1) // 8 * 8


def neighbours(design: AttentionDesign) -> list[tuple[str, AttentionDesign]]:
    """Single-step changes of a design, with what changes in words: first what usually is worth most."""
    bulk = design.loads == "tma" and design.method == "wgmma"
    changes: list[tuple[str, dict[str, Any]] | None] = [
        ("a producer warpgroup", {"producer_warps": 4}) if bulk and not design.producer_warps else None,
        ("overlap", {"overlap": True}) if design.producer_warps and not design.overlaps else None,
        ("ping-pong", {"ping_pong": True}) if design.producer_warps and not design.ping_pong else None,
        ("masks at the edges only", {"masks": "edges"}) if design.masks != "edges" else None,
        ("scale in the exponent", {"scale": "fused"}) if design.scale != "fused" else None,
        ("row sums at the end", {"row_sums": "end"}) if design.row_sums != "end" else None,
        ("query heads of a KV head in one block", {"pack_gqa": True}) if design.group > 1 and not design.pack_gqa else None,
        ("longest blocks first", {"order": "longest_first"}) if design.causal and design.order == "ascending" else None,
        ("stages + 1", {"stages": design.stages + 1}),
        ("block n x 2", {"block_n": design.block_n * 2}),
        ("block n / 2", {"block_n": design.block_n // 2}),
        ("block m x 2, warps x 2", {"block_m": design.block_m * 2, "warps": design.warps * 2}),
        ("block m / 2, warps / 2", {"block_m": design.block_m // 2, "warps": design.warps // 2}),
        ("keys split in two", {"split_kv": design.split_kv * 2}),
        ("stages - 1", {"stages": design.stages - 1}),
        ("warps x 2", {"warps": design.warps * 2}),
        ("without ping-pong", {"ping_pong": False}) if design.ping_pong else None,
        ("without overlap", {"overlap": False}) if design.overlaps else None,
    ]
    return variants(design, changes)


def attended(design: AttentionDesign) -> float:
    """Pairs of a query and a key of a head; causal: half of the last square of the matrix is left out."""
    pairs = design.seq_q * design.keys
    return pairs - design.seq_q**2 / 2 if design.causal else float(pairs)


def flops(design: AttentionDesign) -> float:
    """2 per multiply-add of both products."""
    return 4.0 * design.batch * design.heads * design.head_dim * attended(design)


def least_bytes(design: AttentionDesign) -> float:
    """Q, K and V read once, O written once."""
    rows = 2 * design.heads * design.seq_q + 2 * design.kv_heads * design.keys
    return float(design.batch * rows * design.row_bytes)
