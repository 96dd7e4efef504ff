"""Do measured tile parameters become the design that they describe, and are rankings scored right?"""

from __future__ import annotations

import json

import pandas as pd
import pytest

from simulator.errors import Unsupported
from simulator.kernels.families import parse_design
from simulator.validation.library_times import library_time_us
from simulator.validation.ranking import kendall_tau, rankings
from simulator.validation.tile_designs import design_of

SHAPE = json.dumps({"M": 4096, "N": 4096, "K": 4096})
TRITON = {"BM": 128, "BN": 128, "BK": 64, "stages": 3, "warps": 4, "GM": 8}


def test_shared_memory_of_a_design_is_that_of_the_compiled_kernel() -> None:
    """Measured: 98,328 bytes with tensor maps (three barriers), 98,304 with asynchronous copies, 164,928 specialised."""
    assert design_of("matmul_tma", "bf16", SHAPE, json.dumps(TRITON)).smem_bytes == 98328
    assert design_of("matmul_ptr", "bf16", SHAPE, json.dumps(TRITON)).smem_bytes == 98304
    special = {**TRITON, "stages": 4, "consumer_wgs": 2, "persistent": 1, "cluster": 1, "smem_swizzle": 128}
    special["epilogue"] = "stsm_tma"
    assert design_of("cuda_wgmma_ws", "bf16", SHAPE, json.dumps(special)).smem_bytes == 164928


def test_what_has_no_generator_is_refused() -> None:
    with pytest.raises(Unsupported):
        design_of("attn_fwd", "bf16", SHAPE, json.dumps(TRITON))
    with pytest.raises(Unsupported):
        design_of("matmul_ptr", "bf16", SHAPE, json.dumps({**TRITON, "trans": "nn"}))


def test_kendall_tau_counts_pairs() -> None:
    assert kendall_tau([1, 2, 3], [10, 20, 30]) == 1
    assert kendall_tau([1, 2, 3], [30, 20, 10]) == -1
    assert kendall_tau([1, 2, 3], [10, 30, 20]) == pytest.approx(1 / 3)


def test_regret_is_what_the_pick_costs_over_the_best() -> None:
    n = 10
    table = pd.DataFrame(
        {"kernel": "k", "dtype": "bf16", "shape": "s", "cycles": range(100, 100 + n), "design_cycles": [50, *[9] * (n - 1)]}
    )
    (row,) = rankings(table, n, "design_cycles").to_dict("records")
    assert rankings(table, n + 1, "design_cycles").empty
    assert row["n"] == n and row["regret"] == pytest.approx(0.01)


def test_library_times_are_of_the_measured_chip_alone() -> None:
    design = design_of("matmul_tma", "bf16", json.dumps({"M": 8192, "N": 8192, "K": 8192}), json.dumps(TRITON))
    assert library_time_us(design, "h200") == pytest.approx(1380, rel=0.01)
    assert library_time_us(design, "b200") is None


def test_library_times_of_rows_are_found_by_shape_and_dtype() -> None:
    design = parse_design({"kind": "softmax", "rows": 8192, "columns": 4096, "dtype": "bf16"}, "x")
    assert library_time_us(design, "h200") == pytest.approx(112, rel=0.01)
    assert library_time_us(design.model_copy(update={"dtype": "fp32"}), "h200") is None
