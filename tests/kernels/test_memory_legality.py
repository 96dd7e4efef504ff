"""Is every limit of memory-bound designs named with number, limit and a change that works?"""

from __future__ import annotations

from typing import Any

import pytest

from simulator.errors import UserError
from simulator.hw.loader import load_hw
from simulator.kernels.families import parse_design
from simulator.kernels.legality import nearest_legal
from simulator.projection.tile_card import check_design
from tests.kernels.memory_designs import design

BREAKS: dict[str, tuple[str, dict[str, Any], str, float | str, float | str]] = {
    "vector wider than the row allows": ("layer norm", {"columns": 1001, "vector_bytes": 16}, "vector", 16, 2),
    "vector narrower than an element": ("softmax", {"dtype": "fp32", "vector_bytes": 2}, "vector", 2, 4),
    "rows of a transpose": ("transpose, xor", {"rows": 90, "vector_bytes": 16}, "vector", 16, 8),
    "array of a copy": ("copy", {"elements": 40_001, "vector_bytes": 16}, "vector", 16, 4),
    "a row in registers": ("softmax", {"columns": 65536}, "registers", 512, 255),
    "weights in registers": ("layer norm", {"columns": 8192, "warps": 1, "dtype": "fp32"}, "registers", 256, 255),
    "registers of a block": ("layer norm", {"columns": 1 << 20, "passes": 2, "block": 1 << 18}, "registers", 2048, 255),
    "registers of an unrolled copy": ("copy", {"unroll": 64, "elements": 1 << 22}, "registers", 320, 255),
    "unmasked columns": ("layer norm", {"columns": 1000, "masked": False}, "masked", 1000, 1024),
    "unmasked elements": ("copy", {"masked": False, "elements": 40_000}, "masked", 40_000, 512),
    "unmasked rows": ("column sums", {"masked": False, "rows": 47}, "masked", 47, 16),
    "tile of a transpose": ("transpose, xor", {"tile": {"rows": 32, "columns": 30}, "vector_bytes": 16}, "tile", 30, 4),
    "shared memory of a tile": ("transpose, xor", {"tile": {"rows": 256, "columns": 256}}, "shared_memory", 262144, 232448),
    "splits": ("column sums", {"splits": 49}, "splits", 49, 48),
    "matrix loads of 32 bits": ("transpose, xor", {"gather": "matrix"}, "gather", "matrix", "scalar"),
    "CTAs": ("copy", {"elements": 1 << 33, "warps": 1, "vector_bytes": 4}, "grid", 1 << 28, 1 << 22),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_limit_is_named_and_its_change_is_legal(name: str) -> None:
    option, changes, rule, value, limit = BREAKS[name]
    hw = load_hw("h200")
    one = design(option, **changes)
    violation = next(v for v in check_design(one, hw) if v.rule == rule)
    assert (violation.value, violation.limit) == (value, limit)
    shown = f"{value:,}" if isinstance(value, int) else value
    assert shown in violation.message or str(value) in violation.message
    legal = nearest_legal(one, hw, check_design)
    assert legal is not None and check_design(legal, hw) == []


@pytest.mark.parametrize(
    ("chip", "dtype", "nearest"), [("t4", "bf16", "fp16"), ("a100_sxm", "fp8_e4m3", "fp16"), ("rtx_4090", "fp8_e4m3", None)]
)
def test_a_format_that_a_chip_does_not_convert_is_refused(chip: str, dtype: str, nearest: str | None) -> None:
    hw = load_hw(chip)
    one = design("layer norm", dtype=dtype)
    assert [v.rule for v in check_design(one, hw)] == (["dtype"] if nearest else [])
    legal = nearest_legal(one, hw, check_design)
    assert legal is not None and legal.model_dump()["dtype"] == (nearest or dtype)


def test_columns_that_no_vector_divides_take_narrower_loads_by_default() -> None:
    one: Any = design("layer norm", columns=1001)
    assert one.access_bytes == 2 and check_design(one, load_hw("h200")) == []


def test_other_instruction_sets_are_refused_in_one_sentence() -> None:
    with pytest.raises(UserError, match="sm_"):
        check_design(design("copy"), load_hw("mi300x"))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"kind": "layer_norm", "rows": 8}, "'columns' is missing"),
        ({"kind": "layer_norm", "rows": 8, "columns": 8, "wraps": 4}, "'wraps' is not known"),
        ({"kind": "softmax", "rows": 8, "columns": 0}, "columns is 0"),
        ({"kind": "softmax", "rows": 8, "columns": 8, "dtype": "fp7"}, "dtype is 'fp7'"),
        ({"kind": "softmax", "rows": 8, "columns": 8, "weights": "scale"}, "softmax has no weights"),
        ({"kind": "rms_norm", "rows": 8, "columns": 8, "passes": 3}, "passes 1 or 2"),
        ({"kind": "softmax", "rows": 8, "columns": 8, "warps": 4, "rows_per_cta": 3}, "does not divide warps 4"),
        ({"kind": "softmax", "rows": 8, "columns": 8, "block": 8}, "block goes with passes 2 or 3"),
        ({"kind": "streaming", "operation": "transpose", "elements": 8}, "takes rows and columns"),
        ({"kind": "streaming", "operation": "transpose", "tile": {"rows": 0, "columns": 8}}, "tile.rows is 0"),
        ({"kind": "streaming", "operation": "copy"}, "takes elements"),
        ({"kind": "streaming", "operation": "copy", "elements": 8, "layout": "xor"}, "go with operation transpose"),
        ({"kind": "streaming", "operation": "copy", "elements": 8, "inputs": 2}, "operation elementwise has both"),
        ({"kind": "reduction", "columns": 8, "splits": 2}, "splits goes with axis column"),
        ({"kind": "reduction", "columns": 8, "axis": "diagonal"}, "axis is 'diagonal'"),
    ],
)
def test_bad_designs_are_one_sentence(values: object, words: str) -> None:
    with pytest.raises(UserError) as error:
        parse_design(values, "x.yaml")
    assert words in str(error.value) and "\n" not in str(error.value)
