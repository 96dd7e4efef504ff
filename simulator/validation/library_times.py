"""Measured times of vendor libraries, beside which a projected design is put."""

from __future__ import annotations

import gzip
import json
from functools import lru_cache

import pandas as pd
from pydantic import BaseModel

from simulator.data_files import data_folder
from simulator.kernels.gemm_design import GemmDesign

MEASURED_CHIP_FILE = "measured_chip.txt"
LIBRARY_KERNEL = "lib_cublas_gemm"
MATH = {
    "tf32": ("fp32", "tf32"),
    "fp32": ("fp32", "fp32"),
    "fp8_e4m3": ("fp8", None),
    "bf16": ("bf16", None),
    "fp16": ("fp16", None),
}


def library_time_us(design: BaseModel, chip: str) -> float | None:
    """Median time of the vendor's library for the design's problem on ``chip``, None where it was not measured."""
    if not isinstance(design, GemmDesign) or design.dtype not in MATH or design.weights:
        return None
    return _times().get((chip, design.m, design.n, design.k, *MATH[design.dtype]))


@lru_cache(maxsize=1)
def _times() -> dict[tuple[object, ...], float]:
    folder = data_folder("projections") / "validation"
    path = folder / "kernels.csv.gz"
    if not path.is_file():
        return {}
    with gzip.open(path, "rt") as stream:
        table = pd.read_csv(stream, usecols=["kernel", "dtype", "shape", "median_us"])
    rows = table[table.kernel == LIBRARY_KERNEL]
    chip = (folder / MEASURED_CHIP_FILE).read_text(encoding="utf-8").strip()
    found: dict[tuple[object, ...], float] = {}
    for dtype, text, median in zip(rows["dtype"], rows["shape"], rows["median_us"], strict=True):
        shape = json.loads(text)
        found[(chip, shape["M"], shape["N"], shape["K"], dtype, shape.get("math"))] = float(median)
    return found
