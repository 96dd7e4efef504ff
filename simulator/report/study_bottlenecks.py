"""Figures of a study that show why: what kernels wait for on each design, and the roofs above them."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

from simulator.hw.loader import with_overrides
from simulator.report.format import words
from simulator.report.roofline import roofs
from simulator.report.study_style import INK, MARKERS, OTHER, PALETTE, QUIET, RC, Drawing, axes_of, short
from simulator.report.study_tables import compared_points, named
from simulator.study.operations import floating_point_operations
from simulator.study.points import DesignPoint
from simulator.study.results import StudyResults

N_REASONS = 7
LABELLED_SHARE = 0.09


def stalls(results: StudyResults) -> Drawing:
    """Issue slots by reason, for every kernel on every compared chip."""
    points = compared_points(results)
    reasons = _largest_reasons(results, points)
    names = list(results.weights)
    with mpl.rc_context(RC):
        figure, panels = axes_of(1.0 + len(names) * (0.55 + 0.22 * len(points)), rows=len(names))
        for ax, name in zip(panels, names, strict=True):
            _stack(ax, results, points, reasons, name)
        panels[-1].set_xlabel("share of the issue slots of resident warps, %")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False, fontsize=8)
    return Drawing(
        "stalls",
        "What warps wait for on each chip: a bar whose parts change has moved its bottleneck.",
        f"Stacked bars for {len(names)} kernels on {len(points)} chips; reasons: {', '.join(words(r) for r in reasons)}.",
        figure,
    )


def _largest_reasons(results: StudyResults, points: list[DesignPoint]) -> list[str]:
    total: dict[str, float] = {}
    for point in points:
        for name in results.weights:
            for reason, share in (results.outcome(point, name) or {"stalls": {}})["stalls"].items():
                total[reason] = total.get(reason, 0.0) + share
    return sorted(total, key=lambda reason: (reason != "selected", -total[reason]))[:N_REASONS]


def _stack(ax: Axes, results: StudyResults, points: list[DesignPoint], reasons: list[str], name: str) -> None:
    place = np.arange(len(points))[::-1]
    left = np.zeros(len(points))
    for reason, colour in zip([*reasons, "other"], [*PALETTE[:N_REASONS], OTHER], strict=False):
        shares = np.array([_share(results, point, name, reason, reasons) for point in points])
        ax.barh(
            place, 100 * shares, left=100 * left, color=colour, label=words(reason), height=0.8, edgecolor="white", linewidth=0.4
        )
        for y, start, share in zip(place, left, shares, strict=True):
            if share > LABELLED_SHARE:
                ax.text(100 * (start + share / 2), y, f"{100 * share:.0f}", ha="center", va="center", fontsize=7, color=INK)
        left = left + shares
    ax.set_yticks(place, [short(named(p), 30) for p in points], fontsize=8)
    ax.set_xlim(0, 100)
    ax.set_title(name)


def _share(results: StudyResults, point: DesignPoint, name: str, reason: str, reasons: list[str]) -> float:
    found = results.outcome(point, name)
    if found is None:
        return 0.0
    if reason == "other":
        return sum(share for key, share in found["stalls"].items() if key not in reasons)
    return float(found["stalls"].get(reason, 0.0))


def roofline(results: StudyResults) -> Drawing | None:
    """Arithmetic rate against arithmetic intensity at three levels, kernels on the base and on the best design."""
    best = results.point(results.best(results.spec.objectives[0])["point"])
    work = {kernel.name: floating_point_operations(kernel.trace) for kernel in results.kernels}
    names = [name for name, operations in work.items() if operations > 0]
    if not names:
        return None
    with mpl.rc_context(RC):
        figure, panels = axes_of(4.4, columns=3)
        for point, style in ((results.base, "-"), (best, "--")):
            _roofs_of(results, point, style, panels, work)
        for number, name in enumerate(names):
            _kernel(results, best, name, work[name], panels, number)
        for ax, title in zip(panels, ("shared memory", "L2", "DRAM"), strict=True):
            ax.set_xscale("log")
            ax.set_yscale("log")
            ax.set_title(title)
            ax.set_xlabel("operations per byte")
            ax.grid(True, which="major", color="#eeeeee")
        panels[0].set_ylabel("operations per second")
        handles, labels = panels[-1].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    left_out = [name for name in results.weights if name not in names]
    note = f" Kernels without floating-point work are not shown: {', '.join(left_out)}." if left_out else ""
    return Drawing(
        "roofline",
        f"Roofs of the base (solid) and of {named(best)} (dashed); hollow: kernel on the base, filled: on that design. "
        f"The flat roof is the tensor rate of the suite's own instructions; transcendental functions do not count as work.{note}",
        f"Three roofline charts (shared memory, L2, DRAM) with {len(names)} kernels on the base and on {named(best)}.",
        figure,
    )


def _roofs_of(results: StudyResults, point: DesignPoint, style: str, panels: list[Axes], work: dict[str, float]) -> None:
    chip = results.chips[point.base]
    chip = with_overrides(chip, point.overrides) if point.overrides else chip
    found = [(name, results.outcome(point, name)) for name in results.weights]
    clock = max(outcome["clock_mhz"] for _, outcome in found if outcome) * 1e6
    rates = [
        work[n] / (o["bounds"]["tensor"] / (o["clock_mhz"] * 1e6)) for n, o in found if o and o["bounds"].get("tensor", 0) > 0
    ]
    for ax, roof in zip(panels, roofs(chip, clock), strict=True):
        x = np.logspace(-2, 4, 100)
        y = x * roof.bytes_per_second
        ax.plot(x, np.minimum(y, max(rates)) if rates else y, style, color=QUIET, linewidth=1.2)


def _kernel(results: StudyResults, best: DesignPoint, name: str, operations: float, panels: list[Axes], number: int) -> None:
    colour, marker = PALETTE[number % len(PALETTE)], MARKERS[number % len(MARKERS)]
    chip = results.chips[results.base.base]
    for point, face in ((results.base, "none"), (best, colour)):
        found = results.outcome(point, name)
        if found is None:
            continue
        moved = (
            found["smem"]["wavefronts"] * chip.shared_memory.bandwidth_bytes_per_cycle,
            found["bytes"]["l2_read"] + found["bytes"]["l2_write"],
            found["bytes"]["dram_read"] + found["bytes"]["dram_write"],
        )
        rate = operations / found["time_us"] * 1e6
        for ax, n_bytes in zip(panels, moved, strict=True):
            if n_bytes:
                label = name if face == colour else None
                ax.plot(
                    operations / n_bytes,
                    rate,
                    marker,
                    color=colour,
                    markerfacecolor=face,
                    markersize=7,
                    label=label,
                    linestyle="none",
                )
