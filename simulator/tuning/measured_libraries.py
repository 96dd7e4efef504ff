"""The best tuned design of a problem against what silicon measured: a vendor library, and the best of many compiled kernels."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from simulator.errors import UserError
from simulator.hw.config import HardwareConfig
from simulator.kernels.gemm_design import GemmDesign
from simulator.tuning.designs import concatenate, one_row
from simulator.tuning.gemm_columns import GemmProblem, row_of
from simulator.tuning.gemm_model import estimate
from simulator.tuning.search import Effort, tune
from simulator.tuning.simulate import as_json
from simulator.tuning.words import describe
from simulator.validation.library_times import LIBRARY_KERNEL
from simulator.validation.ranking import kendall_tau
from simulator.validation.tile_designs import DTYPES, design_of

FEWEST_CONFIGS = 10
"""Shapes with fewer measured configurations are not ranked."""

N_SIMULATED = 5
"""Of the measured configurations of a shape, so many are simulated: those that the screen puts first."""


def problem_of_row(dtype: str, shape: str) -> GemmProblem:
    """The problem of a library's measured row; ``shape``: JSON with M, N, K and how fp32 was multiplied (math)."""
    extents = json.loads(shape)
    name = DTYPES.get(dtype, dtype) if extents.get("math") != "fp32" else "fp32"
    return GemmProblem(m=extents["M"], n=extents["N"], k=extents["K"], dtype=name)  # type: ignore[arg-type]


def against_library(
    rows: pd.DataFrame, hw: HardwareConfig, effort: Effort | None = None, done: Callable[[str], None] = lambda note: None
) -> pd.DataFrame:
    """``rows`` (id, kernel, dtype, shape, split, median_us, ncu_time_ns) of the library with the best design's projected time:
    ``measured_us`` in the profiler, ``timed_us`` between events (with the launch), ``projected_us``, NaN where none is legal."""
    found = []
    for row in rows[rows.kernel == LIBRARY_KERNEL].to_dict("records"):
        problem = problem_of_row(row["dtype"], row["shape"])
        try:
            best = tune(problem, hw, effort).best
            projected, design = best.time_us, describe(as_json(best.design))
        except UserError as error:
            projected, design = float("nan"), str(error)
        shape = f"{problem.m}x{problem.n}x{problem.k}"
        times = {"measured_us": row["ncu_time_ns"] / 1e3, "timed_us": row["median_us"], "projected_us": projected}
        found.append({"id": row["id"], "dtype": problem.dtype, "shape": shape, "split": row["split"], **times, "design": design})
        done(str(row["id"]))
    return pd.DataFrame(found)


def library_errors(table: pd.DataFrame) -> pd.DataFrame:
    """Median and mean absolute error, and the signed mean, of ``against_library``: rows of 50 us and more, and shorter ones."""
    known = table.dropna(subset=["projected_us"])
    error = known.projected_us / known.measured_us - 1
    is_long = known.timed_us >= 50
    found = []
    for name, mask in (("50 us and more", is_long), ("shorter", ~is_long)):
        e = error[mask]
        found.append({"rows": name, "n": len(e), "median": e.abs().median(), "mean": e.abs().mean(), "bias": e.mean()})
    return pd.DataFrame(found)


def picks(simulated: pd.DataFrame, hw: HardwareConfig) -> pd.DataFrame:
    """Of every (kernel, dtype, shape) with enough measured configurations: what the screen and N_SIMULATED simulations pick.

    ``simulated``: measured ``cycles`` and projected ``design_cycles`` by kernel, dtype, shape, config (see tile_designs).
    ``tau`` of the screen against silicon; ``regret``: measured time of the pick over the best measured, less 1;
    ``screen_regret``: of the screen's first alone.
    """
    found = []
    for (kernel, dtype, shape), group in simulated.dropna(subset=["design_cycles"]).groupby(["kernel", "dtype", "shape"]):
        if len(group) < FEWEST_CONFIGS:
            continue
        designs = [design_of(str(kernel), str(dtype), str(shape), str(config)) for config in group["config"]]
        screened = _screened(designs, hw)
        first = np.argsort(screened, kind="stable")[:N_SIMULATED]
        cycles = group["cycles"].to_numpy()
        pick = first[int(np.argmin(group.design_cycles.to_numpy()[first]))]
        found.append(
            {
                "kernel": kernel, "dtype": dtype, "shape": shape, "n": len(group),
                "tau": kendall_tau(cycles.tolist(), screened.tolist()),
                "screen_regret": cycles[first[0]] / cycles.min() - 1,
                "regret": cycles[pick] / cycles.min() - 1,
            }
        )  # fmt: skip
    return pd.DataFrame(found)


def _screened(designs: list[GemmDesign], hw: HardwareConfig) -> np.ndarray:
    """Cycles by the screen of designs of one problem."""
    problem = GemmProblem(m=designs[0].m, n=designs[0].n, k=designs[0].k, dtype=designs[0].dtype)  # type: ignore[arg-type]
    table = concatenate([one_row(row_of(design)) for design in designs])
    return estimate(problem, table, hw).cycles


def write_against_library(measured: Path, hw: HardwareConfig, output: Path, split: str) -> pd.DataFrame:
    """Tune the library's problems of ``measured`` (CSV) in ``split`` and write the table to ``output``."""
    rows = pd.read_csv(measured)
    table = against_library(rows[rows.split == split], hw)
    table.to_csv(output, index=False, float_format="%.3f")
    return table
