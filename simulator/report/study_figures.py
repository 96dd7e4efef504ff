"""Figures of a study that compare designs: tornado, elasticities, speedups, front, maps of two axes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from simulator.report.study_style import DIVERGING, DOWN, INK, PALETTE, QUIET, RC, SEQUENTIAL, UP, Drawing, axes_of, short
from simulator.report.study_tables import compared_points, named
from simulator.study.points import SAMPLE, SLICE
from simulator.study.results import StudyResults
from simulator.study.sensitivity import SUITE
from simulator.study.uncertainty import is_distinguishable

N_BARS = 15
N_AXES_MAPPED = 3


def tornado(results: StudyResults) -> Drawing | None:
    """Change of the suite's time for a step down and a step up of each parameter, the largest first."""
    rows = results.tornado
    rows = rows[(rows["kernel"] == SUITE) & (rows["span"] > 0)].head(N_BARS)
    if rows.empty or results.spec.sensitivity is None:
        return None
    percent = round(100 * results.spec.sensitivity.delta)
    with mpl.rc_context(RC):
        figure, (ax,) = axes_of(0.9 + 0.27 * len(rows))
        place = np.arange(len(rows))[::-1]
        for column, colour, label in (("time_down", DOWN, f"{percent} % less"), ("time_up", UP, f"{percent} % more")):
            ax.barh(place, 100 * (rows[column].to_numpy(float) - 1), color=colour, height=0.7, label=label, alpha=0.9)
        ax.set_yticks(place, [short(name) for name in rows["parameter"]])
        ax.axvline(0, color=INK, linewidth=0.8)
        ax.set_xlabel("change of the suite's time, % of the base")
        ax.legend(frameon=False, loc="lower right")
    first = rows.iloc[0]
    return Drawing(
        "tornado",
        "What a step of each parameter does to the suite's time, everything else at the base.",
        f"Bar chart of {len(rows)} parameters. The largest is {first['parameter']}: "
        f"{100 * (first['time_down'] - 1):+.1f} % down, {100 * (first['time_up'] - 1):+.1f} % up.",
        figure,
    )


def elasticities(results: StudyResults) -> Drawing | None:
    """Elasticity of every kernel's time to the parameters that matter most."""
    rows = results.tornado
    top = rows[(rows["kernel"] == SUITE) & (rows["span"] > 0)].head(N_BARS)["parameter"].tolist()
    if not top:
        return None
    names = [SUITE, *results.weights]
    table = rows.pivot(index="parameter", columns="kernel", values="elasticity").loc[top, names].to_numpy(float)
    with mpl.rc_context(RC):
        figure, (ax,) = axes_of(1.3 + 0.27 * len(top))
        ax.imshow(table, cmap=DIVERGING, vmin=-1, vmax=1, aspect="auto")
        _annotate(ax, np.abs(table), "{:+.2f}", 0.6, table)
        ax.set_yticks(range(len(top)), [short(name) for name in top])
        ax.set_xticks(range(len(names)), names, rotation=30, ha="right")
        ax.set_title("d ln time / d ln parameter")
    return Drawing(
        "elasticities",
        "Elasticity of each kernel's time: -1 means 1 % more of the parameter makes it 1 % faster; 0 means it does not feel it.",
        f"Table in colours: {len(top)} parameters by {len(names)} kernels; "
        f"values between {np.nanmin(table):+.2f} and {np.nanmax(table):+.2f}.",
        figure,
    )


def speedups(results: StudyResults) -> Drawing:
    """Speedup of each kernel on each compared chip; ~ where it is inside the interval."""
    points = compared_points(results)
    names = [*results.weights, SUITE]
    table = np.array([[1 / results.relative[p.id][name] for p in points] for name in names])
    widths = [*(results.uncertainties[name].half_width for name in results.weights), results.half_width]
    with mpl.rc_context(RC):
        figure, (ax,) = axes_of(1.6 + 0.34 * len(names))
        span = max(0.05, float(np.abs(np.log(table)).max()))
        ax.imshow(np.log(table), cmap=DIVERGING.removesuffix("_r"), vmin=-span, vmax=span, aspect="auto")
        for (i, j), value in np.ndenumerate(table):
            is_clear = points[j].id == results.base.id or is_distinguishable(1 / value, widths[i])
            mark = "" if is_clear else "~"
            colour = "white" if abs(np.log(value)) > 0.6 * span else INK
            ax.text(j, i, f"{mark}{value:.3f}", ha="center", va="center", color=colour, fontsize=8)
        ax.set_yticks(range(len(names)), names)
        ax.set_xticks(range(len(points)), [short(named(p), 26) for p in points], rotation=25, ha="right")
        ax.set_title("speedup over the base (~ not distinguishable)")
    return Drawing(
        "speedups",
        "Speedup of each kernel on each chip. ~ marks a difference inside the interval of its kernel class.",
        f"Matrix of {len(names)} kernels by {len(points)} chips; speedups between {table.min():.3f} and {table.max():.3f}.",
        figure,
    )


def pareto(results: StudyResults) -> Drawing | None:
    """Suite time against the first proxy, with intervals; designs that no other beats are joined."""
    if not results.rules.cost:
        return None
    proxy = next(iter(results.rules.cost))
    frame = results.designs
    front = frame[frame["is_on_front"]].sort_values(proxy)
    with mpl.rc_context(RC):
        figure, (ax,) = axes_of(4.2)
        rest = frame[~frame["is_on_front"]]
        ax.scatter(rest[proxy], rest["time"], s=14, color=QUIET, alpha=0.5, label="other designs")
        ax.errorbar(
            front[proxy], front["time"], yerr=front["time"] * results.half_width, color=PALETTE[0], marker="o", markersize=5,
            linewidth=1.4, elinewidth=0.8, capsize=2, label="front, with interval",
        )  # fmt: skip
        base = frame[frame["point"] == results.base.id]
        ax.scatter(base[proxy], base["time"], marker="*", s=130, color=PALETTE[5], zorder=5, label=f"base {results.base.base}")
        _label_some(ax, front, proxy)
        ax.set_xlabel(f"{proxy} (the study's formula)")
        ax.set_ylabel("time of the suite, base = 1")
        ax.grid(True, color="#eeeeee")
        ax.legend(frameon=False)
    return Drawing(
        "pareto",
        f"Designs by {proxy} and time: lower left is better. Bars: interval of the suite's time.",
        f"Scatter of {len(frame)} designs; {len(front)} are on the front, from {front['time'].max():.3f} to "
        f"{front['time'].min():.3f} of the base's time.",
        figure,
    )


def _label_some(ax: Axes, front: pd.DataFrame, proxy: str) -> None:
    step = max(1, len(front) // 6)
    for _, row in front.iloc[::step].iterrows():
        ax.annotate(
            short(named(row["point"]), 24), (row[proxy], row["time"]), xytext=(4, 6), textcoords="offset points", fontsize=7
        )


def maps(results: StudyResults) -> Iterator[Drawing]:
    """Suite time over each pair of the first axes, with lines of equal time; the best over all other axes."""
    axes = [axis.title for axis in results.spec.axes[:N_AXES_MAPPED]]
    for a, b in itertools.combinations(axes, 2):
        table = _table_of(results, a, b)
        if table is None:
            continue
        with mpl.rc_context(RC):
            figure, (ax,) = axes_of(3.9)
            values = table.to_numpy(float)
            image = ax.imshow(values, origin="lower", cmap=SEQUENTIAL + "_r", aspect="auto")
            middle = (np.nanmin(values) + np.nanmax(values)) / 2
            _annotate(ax, values, "{:.3f}", middle)
            if np.isfinite(values).all() and np.ptp(values) > 0:
                lines = ax.contour(values, levels=6, colors=PALETTE[5], linewidths=1.1)
                ax.clabel(lines, fontsize=7, fmt="%.3f")
            ax.set_xticks(range(len(table.columns)), [short(str(name), 16) for name in table.columns])
            ax.set_yticks(range(len(table.index)), [short(str(name), 16) for name in table.index])
            ax.set_xlabel(b)
            ax.set_ylabel(a)
            figure.colorbar(image, ax=ax, label="time of the suite, base = 1")
        yield Drawing(
            f"map_{axes.index(a) + 1}_{axes.index(b) + 1}",
            f"Time of the suite over {a} and {b}, the best over every other axis; lines join designs of equal time.",
            f"Map of {a} against {b}: time of the suite between {np.nanmin(values):.3f} and {np.nanmax(values):.3f} of the base.",
            figure,
        )


def _table_of(results: StudyResults, a: str, b: str) -> pd.DataFrame | None:
    """Smallest suite time per pair of labels in the order of the axes, or None where the design is no grid."""
    kinds = (SAMPLE,) if len(results.spec.axes) > 1 else (SAMPLE, SLICE)
    rows = [
        (p.settings[a], p.settings[b], results.relative[p.id][SUITE])
        for p in results.points
        if p.kind in kinds and a in p.settings and b in p.settings and p.id in results.relative and p.base == results.base.base
    ]
    frame = pd.DataFrame(rows, columns=["a", "b", "time"])
    if frame["a"].nunique() < 2 or frame["b"].nunique() < 2:
        return None
    table = frame.pivot_table(index="a", columns="b", values="time", aggfunc="min", sort=False)
    if table.size > 2 * len(frame):  # scattered samples, no grid
        return None
    return table.loc[_in_order(results, a, table.index), _in_order(results, b, table.columns)]


def _in_order(results: StudyResults, axis: str, labels: pd.Index) -> list[str]:
    seen = {p.settings[axis]: p.numbers.get(axis, 0.0) for p in results.points if axis in p.settings}
    return sorted(labels, key=lambda label: (seen.get(label, 0.0),))


def _annotate(ax: Axes, darkness: np.ndarray, form: str, dark_from: float, table: np.ndarray | None = None) -> None:
    """Write each finite value of ``table`` (default: ``darkness``) into its cell, in white where the cell is dark."""
    for (i, j), value in np.ndenumerate(darkness if table is None else table):
        if np.isfinite(value):
            colour = "white" if darkness[i, j] > dark_from else INK
            ax.text(j, i, form.format(value), ha="center", va="center", fontsize=7.5, color=colour)
