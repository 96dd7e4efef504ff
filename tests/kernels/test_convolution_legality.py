"""Is every limit of a convolution named with number, limit and a change that works?"""

from __future__ import annotations

from typing import Any

import pytest

from simulator.errors import UserError
from simulator.hw.config import HardwareConfig
from simulator.hw.loader import load_hw
from simulator.kernels.convolution_design import ConvolutionDesign
from simulator.kernels.families import parse_design
from simulator.kernels.legality import nearest_legal
from simulator.projection.tile_card import check_design
from tests.kernels.limits import nearest_to_broken
from tests.kernels.test_convolution import SMALL, design

BREAKS: dict[str, tuple[dict[str, Any], str, float, float]] = {
    "pixels of whole chunks": ({"channels": 3}, "alignment", 6, 16),
    "filter beyond the padded image": ({"image": 2, "filter": 7, "padding": 1}, "filter", 7, 4),
    "dilated filter beyond the image": ({"image": 8, "dilation": 5}, "filter", 11, 10),
    "corner of a box": ({"image": 300, "padding": 130, "batch": 1}, "im2col", -130, -128),
    "far corner of a box": ({"image": 300, "filter": 130, "padding": 0, "batch": 1}, "im2col", -129, -128),
    "offset of a tap": ({"image": 300, "filter": 257, "padding": 128, "batch": 1}, "im2col", 256, 255),
    "stride of a box": ({"image": 40, "stride": 9}, "im2col", 9, 8),
    "shared memory": ({"stages": 30, "tile": {"m": 128, "n": 128, "k": 32}}, "shared_memory", 491760, 232448),
    "rows of the warpgroup": ({"tile": {"m": 96, "n": 64, "k": 32}}, "tile_m", 96, 64),
    "k of the instruction": ({"tile": {"m": 64, "n": 64, "k": 40}}, "tile_k", 40, 16),
}


@pytest.fixture(scope="module")
def hw() -> HardwareConfig:
    return load_hw("h200")


@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_limit_is_named_and_its_change_is_legal(name: str, hw: HardwareConfig) -> None:
    changes, rule, value, limit = BREAKS[name]
    legal = nearest_to_broken(design(**changes), hw, rule, value, limit)
    assert isinstance(legal, ConvolutionDesign) and check_design(legal, hw) == []


def test_a_1x1_convolution_needs_no_im2col_boxes_and_has_none_of_their_limits(hw: HardwareConfig) -> None:
    assert check_design(design(filter=1, padding=0), hw) == []
    assert {v.rule for v in check_design(design(filter=1, padding=0, stride=9), hw)} == {"im2col"}


def test_a_chip_without_bulk_copies_is_told_what_works() -> None:
    other = load_hw("a100_sxm")
    one = design()
    assert {"loads", "multiply"} <= {violation.rule for violation in check_design(one, other)}
    legal = nearest_legal(one, other, check_design)
    assert isinstance(legal, ConvolutionDesign) and legal.loads == "cp_async" and check_design(legal, other) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tile": {"m": 0, "n": 64, "k": 64}}, "tile.m is 0"),
        ({"filter": 0}, "filter.height is 0"),
        ({"padding": -1}, "padding.height is -1"),
        ({"stride": {"height": 1, "widht": 1}}, "stride.width"),
        ({"multicast": "a", "cluster": 2}, "multicast is 'a'"),
        ({"stream_k": True}, "stream_k is True"),
        ({"stages": 1}, "stages is 1"),
        ({"k": 64}, "'k' is not known"),
    ],
)
def test_bad_designs_are_one_sentence(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError) as error:
        parse_design({"kind": "convolution", **SMALL, **changes}, "x.yaml")
    assert words in str(error.value) and "\n" not in str(error.value)
