"""The hierarchical roofline: arithmetic rate against arithmetic intensity at shared memory, L2 and DRAM, one chart for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter

from simulator.hw.config import HardwareConfig
from simulator.projection.projection import Projection
from simulator.report.study_style import INK, PALETTE, QUIET, RC, Drawing, axes_of, short
from simulator.study.operations import floating_point_operations
from simulator.trace.kernel_trace import KernelTrace
from simulator.validation.baselines import peak_flops_per_cycle

LEVELS = ("shared memory", "L2", "DRAM")
LEVEL_MARKERS = ("o", "s", "^")
LEVEL_STYLES: tuple[Literal[":", "--", "-"], ...] = (":", "--", "-")
PEAK_NAMES = {
    "fp32": "FP32 FMA",
    "tf32": "tensor TF32",
    "bf16": "tensor BF16 and FP16",
    "fp8": "tensor FP8",
    "int8": "tensor INT8",
}
TENSOR_FORMATS = {"QGMMA": "fp8", "QMMA": "fp8", "IGMMA": "int8", "IMMA": "int8", "HGMMA": "bf16", "HMMA": "bf16"}
"""Format of a matrix instruction, but for TF32, which its mnemonic names."""
MARGIN, RIGHT_MARGIN = 4.0, 25.0
"""Factors of empty space around the points, and right of them, where the peaks have their names."""
LABEL_PLACES = np.array([0.1, 0.3, 0.5])
"""Where a roof may have its name, from its low end (0) to its ridge (1)."""
LABEL_RISE = 1.4
"""From the height at which the name of a roof starts to its middle."""
PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"))


@dataclass(frozen=True)
class Roof:
    """Highest rate of one level: ``bytes_per_second`` under it; ``title`` names the level."""

    title: str
    bytes_per_second: float


@dataclass(frozen=True)
class KernelPoint:
    """``operations`` of a launch that takes ``seconds``; ``n_bytes``: moved at each of LEVELS; ``formats``: of its
    matrix instructions (keys of PEAK_NAMES), none where it has no matrix instruction."""

    name: str
    operations: float
    seconds: float
    n_bytes: tuple[float, float, float]
    formats: tuple[str, ...] = ()


def roofs(chip: HardwareConfig, clock_hz: float) -> list[Roof]:
    """Shared memory, L2 and DRAM of a chip at an SM clock."""
    timing = chip.execution_sections().timing
    shared = chip.sm.count * chip.shared_memory.bandwidth_bytes_per_cycle / timing.shared.wavefront_cycles * clock_hz
    rates = (shared, timing.l2.read_bytes_per_second, timing.dram.read_bytes_per_second)
    return [Roof(name, rate) for name, rate in zip(LEVELS, rates, strict=True)]


def point_of(found: Projection, trace: KernelTrace, chip: HardwareConfig) -> KernelPoint | None:
    """The point of a projection; None for a kernel without floating-point work."""
    operations = floating_point_operations(trace)
    if operations <= 0:
        return None
    moved = (
        float(found.smem["wavefronts"] * chip.shared_memory.bandwidth_bytes_per_cycle),
        float(found.bytes["l2_read"] + found.bytes["l2_write"]),
        float(found.bytes["dram_read"] + found.bytes["dram_write"]),
    )
    formats = {_format_of(opcode) for opcode in trace.static.opcode} - {""}
    return KernelPoint(found.kernel, operations, found.time_us / 1e6, moved, tuple(sorted(formats)))


def _format_of(opcode: str) -> str:
    found = TENSOR_FORMATS.get(opcode.split(".")[0], "")
    return "tf32" if found and "TF32" in opcode else found


def roofline(points: Sequence[KernelPoint], chip: HardwareConfig, clock_hz: float) -> Drawing:
    """Roofs of the chip at ``clock_hz`` (SM clock) and each kernel at all three levels, at one height."""
    peaks = _peaks(points, chip, clock_hz)
    with mpl.rc_context(RC):
        figure, [ax] = axes_of(5.2)
        _limits(ax, points, peaks, roofs(chip, clock_hz))
        _draw_roofs(ax, roofs(chip, clock_hz), peaks, [point.operations / point.seconds for point in points])
        for number, point in enumerate(points):
            _draw_point(ax, point, PALETTE[number % len(PALETTE)])
        ax.set_xlabel("arithmetic intensity, operations per byte moved at that level")
        ax.set_ylabel("operations per second")
        ax.yaxis.set_major_formatter(EngFormatter(places=0, sep=" "))
        ax.grid(True, which="major", color="#eeeeee")
        ax.legend(handles=_level_keys(), loc="lower right", ncols=len(LEVELS), frameon=False, fontsize=8)
        figure.legend(handles=_kernel_keys(points), loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    names = ", ".join(point.name for point in points)
    return Drawing(
        "roofline",
        f"Roofs of {chip.name} at {clock_hz / 1e9:.2f} GHz; a kernel has a point for each level of memory, all at its own rate. "
        "The level whose point is nearest to its own roof binds; far from all roofs, latency or issue does.",
        f"Roofline of {names} on {chip.name}: shared memory, L2 and DRAM ceilings under the arithmetic peaks.",
        figure,
    )


def _peaks(points: Sequence[KernelPoint], chip: HardwareConfig, clock_hz: float) -> dict[str, float]:
    """Operations per second by name: FP32, and every tensor format that a kernel uses."""
    formats = sorted({name for point in points for name in point.formats})
    rates = {"fp32": peak_flops_per_cycle(chip, "fp32", False)}
    rates |= {name: peak_flops_per_cycle(chip, name, True) for name in formats}
    return {PEAK_NAMES[name]: rate * clock_hz for name, rate in rates.items()}


def _limits(ax: Axes, points: Sequence[KernelPoint], peaks: dict[str, float], ceilings: list[Roof]) -> None:
    """Every point and every ridge inside."""
    intensity = [p.operations / n for p in points for n in p.n_bytes if n]
    ridges = [max(peaks.values()) / roof.bytes_per_second for roof in ceilings]
    rates = [p.operations / p.seconds for p in points]
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(min([*intensity, *ridges]) / MARGIN, max([*intensity, *ridges]) * RIGHT_MARGIN)
    ax.set_ylim(min([*rates, *peaks.values()]) / MARGIN, max([*rates, *peaks.values()]) * MARGIN / 2)


def _distance(height: float, rates: Sequence[float]) -> float:
    """How far a label that starts at ``height`` is from the nearest points, as a logarithm."""
    return min(abs(np.log(height * LABEL_RISE / rate)) for rate in rates)


def _draw_roofs(ax: Axes, ceilings: list[Roof], peaks: dict[str, float], rates: Sequence[float]) -> None:
    left, right = ax.get_xlim()
    bottom, _ = ax.get_ylim()
    highest = max(peaks.values())
    for roof, style in zip(ceilings, LEVEL_STYLES, strict=True):
        x = np.geomspace(left, highest / roof.bytes_per_second, 50)
        ax.plot(x, x * roof.bytes_per_second, style, color=INK, linewidth=1.2)
        start = max(left, bottom / roof.bytes_per_second)
        places = start * (highest / roof.bytes_per_second / start) ** LABEL_PLACES
        at = places[np.argmax([_distance(x * roof.bytes_per_second, rates) for x in places])]
        ax.annotate(
            f"{roof.title} {_short(roof.bytes_per_second)}B/s",
            (at, at * roof.bytes_per_second),
            rotation=_slope(ax),
            rotation_mode="anchor",
            xytext=(-3, 5),
            textcoords="offset points",
            fontsize=8,
            color=INK,
        )
    steepest = max(roof.bytes_per_second for roof in ceilings)
    for name, peak in peaks.items():
        ax.plot([peak / steepest, right], [peak, peak], "-", color=QUIET, linewidth=1.2)
        text = f"{name} {_short(peak)}op/s"
        ax.annotate(text, (right, peak), xytext=(-3, 3), textcoords="offset points", ha="right", fontsize=8, color=INK)


def _slope(ax: Axes) -> float:
    """Angle in degrees, on the page, of a line whose rate grows as its intensity."""
    box = ax.get_position()
    width, height = ax.figure.get_size_inches()  # type: ignore[union-attr]
    (left, right), (bottom, top) = np.log(ax.get_xlim()), np.log(ax.get_ylim())
    return float(np.degrees(np.arctan2(box.height * height / (top - bottom), box.width * width / (right - left))))


def _draw_point(ax: Axes, point: KernelPoint, colour: str) -> None:
    rate = point.operations / point.seconds
    places = [(point.operations / n, marker) for n, marker in zip(point.n_bytes, LEVEL_MARKERS, strict=True) if n]
    ax.plot([x for x, _ in places], [rate] * len(places), "-", color=colour, linewidth=1, alpha=0.6)
    for x, marker in places:
        ax.plot(x, rate, marker, color=colour, markersize=8, markeredgecolor="white", linestyle="none", zorder=3)


def _level_keys() -> list[Line2D]:
    return [
        Line2D([], [], marker=marker, linestyle=style, color=INK, markersize=7, label=name)
        for name, marker, style in zip(LEVELS, LEVEL_MARKERS, LEVEL_STYLES, strict=True)
    ]


def _kernel_keys(points: Sequence[KernelPoint]) -> list[Line2D]:
    return [
        Line2D([], [], color=PALETTE[i % len(PALETTE)], linewidth=4, label=_label(point))
        for i, point in enumerate(points)
    ]


def _label(point: KernelPoint) -> str:
    return f"{short(point.name, 34)}: {_short(point.operations / point.seconds)}op/s"


def _short(rate: float) -> str:
    """Three digits and a prefix."""
    unit, prefix = next(((unit, prefix) for unit, prefix in PREFIXES if rate >= unit), (1.0, ""))
    return f"{rate / unit:.3g} {prefix}"
