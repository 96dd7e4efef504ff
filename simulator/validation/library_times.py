"""Measured times of vendor libraries, beside which a projected design is put."""

from __future__ import annotations

import gzip
import json
from functools import lru_cache

import pandas as pd
from pydantic import BaseModel

from simulator.data_files import data_folder
from simulator.kernels.gemm_design import GemmDesign
from simulator.kernels.normalization_design import NormalizationDesign

MEASURED_CHIP_FILE = "measured_chip.txt"
LIBRARY_KERNEL = "lib_cublas_gemm"
ROW_KERNELS = {"layer_norm": "lib_layer_norm", "softmax": "lib_softmax"}
MATH = {
    "tf32": ("fp32", "tf32"),
    "fp32": ("fp32", "fp32"),
    "fp8_e4m3": ("fp8", None),
    "bf16": ("bf16", None),
    "fp16": ("fp16", None),
}


def library_time_us(design: BaseModel, chip: str) -> float | None:
    """Median time of the vendor's library for the design's problem on ``chip``, None where it was not measured."""
    shape: dict[str, object]
    if isinstance(design, GemmDesign) and design.dtype in MATH:
        dtype, math = MATH[design.dtype]
        shape = {"M": design.m, "N": design.n, "K": design.k} | ({"math": math} if math else {})
        return _times().get((chip, LIBRARY_KERNEL, dtype, *sorted(shape.items())))
    if isinstance(design, NormalizationDesign) and design.kind in ROW_KERNELS:
        shape = {"M": design.rows, "N": design.columns}
        return _times().get((chip, ROW_KERNELS[design.kind], design.dtype, *sorted(shape.items())))
    return None


@lru_cache(maxsize=1)
def _times() -> dict[tuple[object, ...], float]:
    """By chip, library kernel, dtype and the sorted items of the shape."""
    folder = data_folder("projections") / "validation"
    path = folder / "kernels.csv.gz"
    if not path.is_file():
        return {}
    with gzip.open(path, "rt") as stream:
        table = pd.read_csv(stream, usecols=["kernel", "dtype", "shape", "median_us"])
    rows = table[table.kernel.isin((LIBRARY_KERNEL, *ROW_KERNELS.values()))]
    chip = (folder / MEASURED_CHIP_FILE).read_text(encoding="utf-8").strip()
    columns = (rows[name] for name in ("kernel", "dtype", "shape", "median_us"))
    return {
        (chip, kernel, dtype, *sorted(json.loads(shape).items())): float(median)
        for kernel, dtype, shape, median in zip(*columns, strict=True)
    }
