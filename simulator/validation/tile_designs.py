"""Generated designs against measured kernels of the same tile parameters: how far off, and do they rank them alike?"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from itertools import combinations
from pathlib import Path

import pandas as pd

from simulator.errors import Unsupported, UserError
from simulator.hw.config import HardwareConfig
from simulator.kernels.families import family_of
from simulator.kernels.gemm_design import GemmDesign
from simulator.projection.run import project_trace
from simulator.projection.tile_card import ready_to_build

FEWEST_CONFIGS = 10
"""Shapes with fewer measured configurations are not ranked."""
TRITON_KERNELS = ("matmul_tma", "matmul_ptr")
SPECIALISED_KERNEL = "cuda_wgmma_ws"
DTYPES = {"fp8": "fp8_e4m3", "fp32": "tf32"}
"""Names of measured rows; Triton multiplies fp32 operands as tf32."""
EPILOGUES = {"direct": "direct", "stsm_tma": "tma"}


def design_of(kernel: str, dtype: str, shape: str, config: str) -> GemmDesign:
    """The design with the parameters of a measured row (``shape``, ``config``: JSON). Unsupported for other kernels."""
    extents, c = json.loads(shape), json.loads(config)
    common = {
        "m": extents["M"], "n": extents["N"], "k": extents["K"], "group_m": c["GM"],
        "tile": {"m": c["BM"], "n": c["BN"], "k": c["BK"]},
    }  # fmt: skip
    if kernel == SPECIALISED_KERNEL:
        if c.get("cluster_fences") or c["epilogue"] not in EPILOGUES:
            raise Unsupported("cluster-scope fences and other epilogues have no design option")
        special = {
            "stages": c["stages"],
            "warps": 4 * c["consumer_wgs"],
            "producer_warps": 4,
            "persistent": bool(c["persistent"]),
            "cluster": c["cluster"],
            "multicast": "b" if c["cluster"] > 1 else "none",
            "swizzle_bytes": c["smem_swizzle"],
            "epilogue": EPILOGUES[c["epilogue"]],
            "schedule": "ping_pong" if c.get("pingpong") else "cooperative",
        }
        return GemmDesign.model_validate(common | special)
    if kernel not in TRITON_KERNELS or c.get("trans", "nt") != "nt":
        raise Unsupported(f"kernel {kernel} has no generator with its options")
    bulk = kernel == "matmul_tma"
    # Triton's multiply-adds by single warps read fragments before the next copy is issued: one buffer less than stages
    by_warp = c["BM"] < 64 or c["warps"] % 4 != 0
    plain = {
        "dtype": DTYPES.get(dtype, dtype),
        "stages": max(1, c["stages"] - 1) if by_warp else c["stages"],
        "warps": c["warps"],
        "loads": "tma" if bulk else "cp_async",
        "epilogue": "tma" if bulk else "staged",
    }
    return GemmDesign.model_validate(common | plain)


def predict(rows: pd.DataFrame, hw: HardwareConfig, done: Callable[[str], None] = lambda note: None) -> pd.DataFrame:
    """``rows`` (id, kernel, dtype, shape, config, cycles, split) with ``design_cycles`` (NaN where there is no design)."""
    found = []
    for row in rows.itertuples():
        try:
            design = design_of(str(row.kernel), str(row.dtype), str(row.shape), str(row.config))
            ready, _, _ = ready_to_build(design, hw)
            trace = family_of(design).build(ready, hw.identity.instruction_set)
            cycles = float(project_trace(trace, hw, explains=False).cycles)
        except (Unsupported, UserError):
            cycles = float("nan")
        found.append(cycles)
        done(str(row.id))
    return rows.assign(design_cycles=found)[["id", "kernel", "dtype", "shape", "config", "split", "cycles", "design_cycles"]]


def kendall_tau(measured: Iterable[float], predicted: Iterable[float]) -> float:
    """Share of pairs in the same order minus share in the other (ties count half each)."""
    pairs = list(combinations(zip(measured, predicted, strict=True), 2))
    return sum(_sign(a - c) * _sign(b - d) for (a, b), (c, d) in pairs) / len(pairs)


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def rankings(predictions: pd.DataFrame) -> pd.DataFrame:
    """Of every (kernel, dtype, shape) with enough configurations: n, Kendall tau, regret of the design that is picked."""
    known = predictions.dropna(subset=["design_cycles"])
    found = []
    for (kernel, dtype, shape), group in known.groupby(["kernel", "dtype", "shape"]):
        if len(group) < FEWEST_CONFIGS:
            continue
        picked = float(group["cycles"].iloc[int(group.design_cycles.argmin())])
        found.append(
            {
                "kernel": kernel,
                "dtype": dtype,
                "shape": shape,
                "n": len(group),
                "tau": kendall_tau(group["cycles"], group.design_cycles),
                "regret": picked / group["cycles"].min() - 1,
                "median_error": (group.design_cycles / group["cycles"] - 1).abs().median(),
            }
        )
    return pd.DataFrame(found)


def write_predictions(measured: Path, hw: HardwareConfig, output: Path, split: str, kernels: tuple[str, ...]) -> pd.DataFrame:
    """Predict the rows of ``measured`` (CSV) in ``split`` and write them to ``output``."""
    table = pd.read_csv(measured)
    rows = table[table.kernel.isin(kernels) & (table.split == split)]
    predictions = predict(rows, hw)
    predictions.to_csv(output, index=False)
    return predictions
