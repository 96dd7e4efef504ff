"""Do the points of a roofline lie where the projection says, and the roofs where the chip's description says?"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from simulator.cli.app import run
from simulator.hw.config import HardwareConfig
from simulator.hw.loader import load_hw
from simulator.kernels.gemm import build
from simulator.kernels.gemm_design import GemmDesign
from simulator.projection.projection import Projection
from simulator.projection.run import project_trace
from simulator.report.roofline import KernelPoint, point_of, roofline, roofs


@pytest.fixture(scope="module")
def hw() -> HardwareConfig:
    return load_hw("h200")


def test_a_point_is_the_work_over_the_bytes_of_each_level(hw: HardwareConfig) -> None:
    design = GemmDesign.model_validate({"m": 256, "n": 256, "k": 256, "tile": {"m": 128, "n": 64, "k": 64}})
    trace = build(design, "sm_90a")
    found = project_trace(trace, hw, explains=False)
    point = point_of(found, trace, hw)
    assert point is not None
    assert point.operations == 2 * 256**3 and point.formats == ("bf16",)
    assert point.n_bytes[1] == found.bytes["l2_read"] + found.bytes["l2_write"]
    # no point lies above its roof
    for n_bytes, roof in zip(point.n_bytes, roofs(hw, found.clock_mhz * 1e6), strict=True):
        assert n_bytes / point.seconds <= roof.bytes_per_second


def test_the_chart_has_every_level_and_the_peaks_of_the_kernels_formats(hw: HardwareConfig) -> None:
    points = [
        KernelPoint("a", 1e12, 2e-3, (4e10, 1e10, 1e9), ("bf16",)),
        KernelPoint("b", 1e9, 1e-3, (0.0, 2e9, 1e9)),
    ]
    drawing = roofline(points, hw, 1.98e9)
    ax = drawing.figure.axes[0]
    texts = " ".join(text.get_text() for text in ax.texts)
    for part in ("shared memory", "L2", "DRAM", "FP32 FMA 66.9 Top/s", "tensor BF16 and FP16 1.07 Pop/s"):
        assert part in texts
    markers = [(line.get_xdata()[0], line.get_ydata()[0]) for line in ax.lines if line.get_marker() in ("o", "s", "^")]
    assert len(markers) == 5  # b uses no shared memory
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    assert all(left < x < right and bottom < y < top for x, y in np.array(markers, float))
    assert drawing.svg() == roofline(points, hw, 1.98e9).svg()


def test_the_page_of_a_projection_shows_it_and_stands_alone(tmp_path: Path) -> None:
    design = tmp_path / "d.yaml"
    design.write_text("kind: gemm\nm: 256\nn: 256\nk: 256\ntile: {m: 128, n: 64, k: 64}\nstages: 2\n")
    assert run(["project", str(design), "--hw", "h200", "--report", str(tmp_path / "p.html"), "--json"]) == 0
    page = (tmp_path / "p.html").read_text()
    assert "Roofline" in page and page.count("<figcaption") == 1
    assert not re.search(r"(?:src|href)=|<script|@import|url\(", page)
    assert all(source.startswith("data:") for source in re.findall(r'\bdata="([^"]*)', page))


def test_a_kernel_without_arithmetic_has_no_point(hw: HardwareConfig, projection: Projection) -> None:
    trace = build(GemmDesign.model_validate({"m": 128, "n": 64, "k": 64, "tile": {"m": 128, "n": 64, "k": 64}}), "sm_90a")
    copy = replace(trace, static=replace(trace.static, opcode=("NOP",) * len(trace.static)))
    assert point_of(projection, copy, hw) is None
