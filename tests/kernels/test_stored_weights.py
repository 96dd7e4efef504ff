"""Do weights in narrow formats with scales move the bytes of their format, and are they converted before they multiply?"""

from __future__ import annotations

from typing import Any

import pytest

from simulator.hw.config import HardwareConfig
from simulator.hw.loader import load_hw
from simulator.kernels.convolution_design import ConvolutionDesign
from simulator.kernels.gemm import build, least_bytes
from simulator.kernels.gemm_design import GemmDesign
from simulator.kernels.legality import nearest_legal
from simulator.kernels.scaled_formats import SCALED
from simulator.projection.run import project_trace
from simulator.projection.tile_card import check_design
from tests.kernels.designs import design
from tests.kernels.test_gemm import executions, multiply_add_flops

ISA = "sm_90a"
COMMON: dict[str, Any] = {"m": 64, "n": 512, "k": 512, "tile": {"m": 64, "n": 64, "k": 64}, "stages": 3, "warps": 4}
COPIES = {"loads": "cp_async", "epilogue": "staged"}
BITS_WITH_SCALES = {"mxfp8": 8 + 8 / 32, "mxfp6": 6 + 8 / 32, "mxfp4": 4 + 8 / 32, "nvfp4": 4 + 8 / 16}
"""Bits of an element with its share of a scale."""


@pytest.fixture(scope="module")
def hw() -> HardwareConfig:
    return load_hw("h200")


def stored(**changes: Any) -> GemmDesign:
    return design(**(COMMON | changes))


@pytest.mark.parametrize("weights", BITS_WITH_SCALES)
@pytest.mark.parametrize("more", [{}, COPIES])
def test_weights_bring_the_bytes_of_their_format_once(weights: str, more: dict[str, Any], hw: HardwareConfig) -> None:
    one = stored(weights=weights, **more)
    assert check_design(one, hw) == []
    b = one.n * one.k * BITS_WITH_SCALES[weights] / 8
    a, c = one.m * one.k * 2, one.m * one.n * 2
    assert least_bytes(one) == a + b + c
    assert one.b_bytes == one.tile.n * one.tile.k * BITS_WITH_SCALES[weights] / 8
    trace = build(one, ISA)
    assert a + b <= project_trace(trace, hw, explains=False).bytes["dram_read"] <= 1.01 * (a + b)
    copied = sum(int(trace.events.count[event]) * n for _, event, n in executions(trace, "UTMALDG"))
    for _, event, n in executions(trace, "LDGSTS"):
        copied += 16 * int((trace.lane_patterns[trace.events.pattern[event]] >= 0).sum()) * n
    assert copied == one.tiles_m * b + one.tiles_n * a


@pytest.mark.parametrize("weights", BITS_WITH_SCALES)
def test_every_element_is_converted_and_scaled_once_a_warp(weights: str) -> None:
    one = stored(weights=weights)
    trace, plain = build(one, ISA), build(stored(multiply="mma_sync"), ISA)
    assert multiply_add_flops(trace) == multiply_add_flops(plain)
    along_m = one.warp_grid[0]
    registers = one.n * one.k * one.tiles_m * along_m // 2 // 32
    assert sum(n for _, _, n in executions(trace, "HMUL2")) == registers
    # packed fragments: as many bytes as elements, each read by every warp along m
    loaded = sum(32 * int(trace.static.width_bytes[row]) * n for row, _, n in executions(trace, "LDS."))
    elements = one.n * one.k * SCALED[weights].bits // 8 * one.tiles_m * along_m
    # and four lanes read the same scales
    assert loaded == elements + 4 * one.n * one.k // SCALED[weights].block * one.tiles_m * along_m
    assert {trace.static.opcode[row] for row, _, _ in executions(plain, "LDSM")} >= {"LDSM.16.M88.4"}


def test_narrow_weights_are_worth_it_where_memory_binds(hw: HardwareConfig) -> None:
    decode = {"m": 16, "n": 4096, "k": 4096, "tile": {"m": 16, "n": 128, "k": 64}, "stages": 4, "warps": 4, "split_k": 4}
    wide, narrow = (project_trace(build(stored(**decode, weights=w), ISA), hw, explains=False) for w in (None, "mxfp4"))
    assert narrow.bytes["dram_read"] < 0.3 * wide.bytes["dram_read"]
    assert narrow.cycles < wide.cycles


BREAKS: dict[str, tuple[dict[str, Any], str, Any, Any]] = {
    "warpgroup multiply-adds": ({"multiply": "wgmma"}, "multiply", "wgmma", "mma_sync"),
    "8-bit multiply-adds": ({"dtype": "fp8_e4m3"}, "dtype", "fp8_e4m3", "bf16, fp16"),
    "half a block": ({"tile": {"m": 64, "n": 64, "k": 48}, "k": 480}, "tile_k", 48, 32),
    "part of a tile of n": ({"n": 504}, "alignment", 504, 64),
    "part of a tile of k": ({"k": 504}, "alignment", 504, 64),
    "part of a line": ({"tile": {"m": 64, "n": 16, "k": 32}}, "box", 272, 128),
    "multicast": ({"cluster": 2, "multicast": "b"}, "multicast", "b", "none"),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_limit_is_named_and_its_change_is_legal(name: str, hw: HardwareConfig) -> None:
    changes, rule, value, limit = BREAKS[name]
    one = stored(weights="mxfp4", **changes)
    violation = next(v for v in check_design(one, hw) if v.rule == rule)
    assert (violation.value, violation.limit) == (value, limit)
    legal = nearest_legal(one, hw, check_design)
    assert legal is not None and check_design(legal, hw) == []


@pytest.mark.parametrize("dtype", SCALED)
@pytest.mark.parametrize("chip", ["h200", "b200", "a100_sxm"])
def test_a_format_that_no_generator_multiplies_is_refused_with_what_works(dtype: str, chip: str) -> None:
    other = load_hw(chip)
    one = stored(dtype=dtype)
    [violation] = check_design(one, other)
    assert violation.rule == "dtype" and dtype in violation.message and "\n" not in violation.message
    legal = nearest_legal(one, other, check_design)
    assert isinstance(legal, GemmDesign) and legal.weights == dtype and legal.method == "mma_sync"


def test_convolutions_have_no_stored_weights() -> None:
    with pytest.raises(ValueError, match="weights"):
        ConvolutionDesign.model_validate({"batch": 1, "image": 8, "channels": 64, "filters": 64, "filter": 1, "weights": "mxfp4"})


def test_threads_that_multiply_alone_read_operands_without_conflicts(hw: HardwareConfig) -> None:
    one = design(dtype="fp32", loads="cp_async", epilogue="direct", tile={"m": 128, "n": 128, "k": 8}, warps=8)
    assert project_trace(build(one, ISA), hw, explains=False).smem["bank_conflicts"] == 0
