"""Attention designs that tests share: one of every option, small enough to run to the end."""

from __future__ import annotations

from typing import Any

from simulator.kernels.attention_design import AttentionDesign

SMALL: dict[str, Any] = {
    "batch": 1, "heads": 2, "seq_q": 256, "head_dim": 64, "block_m": 64, "block_n": 64, "warps": 4,
}  # fmt: skip
COPIES: dict[str, Any] = {"loads": "cp_async", "epilogue": "staged"}
SPECIAL: dict[str, Any] = {"producer_warps": 4, "block_m": 128, "warps": 8}
GROUPED: dict[str, Any] = {"heads": 8, "heads_kv": 2}
DECODE: dict[str, Any] = {**GROUPED, **COPIES, "seq_q": 1, "seq_kv": 512, "pack_gqa": True}
OPTIONS: dict[str, dict[str, Any]] = {
    "bulk copies": {},
    "asynchronous copies": {**COPIES},
    "asynchronous copies, one stage": {**COPIES, "stages": 1},
    "warp multiply-adds": {**COPIES, "multiply": "mma_sync", "stages": 1},
    "warp multiply-adds, bulk copies, three stages": {"multiply": "mma_sync", "stages": 3},
    "two sets of rows": {"block_m": 128},
    "specialised": {**SPECIAL},
    "specialised, one warpgroup": {"producer_warps": 4},
    "specialised, one producer warp": {**SPECIAL, "producer_warps": 1},
    "specialised, no overlap": {**SPECIAL, "overlap": False},
    "specialised, one stage": {**SPECIAL, "stages": 1},
    "ping-pong": {**SPECIAL, "ping_pong": True},
    "ping-pong of three": {"producer_warps": 4, "block_m": 192, "warps": 12, "ping_pong": True},
    "causal": {"causal": True},
    "causal, ascending": {"causal": True, "order": "ascending", **COPIES},
    "causal, specialised": {**SPECIAL, "causal": True, "ping_pong": True},
    "causal, fewer queries than keys": {"causal": True, "seq_q": 128, "seq_kv": 320},
    "masks in every step": {"causal": True, "masks": "every_step", "index_bits": 64, **COPIES},
    "as compiled": {**COPIES, "scale": "separate", "row_sums": "each_step", "division": "full", "load_q": "registers"},
    "head dimension 128": {"head_dim": 128},
    "head dimension 256": {"head_dim": 256, "block_n": 32, **SPECIAL},
    "fp16": {"dtype": "fp16"},
    "ragged": {"seq_q": 200, "seq_kv": 300, **COPIES},
    "ragged, bulk copies": {"seq_q": 200, "seq_kv": 300},
    "grouped": {**GROUPED},
    "grouped, packed": {**GROUPED, "pack_gqa": True, "seq_q": 64},
    "decode": {**DECODE},
    "decode, split": {**DECODE, "split_kv": 3},
    "decode, pages": {**DECODE, "page_size": 16},
    "decode, large pages, split": {**DECODE, "page_size": 128, "split_kv": 4, "batch": 2},
}


def design(**changes: Any) -> AttentionDesign:
    """SMALL with ``changes``."""
    return AttentionDesign.model_validate(SMALL | changes)
