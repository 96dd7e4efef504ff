"""Generated attention designs against measured kernels: compiled ones of the same blocks, and the vendor's libraries."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from simulator.errors import Unsupported
from simulator.hw.config import HardwareConfig
from simulator.kernels.attention import build
from simulator.kernels.attention_design import AttentionDesign
from simulator.projection.run import project_trace

COMPILED_KERNEL = "attn_fwd"
LIBRARY_KERNEL = "lib_sdpa"
COMPILED = {
    "loads": "cp_async",
    "epilogue": "staged",
    "scale": "separate",
    "row_sums": "each_step",
    "masks": "every_step",
    "index_bits": 64,
    "division": "full",
    "load_q": "registers",
    "order": "ascending",
}
"""What the compiled Triton kernel does, read from its machine code: it scales before it subtracts, adds sums over lanes and
masks in every step, compares 64-bit positions, divides with the scaling of a full-range division."""
FLASH = {"block_m": 128, "warps": 4, "multiply": "mma_sync", "stages": 1, "loads": "cp_async", "epilogue": "staged"}
FLASH_KEYS = {64: 128, 128: 64}
"""Keys of a step by head dimension: in the kernels' names, with 4 warps; their shared memory is that of one stage."""
SPECIALISED = {"block_m": 128, "block_n": 128, "warps": 8, "producer_warps": 4, "stages": 2, "scale": "separate"}
"""cuDNN's kernels launch 384 threads with 168 registers and multiply 64 x 128 a warpgroup (name); they execute four
instructions of the FMA pipe a score (counters: 273 a warp and step), one more than an exponent with a fused scale."""
LIBRARY_SETS: dict[str, list[dict[str, Any]]] = {
    "flash": [FLASH],
    "cudnn": [SPECIALISED, {**SPECIALISED, "ping_pong": True}, {**SPECIALISED, "overlap": False}],
}
BUDGET = 2_000_000
"""Warp instructions of a projection."""
COLUMNS = ["id", "kernel", "dtype", "shape", "config", "split", "cycles", "design_cycles", "design_instructions"]


def compiled_design(dtype: str, shape: str, config: str) -> AttentionDesign:
    """The design with the parameters of a measured compiled row (``shape``, ``config``: JSON)."""
    c = json.loads(config)
    blocks = {"block_m": c["BM"], "block_n": c["BN"], "stages": c["stages"], "warps": c["warps"]}
    return AttentionDesign.model_validate({**_problem(dtype, shape), **COMPILED, **blocks})


def library_designs(dtype: str, shape: str) -> list[AttentionDesign]:
    """The designs that a library row is compared with. Unsupported for other backends and head dimensions."""
    backend, head_dim = json.loads(shape)["backend"], json.loads(shape)["HD"]
    if backend not in LIBRARY_SETS or head_dim not in FLASH_KEYS:
        raise Unsupported(f"no designs for backend {backend} with head dimension {head_dim}")
    keys = {"block_n": FLASH_KEYS[head_dim]} if backend == "flash" else {}
    return [AttentionDesign.model_validate({**_problem(dtype, shape), **one, **keys}) for one in LIBRARY_SETS[backend]]


def _problem(dtype: str, shape: str) -> dict[str, Any]:
    s = json.loads(shape)
    return {
        "batch": s["B"], "heads": s["H"], "seq_q": s["S"], "head_dim": s["HD"], "causal": s["causal"], "dtype": dtype,
    }  # fmt: skip


def predict(rows: pd.DataFrame, hw: HardwareConfig, done: Callable[[str], None] = lambda note: None) -> pd.DataFrame:
    """``rows`` (id, kernel, dtype, shape, config, split, cycles) with the cycles and warp instructions of the design, or of the
    fastest of a library's set."""
    found = []
    for row in rows.itertuples():
        best: tuple[float, int] | None = None
        for design in _designs(row):
            trace = build(design, hw.identity.instruction_set)
            cycles = float(project_trace(trace, hw, BUDGET, explains=False).cycles)
            best = min(best or (cycles, trace.warp_instructions), (cycles, trace.warp_instructions))
        found.append((round(best[0]), best[1]) if best else (float("nan"), 0))
        done(str(row.id))
    cycles_of, instructions_of = zip(*found, strict=True)
    return rows.assign(design_cycles=cycles_of, design_instructions=instructions_of)[COLUMNS]


def _designs(row: Any) -> Iterator[AttentionDesign]:
    if row.kernel == COMPILED_KERNEL:
        yield compiled_design(row.dtype, row.shape, row.config)
    else:
        yield from library_designs(row.dtype, row.shape)


def errors(predictions: pd.DataFrame) -> pd.DataFrame:
    """n, median and mean of the absolute relative error, and bias, of each kernel (libraries: by backend), in percent."""
    backend = predictions["shape"].map(lambda text: json.loads(text).get("backend", ""))
    error = 100 * (predictions.design_cycles / predictions["cycles"] - 1)
    table = pd.DataFrame({"kernel": (predictions.kernel + " " + backend).str.strip(), "error": error}).dropna()
    grouped = table.groupby("kernel")["error"]
    return pd.DataFrame(
        {
            "n": grouped.size(),
            "median_error": grouped.apply(lambda e: e.abs().median()),
            "mean_error": grouped.apply(lambda e: e.abs().mean()),
            "bias": grouped.mean(),
        }
    ).reset_index()


def write_predictions(measured: Path, hw: HardwareConfig, output: Path, split: str) -> pd.DataFrame:
    """Predict the attention rows of ``measured`` (CSV) in ``split`` and write them to ``output``."""
    table = pd.read_csv(measured)
    rows = table[table.kernel.isin((COMPILED_KERNEL, LIBRARY_KERNEL)) & (table.split == split)]
    predictions = predict(rows, hw)
    predictions.to_csv(output, index=False)
    return predictions
