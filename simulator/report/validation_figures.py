"""Figures of a validation run: projected against measured cycles by family, and the error against the duration."""

from __future__ import annotations

import math

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter, ScalarFormatter

from simulator.projection.interval import DURATION_EDGES_US
from simulator.report.format import words
from simulator.report.study_style import DOWN, GRID, INK, MARKERS, OTHER, PALETTE, QUIET, RC, Drawing, axes_of
from simulator.validation.evaluation import REPORTED_SPLIT

N_COLUMNS = 4
BAND_PERCENT = 20.0
LEAST_HALF_WIDTH = 12.0
"""Factor around the middle that a panel shows at least, so that it holds two powers of ten."""
ERROR_RANGE = (-60.0, 60.0)
CLASS_COLOURS = {"tensor": PALETTE[0], "memory": PALETTE[1], "other": PALETTE[2]}


def scatter(cases: pd.DataFrame) -> Drawing:
    """One panel a family: projected over measured cycles, the reported split on top of the others."""
    families = sorted(set(cases["family"]))
    n_rows = math.ceil(len(families) / N_COLUMNS)
    with mpl.rc_context({**RC, "font.size": 8}):
        figure, axes = axes_of(0.5 + 2.3 * n_rows, N_COLUMNS, n_rows)
        for ax, family in zip(axes, families, strict=False):
            _panel(ax, family, cases[cases["family"] == family])
        for ax in axes[len(families) :]:
            ax.set_axis_off()
        figure.supxlabel("measured SM cycles", fontsize=9)
        figure.supylabel("projected SM cycles", fontsize=9)
    n_reported = int((cases["split"] == REPORTED_SPLIT).sum())
    return Drawing(
        "scatter",
        f"Projected against measured SM cycles, both logarithmic. Filled: split {REPORTED_SPLIT}; hollow: the kernels that the "
        f"model was calibrated on. Line: equal; band: ±{BAND_PERCENT:.0f} %.",
        f"{len(families)} scatter plots, one a kernel family, {n_reported} reported cases; the table above holds their errors.",
        figure,
    )


def _panel(ax: Axes, family: str, cases: pd.DataFrame) -> None:
    reported = cases[cases["split"] == REPORTED_SPLIT]
    both = np.concatenate([cases["measured"], cases["predicted"]])
    middle, half = math.sqrt(both.min() * both.max()), max(1.4 * math.sqrt(both.max() / both.min()), LEAST_HALF_WIDTH)
    ends = np.array([middle / half, middle * half])
    ax.fill_between(ends, ends / (1 + BAND_PERCENT / 100), ends * (1 + BAND_PERCENT / 100), color=GRID, linewidth=0)
    ax.plot(ends, ends, color=QUIET, linewidth=0.7)
    others = cases[cases["split"] != REPORTED_SPLIT]
    ax.scatter(others["measured"], others["predicted"], s=9, facecolors="none", edgecolors=QUIET, linewidths=0.5)
    ax.scatter(reported["measured"], reported["predicted"], s=9, color=DOWN, alpha=0.75, linewidths=0)
    ax.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
    ax.set_aspect("equal", adjustable="box")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_minor_formatter(NullFormatter())
    mean = f", {reported['error'].abs().mean():.1f} %" if len(reported) else ""
    ax.set_title(f"{family}\n{len(reported)} cases{mean}", fontsize=8, color=INK)


def errors(cases: pd.DataFrame) -> Drawing:
    """Signed error of each reported case against its measured time, by kernel class."""
    shown = cases[(cases["split"] == REPORTED_SPLIT) & (cases["measured_us"] > 0)]
    with mpl.rc_context(RC):
        figure, (ax,) = axes_of(3.4)
        ax.axhspan(-BAND_PERCENT, BAND_PERCENT, color=GRID, linewidth=0)
        ax.axhline(0, color=QUIET, linewidth=0.8)
        for marker, (name, part) in zip(MARKERS, shown.groupby("kernel_class"), strict=False):
            size = part["error"].clip(*ERROR_RANGE)
            label = f"{words(str(name)) or 'all'} ({len(part)})"
            ax.scatter(part["measured_us"], size, s=16, marker=marker, color=CLASS_COLOURS.get(str(name), OTHER), alpha=0.8,
                       linewidths=0, label=label)  # fmt: skip
        for edge in DURATION_EDGES_US:
            ax.axvline(edge, color=QUIET, linewidth=0.6, linestyle=":")
        ax.set(xscale="log", ylim=ERROR_RANGE, xlabel="measured time, µs", ylabel="error of the cycles, %")
        ax.xaxis.set_major_formatter(ScalarFormatter())
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.legend(frameon=False, loc="upper left", ncols=3)
    worst = shown["error"].abs().max() if len(shown) else 0.0
    return Drawing(
        "errors",
        f"Signed error of every case of split {REPORTED_SPLIT} against its measured time (positive: projected too slow). Band: "
        f"±{BAND_PERCENT:.0f} %; dotted: where the duration classes part.",
        f"Scatter plot of {len(shown)} signed errors against the measured time; the largest is {worst:.0f} %.",
        figure,
    )
