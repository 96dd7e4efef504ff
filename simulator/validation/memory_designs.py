"""Measured memory-bound kernels as designs with the same parameters; nothing of the compiled kernel is given.

Triton deals the elements of a block to threads in vectors of 16 bytes, or of what a thread's share is. What its compiler does
beyond the parameters is read from machine code: loops over blocks of less than four vectors are unrolled four times with
three loads under way, longer ones keep one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import BaseModel

from simulator.errors import Unsupported, UserError
from simulator.hw.config import HardwareConfig
from simulator.kernels.families import family_of
from simulator.kernels.normalization_design import NormalizationDesign
from simulator.kernels.reduction_design import ReductionDesign
from simulator.kernels.streaming_design import StreamingDesign
from simulator.kernels.vectors import FORMATS, WIDEST_BYTES
from simulator.projection.run import project_trace
from simulator.projection.tile_card import check_design, ready_to_build

GELU: dict[str, int] = {"fma_per_element": 15, "alu_per_element": 2, "mufu_per_element": 2}
"""Of the tanh form, right for all numbers."""
UNROLLED, IN_FLIGHT = 4, 3
ADDED, CHAINED = 5, 2
"""Vectors of each array that compiled element-wise code has under way at once: one that only adds, one that computes."""
BUDGET = 2_000_000
"""Warp instructions of a projection."""
COLUMNS = ["id", "kernel", "dtype", "shape", "config", "split", "cycles", "design_cycles"]
LAYOUTS = {"pad1": "padded", "nopad": "shared"}
Values = dict[str, Any]


def memory_design(kernel: str, dtype: str, shape: str, config: str, launch: str) -> BaseModel:
    """The design with the parameters of a measured row (``shape``, ``config``, ``launch``: JSON). Unsupported for kernels
    without one."""
    if kernel not in DESIGNS:
        raise Unsupported(f"kernel {kernel} has no generator")
    return DESIGNS[kernel](dtype, json.loads(shape), json.loads(config), math.prod(json.loads(launch)["grid"]))


def _block_vectors(dtype: str, config: Values) -> tuple[int, int]:
    """(elements of a vector, vectors of a thread) of a Triton block."""
    share = max(1, config["B"] // (32 * config["warps"]))
    vector = min(WIDEST_BYTES // FORMATS[dtype].n_bytes, share)
    return vector, share // vector


def _elementwise(dtype: str, shape: Values, config: Values, more: Values) -> StreamingDesign:
    vector, unroll = _block_vectors(dtype, config)
    common = {"operation": "elementwise", "elements": shape["n"], "dtype": dtype, "warps": config["warps"], "unroll": unroll}
    return StreamingDesign.model_validate(common | {"vector_bytes": vector * FORMATS[dtype].n_bytes} | more)


def _rows(kind: str, dtype: str, shape: Values, config: Values) -> NormalizationDesign:
    return NormalizationDesign.model_validate(
        {"kind": kind, "rows": shape["M"], "columns": shape["N"], "dtype": dtype, "warps": config["warps"]}
    )


def _row_sum(dtype: str, shape: Values, config: Values, n_ctas: int) -> ReductionDesign:
    vector, vectors = _block_vectors(dtype, config)
    is_unrolled = vectors < UNROLLED
    needed = -(-shape["N"] // (32 * config["warps"] * vector))  # a row of less than a turn is left to the code behind the loop
    return ReductionDesign(
        rows=shape["M"],
        columns=shape["N"],
        axis="row",
        warps=config["warps"],
        unroll=min(vectors * UNROLLED if is_unrolled else vectors, needed),
        in_flight=IN_FLIGHT if is_unrolled else 1,
    )


def _transpose(dtype: str, shape: Values, config: Values, n_ctas: int) -> StreamingDesign:
    tile = {"rows": config["BM"], "columns": config["BN"]}
    common = {"operation": "transpose", "rows": shape["M"], "columns": shape["N"], "dtype": dtype, "warps": config["warps"]}
    return StreamingDesign.model_validate(common | {"tile": tile})


def _cuda_transpose(dtype: str, shape: Values, config: Values, n_ctas: int) -> StreamingDesign:
    edge = config["tile"]
    how: Values = {"layout": LAYOUTS.get(config.get("smem_layout", ""), "plain")}
    if how["layout"] == "plain":
        how["coalesced"] = "writes" if config["variant"] == "naive_wc" else "reads"
    common = {
        "operation": "transpose", "rows": shape["M"], "columns": shape["N"], "dtype": dtype, "warps": config["warps"],
        "tile": {"rows": edge, "columns": edge}, "vector_bytes": FORMATS[dtype].n_bytes, "walk": "columns", "masked": False,
    }  # fmt: skip
    return StreamingDesign.model_validate(common | how)


def _cuda_copy(dtype: str, shape: Values, config: Values, n_ctas: int) -> StreamingDesign:
    is_loop = config["variant"] == "grid_stride"
    return StreamingDesign(
        elements=shape["n"],
        warps=config["warps"],
        vector_bytes=config["vec"] * FORMATS[dtype].n_bytes,
        unroll=config["unroll"],
        loop="grid_stride" if is_loop else "one_tile",
        ctas=n_ctas if is_loop else None,
        masked=False,
    )


def _cuda_reduce(dtype: str, shape: Values, config: Values, n_ctas: int) -> ReductionDesign:
    variant = config["variant"]
    is_loop = variant.startswith("gridstride") or variant == "atomic"
    if not is_loop and variant != "shuffle":
        raise Unsupported(f"reductions by {variant} have no design option")
    return ReductionDesign(
        columns=shape["n"],
        axis="all",
        warps=config["warps"],
        vector_bytes=config["vec"] * FORMATS[dtype].n_bytes,
        unroll=_loop_unroll(variant, config) if is_loop else config["elems_per_thread"],
        loop="grid_stride" if is_loop else "one_tile",
        ctas=n_ctas if is_loop else None,
        finish="atomic" if variant == "atomic" else "two_stage",
        masked=False,
    )


def _loop_unroll(variant: str, config: Values) -> int:
    """nvcc unrolls a loop that only adds four times, not one of the atomic variant."""
    return max(UNROLLED, config["unroll"]) if variant.startswith("gridstride") else int(config["unroll"])


def _cuda_softmax(dtype: str, shape: Values, config: Values, n_ctas: int) -> NormalizationDesign:
    if config["variant"] not in ("warp", "3pass", "3pass_v4"):
        raise Unsupported(f"softmax by {config['variant']} has no design option")
    return NormalizationDesign(
        kind="softmax",
        rows=shape["M"],
        columns=shape["N"],
        dtype="fp32",
        warps=config["warps"],
        rows_per_cta=config["rows_per_cta"],
        vector_bytes=config["vec"] * FORMATS[dtype].n_bytes,
        passes=1 if config["variant"] == "warp" else 3,
        masked=False,
    )


DESIGNS: dict[str, Callable[[str, Values, Values, int], BaseModel]] = {
    "ew_add": lambda dtype, shape, config, _: _elementwise(dtype, shape, config, {"inputs": 2, "in_flight": ADDED}),
    "ew_gelu": lambda dtype, shape, config, _: _elementwise(dtype, shape, config, GELU | {"in_flight": CHAINED}),
    "layernorm_row": lambda dtype, shape, config, _: _rows("layer_norm", dtype, shape, config),
    "softmax_row": lambda dtype, shape, config, _: _rows("softmax", dtype, shape, config),
    "row_sum": _row_sum,
    "transpose2d": _transpose,
    "cuda_transpose": _cuda_transpose,
    "cuda_copy": _cuda_copy,
    "cuda_reduce": _cuda_reduce,
    "cuda_softmax": _cuda_softmax,
}


def predict(rows: pd.DataFrame, hw: HardwareConfig, done: Callable[[str], None] = lambda note: None) -> pd.DataFrame:
    """``rows`` (those of COLUMNS, launch) with ``design_cycles``: NaN where there is no design, or none that is legal."""
    found = []
    for row in rows.itertuples():
        try:
            design = memory_design(str(row.kernel), str(row.dtype), str(row.shape), str(row.config), str(row.launch))
            cycles = float("nan") if check_design(design, hw) else _cycles(design, hw)
        except (Unsupported, UserError):
            cycles = float("nan")
        found.append(cycles)
        done(str(row.id))
    return rows.assign(design_cycles=found)[COLUMNS]


def _cycles(design: BaseModel, hw: HardwareConfig) -> float:
    ready, _, _ = ready_to_build(design, hw)
    trace = family_of(design).build(ready, hw.identity.instruction_set)
    return float(project_trace(trace, hw, BUDGET, explains=False).cycles)


def errors(predictions: pd.DataFrame) -> pd.DataFrame:
    """n, median and mean of the absolute relative error, and bias (positive: too slow), of each kernel, in percent."""
    error = 100 * (predictions.design_cycles / predictions["cycles"] - 1)
    grouped = pd.DataFrame({"kernel": predictions.kernel, "error": error}).dropna().groupby("kernel")["error"]
    found = {
        "n": grouped.size(),
        "median_error": grouped.apply(lambda e: e.abs().median()),
        "mean_error": grouped.apply(lambda e: e.abs().mean()),
        "bias": grouped.mean(),
    }
    return pd.DataFrame(found).reset_index()


def write_predictions(measured: Path, hw: HardwareConfig, output: Path, split: str) -> pd.DataFrame:
    """Predict the memory-bound rows of ``measured`` (CSV) in ``split`` and write them to ``output``."""
    table = pd.read_csv(measured)
    predictions = predict(table[table.kernel.isin(list(DESIGNS)) & (table.split == split)], hw)
    predictions.to_csv(output, index=False)
    return predictions
