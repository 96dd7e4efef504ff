"""Do measured attention kernels become the designs that they are, and does the recorded table keep its accuracy?"""

from __future__ import annotations

import json

import pandas as pd
import pytest

from simulator.data_files import data_folder
from simulator.errors import Unsupported
from simulator.validation.attention_designs import compiled_design, errors, library_designs
from simulator.validation.library_times import library_time_us

SHAPE = {"B": 4, "H": 16, "S": 4096, "HD": 128, "causal": False}
BLOCKS = {"BM": 128, "BN": 64, "stages": 3, "warps": 8}
WORST_MEDIAN = {"attn_fwd": 15, "lib_sdpa cudnn": 12, "lib_sdpa flash": 12}
"""Percent."""


@pytest.mark.parametrize(
    ("head_dim", "blocks", "smem"),
    [
        (64, {**BLOCKS, "stages": 2, "warps": 4}, 49152),
        (128, BLOCKS, 131072),
        (64, {"BM": 64, "BN": 128, "stages": 2, "warps": 4}, 73728),
    ],
)
def test_shared_memory_of_a_design_is_that_of_the_compiled_kernel(head_dim: int, blocks: dict[str, int], smem: int) -> None:
    design = compiled_design("bf16", json.dumps({**SHAPE, "HD": head_dim}), json.dumps(blocks))
    assert design.smem_bytes == smem


@pytest.mark.parametrize(("head_dim", "smem"), [(64, 49152), (128, 65536)])
def test_shared_memory_of_the_flash_design_is_that_of_the_library(head_dim: int, smem: int) -> None:
    (design,) = library_designs("bf16", json.dumps({**SHAPE, "HD": head_dim, "backend": "flash"}))
    assert design.smem_bytes == smem and design.n_warps == 4


def test_other_libraries_are_refused() -> None:
    with pytest.raises(Unsupported):
        library_designs("bf16", json.dumps({**SHAPE, "backend": "math"}))


def test_errors_are_taken_by_kernel_and_backend() -> None:
    shapes = [json.dumps(SHAPE), json.dumps({**SHAPE, "backend": "cudnn"}), json.dumps({**SHAPE, "backend": "cudnn"})]
    table = pd.DataFrame(
        {"kernel": ["attn_fwd", "lib_sdpa", "lib_sdpa"], "shape": shapes, "cycles": 100, "design_cycles": [110, 90, 120]}
    )
    found = errors(table).set_index("kernel")
    assert found.loc["attn_fwd", "median_error"] == pytest.approx(10)
    assert found.loc["lib_sdpa cudnn", "median_error"] == pytest.approx(15)
    assert found.loc["lib_sdpa cudnn", "bias"] == pytest.approx(5)


def test_the_recorded_table_is_as_accurate_as_asked() -> None:
    table = pd.read_csv(data_folder("projections") / "validation" / "h200" / "attention_designs.csv")
    assert set(table.split) == {"check"}
    for row in errors(table).itertuples():
        assert row.median_error <= WORST_MEDIAN[str(row.kernel)]


def test_the_library_time_is_that_of_the_faster_library() -> None:
    design = compiled_design("bf16", json.dumps(SHAPE), json.dumps(BLOCKS))
    assert library_time_us(design, "h200") == pytest.approx(816.6, rel=0.01)
    assert library_time_us(design.model_copy(update={"heads_kv": 4}), "h200") is None
