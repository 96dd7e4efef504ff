"""Operands in shared memory: where a row's bytes lie, and the lane patterns of the accesses to them."""

from __future__ import annotations

import numpy as np

from simulator.kernels.gemm_design import ProductDesign

LANE = np.arange(32)
CHUNK_BYTES = 16
ROW_BIT = 7
"""Swizzles XOR address bits from bit 7 on (the number of the 128-byte line) onto the 16-byte chunk."""


def swizzled(offset: np.ndarray, span: int) -> np.ndarray:
    """Byte offsets after the 32-, 64- or 128-byte swizzle of tensor bulk copies; 0: none."""
    chunks = span // CHUNK_BYTES
    if chunks < 2:
        return offset
    moved: np.ndarray = offset ^ (((offset >> ROW_BIT) & (chunks - 1)) * CHUNK_BYTES)
    return moved


def operand_offset(design: ProductDesign, row: np.ndarray, byte: np.ndarray, tile_rows: int) -> np.ndarray:
    """Offset of a byte of a tile row: rows with padding, or boxes as wide as the swizzle one after another."""
    span = design.swizzle
    if span == 0:
        return row * design.pitch_bytes + byte
    return swizzled(byte // span * (tile_rows * span) + row * span + byte % span, span)


def matrix_rows(design: ProductDesign, row: int, byte: int, tile_rows: int, n_matrices: int, is_b: bool) -> np.ndarray:
    """LDSM: lane offsets of the rows of ``n_matrices`` 8x16-byte matrices at (row, byte); A: two down, two across; B: two
    across, two down."""
    matrix = LANE // 8 % n_matrices
    down = matrix // 2 if is_b else matrix % 2
    across = matrix % 2 if is_b else matrix // 2
    return operand_offset(design, row + down * 8 + LANE % 8, byte + across * CHUNK_BYTES, tile_rows)
