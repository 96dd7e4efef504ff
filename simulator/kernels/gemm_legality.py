"""The limits of GEMM designs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from simulator.hw.config import HardwareConfig
from simulator.isa.effects import GROUP_WARPS
from simulator.kernels.gemm_design import LARGEST_MMA_COLUMNS, MMA_ROWS, REGISTERS_BESIDE, GemmDesign, ProductDesign
from simulator.kernels.gemm_specialized import role_registers
from simulator.kernels.gemm_weights import STORED_ROW_BYTES
from simulator.kernels.instruction_sets import instruction_set
from simulator.kernels.legality import Violation, check_cluster, check_method, check_threads, fewer_stages
from simulator.kernels.scaled_formats import SCALED

COPY_ALIGNMENT = 16
"""Bytes: rows of tensors in bulk copies, chunks of asynchronous copies, inner extent of a box."""


def check_gemm(design: GemmDesign, hw: HardwareConfig) -> list[Violation]:
    """Every limit that ``design`` breaks on ``hw``."""
    if design.dtype in SCALED:
        return [_scaled_dtype(design, hw)]
    return check_product(design, hw) + _row_alignment(design)


def check_product(design: ProductDesign, hw: HardwareConfig) -> list[Violation]:
    """The limits of a matrix product, but for how its operands lie in memory."""
    found = check_method(design.method, design.dtype, design.loads, hw)
    found += _store_needs(design, hw)
    found += _multiply_shape(design)
    found += _alignment(design)
    found += _swizzle(design)
    found += check_threads(32 * design.n_warps, hw)
    found += check_cluster(design.cluster, 1, hw)
    found += _multicast(design)
    found += _shared_memory(design, hw)
    found += _weights(design)
    found += _roles(design, hw)
    return with_dependents(found)


def with_dependents(found: list[Violation]) -> list[Violation]:
    """Violations whose changes also take back the options that make no sense afterwards."""
    return [replace(violation, update=_with_dependents(violation.update)) for violation in found]


def _with_dependents(update: dict[str, Any]) -> dict[str, Any]:
    """A change together with the options that make no sense without what it takes away."""
    more: dict[str, Any] = {}
    if update.get("cluster") == 1:
        more |= {"multicast": "none"}
    if update.get("loads") == "cp_async" or update.get("multiply", "wgmma") != "wgmma":
        more |= {"producer_warps": 0, "schedule": "cooperative", "cluster": 1, "multicast": "none"}
    return more | update


def _scaled_dtype(design: ProductDesign, hw: HardwareConfig) -> Violation:
    """Both operands in a block-scaled format."""
    known = instruction_set(hw.identity.instruction_set)
    why = "have no generator here" if known.has_tensor_memory else "do not exist: no format with scales has a multiply-add"
    return Violation(
        "dtype",
        f"block-scaled multiply-adds of {design.dtype} on {hw.name} ({known.name}) {why}; weights stored in "
        f"{design.dtype} can be converted in registers and multiplied in bf16",
        design.dtype,
        "bf16",
        f"dtype bf16, weights {design.dtype}, multiply mma_sync",
        {"dtype": "bf16", "weights": design.dtype, "multiply": "mma_sync"},
    )


def _weights(design: ProductDesign) -> list[Violation]:
    """Weights stored with scales: whole blocks in whole tiles, fragments that a warp loads itself."""
    if design.weights is None:
        return []
    found, name = [], design.weights
    if design.method != "mma_sync":
        message = f"weights in {name} are converted in registers, {design.method} takes B from shared memory"
        found.append(Violation("multiply", message, design.method, "mma_sync", "multiply mma_sync", {"multiply": "mma_sync"}))
    if design.dtype not in ("bf16", "fp16"):
        message = f"weights in {name} are converted to 16 bits, dtype {design.dtype} is not bf16 or fp16"
        found.append(Violation("dtype", message, design.dtype, "bf16, fp16", "dtype bf16", {"dtype": "bf16"}))
    if design.multicast == "b":
        message = f"stored tiles of weights in {name} are not shared by multicast"
        found.append(Violation("multicast", message, "b", "none", "cluster 1", {"cluster": 1}))
    block = SCALED[name].block
    found += multiple("tile_k", "tile k", design.tile.k, block, f"the elements of a scale of {name}", "tile.k")
    for path, extent, tile in (("n", design.n, design.tile.n), ("k", design.k, design.tile.k)):
        if extent % tile:
            padded = -(-extent // tile) * tile
            message = f"{path} {extent} is not whole tiles of {tile}, in which weights in {name} are stored"
            found.append(Violation("alignment", message, extent, tile, f"pad {path} to {padded}", {path: padded}))
    if design.b_bytes % STORED_ROW_BYTES and design.tile.k % block == 0:
        message = f"a stored tile of {design.b_bytes} bytes (elements and scales) is not whole lines of {STORED_ROW_BYTES}"
        change = design.tile.n * 2
        found.append(Violation("box", message, design.b_bytes, STORED_ROW_BYTES, f"tile n {change}", {"tile.n": change}))
    return found


def _store_needs(design: ProductDesign, hw: HardwareConfig) -> list[Violation]:
    known = instruction_set(hw.identity.instruction_set)
    if design.epilogue == "tma" and design.loads != "tma" and not known.has_bulk_copies:
        return [
            Violation(
                "epilogue",
                f"bulk stores (epilogue tma) need sm_90, {hw.name} executes {known.name}",
                "tma",
                known.name,
                "epilogue staged",
                {"epilogue": "staged"},
            )
        ]
    return []


def multiple(rule: str, what: str, value: int, unit: int, why: str, path: str) -> list[Violation]:
    """``value`` must be a positive multiple of ``unit``."""
    if value % unit == 0:
        return []
    below, above = value // unit * unit, (value // unit + 1) * unit
    nearest = below if below and value - below <= above - value else above
    return [
        Violation(rule, f"{what} {value} is not a multiple of {unit}, {why}", value, unit, f"{what} {nearest}", {path: nearest})
    ]


def _multiply_shape(design: ProductDesign) -> list[Violation]:
    tile, fmt = design.tile, design.format
    if design.method == "wgmma":
        groups = 1 if design.schedule == "ping_pong" else design.warpgroups
        found = multiple("warps", "warps", design.warps, GROUP_WARPS, "the warps of a warpgroup", "warps")
        found += multiple(
            "tile_m", "tile m", tile.m, MMA_ROWS * groups, f"{MMA_ROWS} rows for each of {groups} warpgroups", "tile.m"
        )
        unit = 16 if design.dtype == "int8" and tile.n > 24 else 8
        found += multiple("tile_n", "tile n", tile.n, unit, "the step of the instruction's n", "tile.n")
        if tile.n > LARGEST_MMA_COLUMNS and tile.n % LARGEST_MMA_COLUMNS:
            found += multiple("tile_n", "tile n", tile.n, LARGEST_MMA_COLUMNS, "the largest n of an instruction", "tile.n")
        return found + multiple("tile_k", "tile k", tile.k, fmt.async_k, f"the instruction's k for {design.dtype}", "tile.k")
    if design.method == "mma_sync":
        m, n, k = fmt.warp_shape
        if design.warps & (design.warps - 1):
            below = 1 << (design.warps.bit_length() - 1)
            message = f"warps {design.warps} is not a power of two: warps are laid out by halving the tile"
            return [Violation("warps", message, design.warps, below, f"warps {below}", {"warps": below})]
        along_m, along_n = design.warp_grid
        found = multiple("tile_m", "tile m", tile.m, m * along_m, f"{m} rows for each of {along_m} warps along m", "tile.m")
        found += multiple("tile_n", "tile n", tile.n, n * along_n, f"{n} columns for each of {along_n} warps along n", "tile.n")
        return found + multiple("tile_k", "tile k", tile.k, k, f"the instruction's k for {design.dtype}", "tile.k")
    edge_m, edge_n = design.thread_tile
    found = multiple("tile_n", "tile n", tile.n, 8 * edge_n, f"8 threads of {edge_n} columns", "tile.n")
    return found + multiple("tile_m", "tile m", tile.m, 4 * edge_m, f"4 threads of {edge_m} rows", "tile.m")


def _row_alignment(design: GemmDesign) -> list[Violation]:
    """Leading dimensions: what is copied in bulk or in chunks starts at multiples of 16 bytes."""
    how = "bulk copies need rows of A and B" if design.loads == "tma" else "16-byte copies need rows of A and B"
    return check_rows("k", design.k, design.format.n_bytes, how)


def check_rows(name: str, extent: int, element_bytes: int, how: str) -> list[Violation]:
    """Rows of ``extent`` elements (field ``name`` of the design) must be multiples of 16 bytes."""
    unit = COPY_ALIGNMENT // element_bytes
    if extent % unit == 0:
        return []
    rounded = -(-extent // unit) * unit
    return [
        Violation(
            "alignment",
            f"{name} {extent} makes rows of {extent * element_bytes} bytes; {how} to be multiples of 16 bytes",
            extent * element_bytes,
            COPY_ALIGNMENT,
            f"pad {name} to {rounded}",
            {name: rounded},
        )
    ]


def _alignment(design: ProductDesign) -> list[Violation]:
    """Rows of a tile, and of C."""
    element = design.format.n_bytes
    unit = COPY_ALIGNMENT // element
    found = []
    if design.row_bytes % COPY_ALIGNMENT:
        rounded = -(-design.row_bytes // COPY_ALIGNMENT) * unit
        found.append(
            Violation(
                "box",
                f"tile k {design.tile.k} makes tile rows of {design.row_bytes} bytes; copies take multiples of 16",
                design.row_bytes,
                COPY_ALIGNMENT,
                f"tile k {rounded}",
                {"tile.k": rounded},
            )
        )
    is_bulk = design.epilogue == "tma" and design.split_k == 1 and not design.stream_k
    if (
        design.epilogue != "direct"
        and design.n * design.result_bytes % COPY_ALIGNMENT
        and not (design.split_k > 1 or design.stream_k)
    ):
        what = "a bulk store" if is_bulk else "16-byte stores"
        found.append(
            Violation(
                "alignment",
                f"n {design.n} makes rows of C of {design.n * design.result_bytes} bytes; {what} need multiples of 16 bytes",
                design.n * design.result_bytes,
                COPY_ALIGNMENT,
                "epilogue direct",
                {"epilogue": "direct"},
            )
        )
    return found


def _swizzle(design: ProductDesign) -> list[Violation]:
    """A box's inner extent is at most the swizzle span; a row is whole spans; padding goes with asynchronous copies."""
    found = []
    span = design.swizzle
    if span and design.row_bytes % span:
        fits = next((s for s in (64, 32) if s < span and design.row_bytes % s == 0), 0)
        found.append(
            Violation(
                "swizzle",
                f"tile rows of {design.row_bytes} bytes are not whole spans of a {span}-byte swizzle",
                design.row_bytes,
                span,
                f"swizzle_bytes {fits}",
                {"swizzle_bytes": fits},
            )
        )
    if design.padding_bytes and (design.loads == "tma" or design.method == "wgmma"):
        found.append(
            Violation(
                "padding",
                f"rows padded by {design.padding_bytes} bytes: bulk copies and warpgroup operands have no padding",
                design.padding_bytes,
                0,
                "padding_bytes 0 (swizzled)",
                {"padding_bytes": 0},
            )
        )
    if design.padding_bytes and design.swizzle_bytes:
        found.append(
            Violation(
                "padding",
                f"padding_bytes {design.padding_bytes} together with a {design.swizzle_bytes}-byte swizzle",
                design.padding_bytes,
                0,
                "padding_bytes 0",
                {"padding_bytes": 0},
            )
        )
    return found


def _multicast(design: ProductDesign) -> list[Violation]:
    if design.multicast == "none":
        return []
    extent = design.tile.m if design.multicast == "a" else design.tile.n
    if extent % (8 * design.cluster) == 0:
        return []
    fits = max(c for c in range(1, design.cluster) if extent % (8 * c) == 0) if extent % 8 == 0 else 1
    return [
        Violation(
            "multicast",
            f"{extent} rows of {design.multicast.upper()} do not split into groups of 8 for {design.cluster} CTAs",
            extent,
            8 * design.cluster,
            f"cluster {fits}",
            {"cluster": fits} if fits > 1 else {"cluster": 1, "multicast": "none"},
        )
    ]


def _shared_memory(design: ProductDesign, hw: HardwareConfig) -> list[Violation]:
    limit = hw.shared_memory.max_per_cta_bytes
    if design.smem_bytes <= limit:
        return []
    message = (
        f"{design.smem_bytes:,} bytes of shared memory ({design.stages} stages of {design.stage_bytes:,}) are more than the "
        f"{limit:,} that a CTA can have on {hw.name}"
    )
    found = fewer_stages(design, message, limit)
    if found is not None:
        return [found]
    for name, half in (("k", design.tile.k // 2), ("n", design.tile.n // 2)):
        if half >= 16:
            return [Violation("shared_memory", message, design.smem_bytes, limit, f"tile {name} {half}", {f"tile.{name}": half})]
    return [Violation("shared_memory", message, design.smem_bytes, limit)]


def _roles(design: ProductDesign, hw: HardwareConfig) -> list[Violation]:
    """Specialised warpgroups: what each role keeps must fit the register file together, and hold the accumulators."""
    if not design.producer_warps:
        return []
    if design.producer_warps != GROUP_WARPS:
        return _accumulators(design, design.max_registers, "a thread")
    consumer, producer = role_registers(design)
    needed = (consumer * design.warpgroups + producer) * 32 * GROUP_WARPS
    found = []
    if needed > hw.sm.n_registers:
        fits = (hw.sm.n_registers // (32 * GROUP_WARPS) - producer) // design.warpgroups // 8 * 8
        found.append(
            Violation(
                "registers",
                f"{design.warpgroups} consumer warpgroups with {consumer} registers and a producer with "
                f"{producer} take {needed:,} registers, an SM of {hw.name} has {hw.sm.n_registers:,}",
                needed,
                hw.sm.n_registers,
                f"consumer_registers {fits}",
                {"consumer_registers": fits},
            )
        )
    return found + _accumulators(design, consumer, "a consumer")


def _accumulators(design: ProductDesign, registers: int, whose: str) -> list[Violation]:
    """Accumulators and what a loop needs beside them in the ``registers`` of a multiplying thread."""
    needed = design.accumulators + REGISTERS_BESIDE
    if needed <= registers:
        return []
    message = (
        f"{design.accumulators} accumulators and {REGISTERS_BESIDE} others, {needed} registers per thread, do not fit the "
        f"{registers} of {whose}"
    )
    half = design.tile.n // 2
    return [Violation("registers", message, needed, registers, f"tile n {half}", {"tile.n": half})]
