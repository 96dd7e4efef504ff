"""Do generated convolutions read the pixels of a convolution, with every tap, stride and padding?"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from simulator.hw.config import HardwareConfig
from simulator.hw.loader import load_hw
from simulator.kernels.convolution import build, flops, least_bytes, neighbours
from simulator.kernels.convolution_design import ConvolutionDesign
from simulator.kernels.convolution_pixels import pixels_needed, pixels_read, tile_kinds
from simulator.kernels.gemm import build as build_gemm
from simulator.kernels.gemm import flops as gemm_flops
from simulator.kernels.gemm import least_bytes as gemm_least_bytes
from simulator.kernels.gemm_design import GemmDesign
from simulator.projection.run import project_trace
from simulator.projection.tile_card import check_design
from simulator.trace.kernel_trace import KernelTrace
from tests.kernels.test_gemm import multiply_add_flops

ISA = "sm_90a"
SMALL: dict[str, Any] = {"batch": 2, "image": 9, "channels": 32, "filters": 64, "filter": 3, "padding": 1}
SMALL |= {"tile": {"m": 64, "n": 64, "k": 32}, "stages": 2, "warps": 4}
COPIES = {"loads": "cp_async", "epilogue": "staged"}
PROBLEMS: dict[str, dict[str, Any]] = {
    "3x3": {},
    "no padding": {"padding": 0},
    "stride 2": {"stride": 2, "image": {"height": 9, "width": 12}},
    "stride 2, no padding": {"stride": 2, "padding": 0},
    "1x1 stride 2": {"filter": 1, "padding": 0, "stride": 2},
    "1x1": {"filter": 1, "padding": 0},
    "1x3": {"filter": {"height": 1, "width": 3}, "padding": {"height": 0, "width": 1}},
    "dilation 2": {"dilation": 2, "padding": 2},
    "dilation and stride": {"dilation": {"height": 1, "width": 3}, "padding": 3, "stride": {"height": 2, "width": 1}},
    "rows longer than a tile": {"image": {"height": 3, "width": 70}, "batch": 1},
    "rows as long as a tile": {"image": {"height": 3, "width": 64}, "batch": 2},
    "rows of one pixel": {"image": {"height": 7, "width": 1}},
    "channels beyond a step": {"channels": 40},
    "wide filter, small image": {"image": 3, "filter": 5, "padding": 2},
    "more filters than a tile": {"filters": 72},
}
ROLES: dict[str, dict[str, Any]] = {
    "producer warps": {"producer_warps": 4, "tile": {"m": 128, "n": 64, "k": 32}, "warps": 8},
    "persistent": {"persistent": True, "persistent_ctas": 2},
    "split k": {"split_k": 2},
    "cluster shares filters": {"cluster": 2, "multicast": "b", "tile": {"m": 64, "n": 64, "k": 32}},
    "warp multiply-adds": {"multiply": "mma_sync"},
    "fp8": {"dtype": "fp8_e4m3"},
    "tf32": {"dtype": "tf32"},
    "bias and relu": {"bias": True, "activation": "relu"},
}


@pytest.fixture(scope="module")
def hw() -> HardwareConfig:
    return load_hw("h200")


def design(**changes: Any) -> ConvolutionDesign:
    return ConvolutionDesign.model_validate(SMALL | changes)


def bytes_read(trace: KernelTrace, name: str) -> Counter[int]:
    """How often each 16-byte chunk of buffer ``name`` is read by bulk and asynchronous copies of the launch."""
    buffer = next(b for b in trace.buffers if b.name == name)
    found: Counter[int] = Counter()
    for cta, number in enumerate(trace.cta_class):
        for stream in trace.streams[number]:
            for row, event in zip(stream.instruction[stream.active > 0], stream.event[stream.active > 0], strict=True):
                opcode = trace.static.opcode[row]
                if opcode.startswith("UTMALDG"):
                    places = box_chunks(trace, cta, int(event))
                elif opcode.startswith("LDGSTS"):
                    places = lane_chunks(trace, cta, int(event))
                else:
                    continue
                inside = places[(places >= buffer.address) & (places < buffer.address + buffer.n_bytes)]
                found.update(((inside - buffer.address) // 16).tolist())
    return found


def moved(trace: KernelTrace, cta: int, event: int) -> np.ndarray:
    base = trace.events.base[event]
    return np.where(base >= 0, trace.cta_base[cta, np.maximum(base, 0)], 0) if trace.cta_base.shape[1] else np.zeros(5, np.int64)


def box_chunks(trace: KernelTrace, cta: int, event: int) -> np.ndarray:
    tensor = trace.tensor_maps[trace.events.tensor[event]]
    start = trace.events.coordinate[event] + moved(trace, cta, event)
    places = np.array([tensor.address])
    for d, (extent, box) in enumerate(zip(tensor.shape, tensor.box, strict=True)):
        at = start[d] + np.arange(box)
        at = at[(at >= 0) & (at < extent)]
        stride = tensor.element_bytes if d == 0 else tensor.strides_bytes[d - 1]
        places = (places[:, None] + at * stride).ravel()
    return places[places % 16 == 0]


def lane_chunks(trace: KernelTrace, cta: int, event: int) -> np.ndarray:
    lanes = trace.lane_patterns[trace.events.pattern[event]].astype(np.int64)
    return trace.events.address[event] + moved(trace, cta, event)[0] + lanes[lanes >= 0]


def chunks_of_convolution(one: ConvolutionDesign) -> Counter[int]:
    """From the definition: for every output pixel and tap, the pixel of the image that it multiplies, once a column of tiles."""
    found: Counter[int] = Counter()
    per_pixel = one.channels * one.format.n_bytes // 16
    rows, columns = one.output
    for image, y, x, r, s in np.ndindex(one.batch, rows, columns, one.filter.height, one.filter.width):
        row = y * one.stride.height - one.padding.height + r * one.dilation.height
        column = x * one.stride.width - one.padding.width + s * one.dilation.width
        if 0 <= row < one.image.height and 0 <= column < one.image.width:
            pixel = (image * one.image.height + row) * one.image.width + column
            found.update(range(pixel * per_pixel, (pixel + 1) * per_pixel))
    return Counter({chunk: n * one.tiles_n for chunk, n in found.items()})


@pytest.mark.parametrize("loads", ["tma", "cp_async"])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_every_tap_of_every_output_reads_its_pixel_once(problem: str, loads: str) -> None:
    one = design(**PROBLEMS[problem], **({} if loads == "tma" else COPIES))
    trace = build(one, ISA)
    expected = chunks_of_convolution(one)
    assert bytes_read(trace, "a" if one.is_product else "images") == expected
    per_pixel = one.channels * one.format.n_bytes // 16
    assert sum(expected.values()) == pixels_read(one) * per_pixel * one.tiles_n
    assert len(expected) == pixels_needed(one) * per_pixel
    filters = bytes_read(trace, "b" if one.is_product else "filters")
    assert set(filters.values()) == {one.tiles_m}
    assert len(filters) == one.filters * one.taps * per_pixel


@pytest.mark.parametrize("role", [*ROLES, "copies, persistent"])
def test_every_role_reads_the_same_pixels_and_runs_to_the_end(role: str, hw: HardwareConfig) -> None:
    one = design(**(ROLES[role] if role in ROLES else {**COPIES, **ROLES["persistent"]}))
    assert check_design(one, hw) == []
    trace = build(one, ISA)
    assert bytes_read(trace, "images") == chunks_of_convolution(one)
    projection = project_trace(trace, hw)
    assert projection.cycles >= max(projection.bounds.values())
    assert sum(projection.stalls.values()) == pytest.approx(1)


@pytest.mark.parametrize("loads", ["tma", "cp_async"])
def test_memory_sees_each_pixel_once_and_the_l2_each_tap(loads: str, hw: HardwareConfig) -> None:
    one = design(image=28, batch=8, channels=64, tile={"m": 128, "n": 64, "k": 64}, **({} if loads == "tma" else COPIES))
    projection = project_trace(build(one, ISA), hw)
    pixel = one.channels * one.format.n_bytes
    once = (pixels_needed(one) + one.filters * one.taps) * pixel
    # sectors of 32 bytes: nothing is fetched twice from DRAM, nothing of the padding at all
    assert once <= projection.bytes["dram_read"] <= 1.02 * once
    # neighbouring SMs share reads of the same filters on their way to the L2; pixels are their own
    filters = one.tiles_m * one.filters * one.taps * pixel
    assert pixels_read(one) * pixel <= projection.bytes["l2_read"] <= pixels_read(one) * pixel + filters
    assert pixels_read(one) > 8 * pixels_needed(one)


@pytest.mark.parametrize("more", [{}, {"producer_warps": 4, "warps": 8, "tile": {"m": 128, "n": 128, "k": 64}}, COPIES])
def test_a_1x1_convolution_is_the_gemm_of_its_pixels(more: dict[str, Any], hw: HardwareConfig) -> None:
    common = {"tile": {"m": 128, "n": 64, "k": 64}, "warps": 4, "stages": 3, **more}
    one = ConvolutionDesign.model_validate({"batch": 4, "image": 28, "channels": 256, "filters": 128, "filter": 1, **common})
    other = GemmDesign.model_validate({"m": 4 * 28 * 28, "n": 128, "k": 256, **common})
    assert (one.m, one.n, one.k, one.k_steps) == (other.m, other.n, other.k, other.k_steps)
    assert (flops(one), least_bytes(one)) == (gemm_flops(other), gemm_least_bytes(other))
    p, q = project_trace(build(one, ISA), hw), project_trace(build_gemm(other, ISA), hw)
    assert p.cycles == q.cycles and p.bytes == q.bytes


def test_a_1x1_convolution_with_a_stride_is_nearly_the_gemm_of_its_outputs(hw: HardwareConfig) -> None:
    common = {"tile": {"m": 128, "n": 128, "k": 64}, "warps": 8, "producer_warps": 4, "stages": 4}
    shape = {"batch": 8, "image": 56, "channels": 512, "filters": 256, "filter": 1, "stride": 2}
    one = ConvolutionDesign.model_validate(shape | common)
    other = GemmDesign.model_validate({"m": one.m, "n": 256, "k": 512, **common})
    cycles = [project_trace(t, hw, explains=False).cycles for t in (build(one, ISA), build_gemm(other, ISA))]
    assert cycles[0] == pytest.approx(cycles[1], rel=0.05)


@pytest.mark.parametrize("problem", [name for name in PROBLEMS if "channels" not in name])
def test_operations_are_those_of_the_definition_and_of_the_tiles(problem: str) -> None:
    one = design(**PROBLEMS[problem])
    rows, columns = one.output
    assert flops(one) == 2 * one.batch * rows * columns * one.filters * one.channels * one.filter.height * one.filter.width
    tiles = one.tiles_m * one.tile.m * one.tiles_n * one.tile.n
    assert multiply_add_flops(build(one, ISA)) == 2 * tiles * one.channels * one.taps


def test_least_bytes_leave_out_pixels_that_no_tap_reads() -> None:
    one = design(image=8, filter=1, padding=0, stride=2)
    read = one.batch * 4 * 4 * one.channels * 2
    assert least_bytes(one) == read + one.filters * one.channels * 2 + one.batch * 16 * one.filters * 2


def test_kinds_of_tiles_are_bounded() -> None:
    one = design(image={"height": 61, "width": 59}, batch=4)
    first = np.arange(0, one.m, one.tile.m)
    assert len(np.unique(tile_kinds(one, first, 1000))) > 64
    assert len(np.unique(tile_kinds(one, first, 16))) == 16


@pytest.mark.parametrize("option", [*PROBLEMS, *ROLES])
def test_single_step_changes_are_designs(option: str) -> None:
    one = design(**(PROBLEMS | ROLES)[option])
    for change, other in neighbours(one):
        assert change and other != one
