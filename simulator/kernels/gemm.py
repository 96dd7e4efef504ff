"""GEMM designs to traces, and what the other rooms ask of the family."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from simulator.kernels import gemm_plain, gemm_specialized, gemm_weights
from simulator.kernels.gemm_design import FORMATS, GemmDesign, ProductDesign
from simulator.kernels.gemm_operands import Operands, allocate
from simulator.kernels.gemm_tiles import Work, cluster_tiles, divide, n_ctas
from simulator.kernels.legality import variants
from simulator.kernels.sampling import Extent
from simulator.kernels.writer import KernelWriter
from simulator.trace.kernel_trace import KernelTrace, Launch

Allocate = Callable[[Any, KernelWriter], Operands]


def build(design: GemmDesign, instruction_set: str, extent: Extent | None = None) -> KernelTrace:
    """The kernel that a compiler would make of ``design`` for chips that execute ``instruction_set``; ``extent``: how much
    of each CTA's work it does."""
    return write_product("gemm", design, instruction_set, allocate_operands, divide(design, extent))


def write_product(
    name: str, design: ProductDesign, instruction_set: str, allocate: Allocate, works: list[Work], warnings: Sequence[str] = ()
) -> KernelTrace:
    """The kernel of a matrix product whose operands ``allocate`` places; ``works``: what its CTAs do."""
    launch = Launch((n_ctas(design), 1, 1), (32 * design.n_warps, 1, 1), (design.cluster, 1, 1), design.smem_bytes)
    kernel = KernelWriter(f"{name}_{design.method}_{design.dtype}", instruction_set, launch)
    operands = allocate(design, kernel)
    write = gemm_specialized.build if design.producer_warps else gemm_plain.build
    write(design, kernel, operands, works)
    registers = min(kernel.live_registers(), design.max_registers)
    if design.producer_warps:
        registers = gemm_specialized.launch_registers(design, registers)
    return kernel.trace(registers, warnings)


def extent_of(design: ProductDesign) -> Extent:
    """Tiles of the busiest CTA, and k steps of a tile."""
    groups = n_ctas(design) // design.cluster
    if design.stream_k:
        return Extent(math.ceil(cluster_tiles(design) / groups), design.k_steps)
    units = math.ceil(cluster_tiles(design) * design.split_k / groups) if design.persistent else 1
    return Extent(units, design.k_steps)


def launched_on(design: ProductDesign, n_sms: int, ctas_per_sm: int) -> ProductDesign:
    """A persistent launch takes all the CTAs that the chip holds, unless the design says how many."""
    if design.persistent_ctas is not None or not (design.persistent or design.stream_k):
        return design
    return design.model_copy(update={"persistent_ctas": max(design.cluster, n_sms * ctas_per_sm)})


def allocate_operands(design: ProductDesign, kernel: KernelWriter) -> Operands:
    """Operands as the design stores them."""
    return gemm_weights.allocate(design, kernel) if design.weights else allocate(design, kernel)


def resources(design: ProductDesign, allocate: Allocate = allocate_operands) -> tuple[int, int, int]:
    """(registers per thread, threads, bytes of shared memory) of a CTA, from the code alone."""
    one = design.model_copy(update={"persistent_ctas": 1}) if design.persistent or design.stream_k else design
    kernel = KernelWriter("resources", "", Launch((1, 1, 1), (32 * design.n_warps, 1, 1)))
    kind = gemm_specialized.SpecializedKernel if design.producer_warps else gemm_plain.PlainKernel
    kind(one, kernel, allocate(one, kernel))
    registers = min(kernel.live_registers(), design.max_registers)
    if design.producer_warps:
        registers = gemm_specialized.launch_registers(design, registers)
    return registers, 32 * design.n_warps, design.smem_bytes


def neighbours(design: ProductDesign) -> list[tuple[str, ProductDesign]]:
    """Single-step changes of a design, with what changes in words: first what usually is worth most."""
    tile = design.tile
    bulk = design.loads == "tma"
    changes: list[tuple[str, dict[str, Any]] | None] = [
        ("a producer warpgroup", {"producer_warps": 4})
        if bulk and design.method == "wgmma" and not design.producer_warps
        else None,
        ("128-byte swizzle", {"swizzle_bytes": 128, "padding_bytes": 0}) if design.swizzle < 128 <= design.row_bytes else None,
        ("stages + 1", {"stages": design.stages + 1}),
        ("tile n x 2", {"tile.n": tile.n * 2}),
        ("tile k x 2", {"tile.k": tile.k * 2}),
        ("tile m x 2", {"tile.m": tile.m * 2}),
        ("cluster 2, multicast b", {"cluster": 2, "multicast": "b"}) if bulk and design.cluster == 1 else None,
        ("stages - 1", {"stages": design.stages - 1}),
        ("warps x 2", {"warps": design.warps * 2}),
        ("not persistent" if design.persistent else "persistent", {"persistent": not design.persistent}),
        ("group_m x 2", {"group_m": design.group_m * 2}),
        ("group_m / 2", {"group_m": design.group_m // 2}),
        ("tile n / 2", {"tile.n": tile.n // 2}),
        ("tile m / 2", {"tile.m": tile.m // 2}),
        ("tile k / 2", {"tile.k": tile.k // 2}),
        ("warps / 2", {"warps": design.warps // 2}),
    ]
    return variants(design, changes)


def flops(design: GemmDesign) -> float:
    """2 per multiply-add."""
    return 2.0 * design.m * design.n * design.k


def least_bytes(design: GemmDesign) -> float:
    """Every input read once and every result written once."""
    a = design.m * design.k * FORMATS[design.dtype].n_bytes
    return float(a + design.stored_b_bytes(design.n * design.k) + design.m * design.n * design.result_bytes)
