"""Measured times of vendor libraries, beside which a projected design is put."""

from __future__ import annotations

import gzip
import json
from functools import lru_cache

import pandas as pd
from pydantic import BaseModel

from simulator.data_files import data_folder
from simulator.kernels.attention_design import AttentionDesign
from simulator.kernels.gemm_design import GemmDesign
from simulator.kernels.normalization_design import NormalizationDesign

MEASURED_CHIP_FILE = "measured_chip.txt"
LIBRARY_KERNEL = "lib_cublas_gemm"
ATTENTION_KERNEL = "lib_sdpa"
MATH = {
    "tf32": ("fp32", "tf32"),
    "fp32": ("fp32", "fp32"),
    "fp8_e4m3": ("fp8", None),
    "bf16": ("bf16", None),
    "fp16": ("fp16", None),
}
ROW_KERNELS = {"lib_layer_norm": "layer_norm", "lib_softmax": "softmax"}


def library_time_us(design: BaseModel, chip: str) -> float | None:
    """Median time of the vendor's library for the design's problem on ``chip``, None where it was not measured."""
    if isinstance(design, AttentionDesign):
        return _attention_time_us(design, chip)
    if isinstance(design, NormalizationDesign):
        return _row_times().get((chip, design.kind, design.rows, design.columns, design.dtype))
    if not isinstance(design, GemmDesign) or design.dtype not in MATH or design.weights:
        return None
    return _times().get((chip, design.m, design.n, design.k, *MATH[design.dtype]))


def _attention_time_us(design: AttentionDesign, chip: str) -> float | None:
    """Of the faster of the measured attention libraries; they have as many heads of keys as of queries, equal lengths."""
    if design.group > 1 or design.keys != design.seq_q or design.page_size is not None:
        return None
    return _times().get((chip, design.batch, design.heads, design.seq_q, design.head_dim, design.causal, design.dtype))


@lru_cache(maxsize=1)
def _times() -> dict[tuple[object, ...], float]:
    table, chip = _measured()
    rows = table[table.kernel.isin((LIBRARY_KERNEL, ATTENTION_KERNEL))]
    found: dict[tuple[object, ...], float] = {}
    for dtype, text, median in zip(rows["dtype"], rows["shape"], rows["median_us"], strict=True):
        shape = json.loads(text)
        if "HD" in shape:
            key = (chip, *(shape[name] for name in ("B", "H", "S", "HD", "causal")), dtype)
            found[key] = min(found.get(key, float(median)), float(median))
            continue
        found[(chip, shape["M"], shape["N"], shape["K"], dtype, shape.get("math"))] = float(median)
    return found


@lru_cache(maxsize=1)
def _row_times() -> dict[tuple[object, ...], float]:
    table, chip = _measured()
    found: dict[tuple[object, ...], float] = {}
    for row in table[table.kernel.isin(list(ROW_KERNELS))].itertuples():
        shape = json.loads(str(row.shape))
        found[(chip, ROW_KERNELS[str(row.kernel)], shape["M"], shape["N"], row.dtype)] = float(str(row.median_us))
    return found


def _measured() -> tuple[pd.DataFrame, str]:
    """Measured times (kernel, dtype, shape as JSON, median_us) and their chip; no rows where the file is absent."""
    folder = data_folder("projections") / "validation"
    path = folder / "kernels.csv.gz"
    columns = ["kernel", "dtype", "shape", "median_us"]
    if not path.is_file():
        return pd.DataFrame(columns=columns), ""
    with gzip.open(path, "rt") as stream:
        table = pd.read_csv(stream, usecols=columns)
    return table, (folder / MEASURED_CHIP_FILE).read_text(encoding="utf-8").strip()
