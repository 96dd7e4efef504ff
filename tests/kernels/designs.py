"""Designs that tests share: one of every option, small enough to run to the end."""

from __future__ import annotations

from typing import Any

from simulator.kernels.gemm_design import GemmDesign

SMALL: dict[str, Any] = {"m": 256, "n": 256, "k": 256, "tile": {"m": 128, "n": 64, "k": 64}, "stages": 2, "warps": 4}
WARP = {"multiply": "mma_sync", "tile": {"m": 64, "n": 64, "k": 64}}
SPECIAL = {"producer_warps": 4, "tile": {"m": 128, "n": 128, "k": 64}, "warps": 8}
OPTIONS: dict[str, dict[str, Any]] = {
    "bulk copies, all warps multiply": {},
    "one stage": {"stages": 1},
    "two warpgroups": {"warps": 8},
    "a from registers": {"a_from": "registers"},
    "wait after each": {"waits": "each", "warps": 8},
    "asynchronous copies": {"loads": "cp_async", "epilogue": "staged"},
    "warp multiply-adds, bulk copies": {**WARP},
    "warp multiply-adds, asynchronous copies": {**WARP, "loads": "cp_async", "epilogue": "staged"},
    "padded rows": {**WARP, "loads": "cp_async", "epilogue": "staged", "swizzle_bytes": 0, "padding_bytes": 16},
    "fused multiply-adds": {
        "dtype": "fp32",
        "loads": "cp_async",
        "epilogue": "direct",
        "tile": {"m": 128, "n": 128, "k": 16},
        "warps": 8,
    },
    "specialised warps": {**SPECIAL},
    "one producer warp": {**SPECIAL, "producer_warps": 1},
    "specialised, one stage": {**SPECIAL, "stages": 1},
    "ping-pong, one stage": {
        **SPECIAL,
        "schedule": "ping_pong",
        "tile": {"m": 64, "n": 128, "k": 64},
        "stages": 1,
        "persistent": True,
        "persistent_ctas": 3,
    },
    "specialised, persistent": {**SPECIAL, "persistent": True, "persistent_ctas": 2},
    "ping-pong": {
        **SPECIAL,
        "schedule": "ping_pong",
        "tile": {"m": 64, "n": 128, "k": 64},
        "persistent": True,
        "persistent_ctas": 3,
    },
    "three consumer warpgroups": {**SPECIAL, "warps": 12, "tile": {"m": 192, "n": 64, "k": 64}},
    "cluster shares b": {**SPECIAL, "cluster": 2, "multicast": "b"},
    "cluster shares a": {**SPECIAL, "cluster": 2, "multicast": "a"},
    "persistent": {"persistent": True, "persistent_ctas": 3},
    "split k": {"split_k": 2},
    "stream k": {"stream_k": True, "persistent_ctas": 3},
    "specialised, stream k": {**SPECIAL, "stream_k": True, "persistent_ctas": 3},
    "direct stores": {"epilogue": "direct"},
    "specialised, direct stores": {**SPECIAL, "epilogue": "direct"},
    "bias and gelu": {"bias": True, "activation": "gelu"},
    "specialised, bias and silu": {**SPECIAL, "bias": True, "activation": "silu"},
    "relu": {"activation": "relu"},
    "fp16": {"dtype": "fp16"},
    "fp8": {"dtype": "fp8_e4m3", "tile": {"m": 128, "n": 64, "k": 128}},
    "fp8 e5m2": {"dtype": "fp8_e5m2"},
    "int8": {"dtype": "int8"},
    "tf32": {"dtype": "tf32", "tile": {"m": 128, "n": 64, "k": 32}},
    "fp32 result": {"result": "fp32"},
    "ragged": {"m": 200, "n": 136, "k": 200},
    "ragged, direct stores": {"m": 200, "n": 138, "k": 200, "epilogue": "direct"},
    "ragged, asynchronous copies": {"m": 200, "n": 136, "k": 200, "loads": "cp_async", "epilogue": "staged"},
    "32-byte swizzle": {"swizzle_bytes": 32},
    "64-byte swizzle": {"swizzle_bytes": 64},
    "no swizzle": {"swizzle_bytes": 0},
    "spills": {"tile": {"m": 128, "n": 256, "k": 64}},
}


def design(**changes: Any) -> GemmDesign:
    """SMALL with ``changes``."""
    return GemmDesign.model_validate(SMALL | changes)
