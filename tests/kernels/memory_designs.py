"""Streaming, reduction and normalization designs that tests share: one of every option, small enough to run to the end."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from simulator.kernels.families import parse_design

COPY = {"kind": "streaming", "elements": 40_000, "warps": 4}
TRANSPOSE = {"kind": "streaming", "operation": "transpose", "rows": 96, "columns": 160, "warps": 4}
NORM = {"kind": "layer_norm", "rows": 40, "columns": 1024, "warps": 4}
SOFTMAX = {**NORM, "kind": "softmax"}
REDUCE = {"kind": "reduction", "rows": 48, "columns": 2048, "warps": 4}
OPTIONS: dict[str, dict[str, Any]] = {
    "copy": COPY,
    "copy, grid stride": {**COPY, "loop": "grid_stride", "ctas": 7},
    "copy, two bytes a lane": {**COPY, "dtype": "bf16", "vector_bytes": 2},
    "copy that ends within a tile": {**COPY, "elements": 12_345},
    "copy that rounds": {**COPY, "dtype": "fp32", "result": "bf16"},
    "copy that widens": {**COPY, "dtype": "bf16", "result": "fp32"},
    "three inputs": {**COPY, "operation": "elementwise", "inputs": 3, "dtype": "fp16"},
    "gelu": {
        **COPY, "operation": "elementwise", "dtype": "bf16", "fma_per_element": 15, "alu_per_element": 2, "mufu_per_element": 2,
    },
    "unrolled": {**COPY, "operation": "elementwise", "inputs": 2, "unroll": 8},
    "unrolled, two at once": {**COPY, "operation": "elementwise", "inputs": 2, "unroll": 8, "in_flight": 2},
    "fp8": {**COPY, "operation": "elementwise", "dtype": "fp8_e4m3", "mufu_per_element": 1},
    "transpose, xor": TRANSPOSE,
    "transpose, padded": {**TRANSPOSE, "layout": "padded", "vector_bytes": 4},
    "transpose, as it is": {**TRANSPOSE, "layout": "shared", "vector_bytes": 4},
    "transpose, plain, writes apart": {**TRANSPOSE, "layout": "plain"},
    "transpose, plain, reads apart": {**TRANSPOSE, "layout": "plain", "coalesced": "writes", "vector_bytes": 8},
    "transpose by matrix loads": {**TRANSPOSE, "dtype": "bf16", "tile": {"rows": 64, "columns": 32}},
    "transpose, 16 bits by single loads": {**TRANSPOSE, "dtype": "bf16", "gather": "scalar"},
    "transpose, ragged": {**TRANSPOSE, "rows": 100, "columns": 90, "vector_bytes": 4},
    "transpose, columns first": {**TRANSPOSE, "walk": "columns"},
    "layer norm": NORM,
    "layer norm, one warp": {**NORM, "warps": 1, "columns": 512},
    "layer norm, four rows": {**NORM, "rows_per_cta": 4, "rows": 38},
    "layer norm, two passes": {**NORM, "passes": 2, "block": 512},
    "layer norm, three passes": {**NORM, "passes": 3},
    "layer norm, persistent": {**NORM, "persistent": True, "ctas": 9},
    "layer norm, persistent passes": {**NORM, "persistent": True, "ctas": 9, "passes": 2, "rows_per_cta": 2},
    "layer norm, fp8 result": {**NORM, "result": "fp8_e4m3"},
    "layer norm, fp32 result": {**NORM, "result": "fp32"},
    "layer norm, flushed, unmasked": {**NORM, "full_range": False, "masked": False},
    "layer norm, no weights": {**NORM, "weights": "none"},
    "RMS norm": {**NORM, "kind": "rms_norm"},
    "RMS norm, two passes": {**NORM, "kind": "rms_norm", "passes": 2, "columns": 3000},
    "softmax": SOFTMAX,
    "softmax, flushed": {**SOFTMAX, "full_range": False},
    "softmax, running maximum": {**SOFTMAX, "passes": 2, "block": 512},
    "softmax, three passes": {**SOFTMAX, "passes": 3},
    "softmax, more threads than columns": {**SOFTMAX, "columns": 96, "warps": 8},
    "softmax, odd columns": {**SOFTMAX, "columns": 777},
    "row sums": REDUCE,
    "row maxima": {**REDUCE, "operation": "max", "in_flight": 2},
    "row sums, ragged": {**REDUCE, "columns": 1999, "dtype": "bf16"},
    "column sums": {**REDUCE, "axis": "column"},
    "column sums, split": {**REDUCE, "axis": "column", "splits": 5, "columns": 2040},
    "column sums, partial": {**REDUCE, "axis": "column", "splits": 4, "finish": "two_stage", "dtype": "fp16"},
    "column sums, one warp": {**REDUCE, "axis": "column", "warps": 1},
    "sum": {**REDUCE, "axis": "all", "ctas": 5},
    "sum, partial": {**REDUCE, "axis": "all", "loop": "one_tile", "finish": "two_stage", "unroll": 1},
    "sum by one CTA": {**REDUCE, "axis": "all", "ctas": 1},
}  # fmt: skip


def design(option: str, **changes: Any) -> BaseModel:
    """The design of an option, with ``changes``."""
    return parse_design(OPTIONS[option] | changes, option)
