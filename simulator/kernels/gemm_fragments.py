"""What a warp holds of C after the main loop, and the code that writes it out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.kernels.control_words import Value
from simulator.kernels.gemm_design import MMA_ROWS, STORE_BOX_COLUMNS_BYTES, ProductDesign
from simulator.kernels.gemm_operands import Operands
from simulator.kernels.gemm_tiles import Work
from simulator.kernels.writer import Block, CtaClass, KernelWriter, Warp
from simulator.trace.kernel_trace import LANES

LANE = np.arange(LANES)
FRAGMENT_ROWS = 8
FRAGMENT_COLUMNS = 8
MATRICES = 4
"""8x8 matrices of one matrix store."""
ACTIVATIONS = {
    "none": (),
    "relu": ("FMNMX",),
    "silu": ("FMUL", "MUFU.EX2", "FADD", "MUFU.RCP", "FMUL"),
    "gelu": ("FMUL", "FFMA", "FMUL", "FMUL", "MUFU.TANH", "FFMA", "FMUL"),
}
"""Instructions per element of C."""


@dataclass(frozen=True)
class Fragments:
    """The part of a tile that a warp holds: 8x8 fragments, two elements a lane. ``rows`` and ``columns``: origins of the
    fragments within the tile, in the order of the accumulators."""

    rows: np.ndarray
    columns: np.ndarray

    def __len__(self) -> int:
        return len(self.rows)


def warpgroup_fragments(design: ProductDesign, warp: int) -> Fragments:
    """Of warp ``warp`` of the multiplying warps: 16 of each 64 rows of its warpgroup, all columns."""
    group = 0 if design.schedule == "ping_pong" else warp // 4
    first = group * design.rows_per_warpgroup + warp % 4 * 16
    blocks = np.arange(max(1, design.rows_per_warpgroup // MMA_ROWS)) * MMA_ROWS + first
    columns = np.arange(0, design.tile.n, FRAGMENT_COLUMNS)
    grid = np.array([(b + half, c) for b in blocks for c in columns for half in (0, FRAGMENT_ROWS)])
    return Fragments(grid[:, 0], grid[:, 1])


def finish_elements(block: Block, design: ProductDesign, n_fragments: int, accumulators: Value) -> None:
    """Bias and activation on the accumulators (two elements a fragment)."""
    if design.bias:
        bias = Value("bias", 2)
        for i in range(n_fragments):
            if i % 2 == 0:
                block.op("LDG.E.64", [bias], [], slot=f"bias{i // 2}", width=8)
            block.ops("FADD", 2, [accumulators], [accumulators, bias])
    scratch = Value("x")
    for i in range(2 * n_fragments):
        for opcode in ACTIVATIONS[design.activation]:
            target = scratch if opcode.startswith("MUFU") else accumulators
            block.op(opcode, [target], [accumulators, scratch] if scratch in (target,) else [accumulators])
        _ = i


def bias_events(
    design: ProductDesign, kernel: KernelWriter, cta: CtaClass, work: Work, unit: int, columns: np.ndarray, address: int
) -> dict[str, np.ndarray]:
    """Bias loads of the fragments' columns: event rows by slot."""
    if not design.bias:
        return {}
    pattern = kernel.pattern(LANE % 4 * 8)
    key = cta.difference(work.n[unit] * 4)
    pairs = columns[::2]
    rows = cta.events(pattern=pattern, address=address + (work.n[unit, 0] + pairs) * 4, base=key)
    return {f"bias{i}": rows[i] for i in range(len(pairs))}


def pack(block: Block, design: ProductDesign, n_fragments: int, accumulators: Value, packed: Value) -> None:
    """Convert fragments to the result's format: one instruction a fragment, none for 32 bits."""
    if design.result_bytes == 2:
        kind = "F2FP.BF16.F32.PACK_AB" if design.result_format == "bf16" else "F2FP.F16.F32.PACK_AB"
        block.ops(kind, n_fragments, [packed], [accumulators])


def stage_fragments(block: Block, design: ProductDesign, n_fragments: int, accumulators: Value, address: Value) -> None:
    """Convert and write fragments to shared memory: by matrix stores (16-bit results), else two elements a lane."""
    if design.result_bytes != 2:
        for i in range(n_fragments):
            block.op("STS.64", [], [address, accumulators], slot=f"stage{i}", width=8)
        return
    packed = [Value(f"packed{i}", MATRICES) for i in range(4)]
    for i in range(-(-n_fragments // MATRICES)):
        n = min(MATRICES, n_fragments - i * MATRICES)
        pack(block, design, n, accumulators, packed[i % 4])
        block.op("STSM.16.M88.4", [], [address, packed[i % 4]], slot=f"stage{i}", width=4 * n)


def store_direct(block: Block, design: ProductDesign, n_fragments: int, accumulators: Value, is_added: bool) -> None:
    """One store (or reduction per element) of each fragment straight from registers."""
    address = Value("address", 2)
    packed = [Value(f"packed{i}", 2) for i in range(8)]
    block.op("IMAD.WIDE", [address], [])
    for i in range(n_fragments):
        if i % 4 == 0:
            block.op("IADD3", [address], [address])
            block.op("IADD3.X", [address], [address])
        if is_added:
            for element in (0, 1):
                block.op("RED.E.ADD.F32.FTZ.RN.STRONG.GPU", [], [address, accumulators], slot=f"store{2 * i + element}", width=4)
            continue
        pack(block, design, 1, accumulators, packed[i % 8])
        block.op(
            f"STG.E{'.64' if design.result_bytes == 4 else ''}",
            [],
            [address, packed[i % 8]],
            slot=f"store{i}",
            width=2 * design.result_bytes,
        )


def direct_events(
    operands: Operands, kernel: KernelWriter, cta: CtaClass, work: Work, unit: int, fragments: Fragments
) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    """(event rows, active lanes) by slot of ``store_direct``; lanes outside C are off."""
    design = operands.design
    size = design.result_bytes
    key = cta.difference((work.m[unit] * design.n + work.n[unit]) * size)
    origin = operands.c + (work.m[unit, 0] * design.n + work.n[unit, 0]) * size
    rows, columns = work.valid[unit]
    events: dict[str, np.ndarray] = {}
    active: dict[str, int] = {}
    parts = (0, 1) if work.is_partial else (0,)
    patterns = {}
    for i, (row, column) in enumerate(zip(fragments.rows.tolist(), fragments.columns.tolist(), strict=True)):
        inside = (min(FRAGMENT_ROWS, max(0, rows - row)), min(FRAGMENT_COLUMNS, max(0, columns - column)))
        for part in parts:
            slot = f"store{i * len(parts) + part}"
            if inside not in patterns:
                on = (inside[0] > LANE // 4) & (inside[1] > LANE % 4 * 2)
                offsets = np.where(on, LANE // 4 * design.n * size + LANE % 4 * 2 * size, -1)
                patterns[inside] = (kernel.pattern(offsets) if on.any() else -1, int(on.sum()))
            pattern, n_on = patterns[inside]
            active[slot] = n_on
            address = origin + (row * design.n + column + part) * size
            events[slot] = (pattern, address)  # type: ignore[assignment]
    slots = list(events)
    table = np.array([events[slot] for slot in slots], np.int64).reshape(-1, 2)
    numbers = cta.events(pattern=table[:, 0], address=table[:, 1], base=key)
    return dict(zip(slots, numbers, strict=True)), active


def store_box(design: ProductDesign, kernel: KernelWriter, operands: Operands, rows: int) -> tuple[int, int]:
    """(tensor map of C with boxes of one swizzle span by ``rows``, columns of a box)."""
    columns = min(design.tile.n, STORE_BOX_COLUMNS_BYTES // design.result_bytes)
    span = columns * design.result_bytes
    tensor = kernel.tensor_map(
        "c", design.result_bytes, (design.n, design.m), (columns, rows), span if span in (32, 64, 128) else 0, operands.c
    )
    return tensor, columns


def matrix_store_pattern(kernel: KernelWriter, pitch: int, is_swizzled: bool = True) -> int:
    """STSM.x4: rows of four 8x8 matrices, 16 rows by 16 columns of a box, its 16-byte chunks XORed with the row."""
    row = LANE % 8 + LANE // 8 % 2 * 8
    chunk = LANE // 16
    return kernel.pattern(row * pitch + ((chunk ^ (row & 7) if is_swizzled else chunk) * 16) % max(pitch, 16))


def run_all(warp: Warp, block: Block, events: dict[str, np.ndarray], active: dict[str, int]) -> None:
    """Execute an epilogue block once with its operands."""
    warp.run(block, 1, events, active)
