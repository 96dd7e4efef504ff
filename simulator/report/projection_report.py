"""A projection with its figures and its page; shows itself in a notebook."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import matplotlib as mpl

from simulator.hw.config import HardwareConfig
from simulator.projection.projection import Projection
from simulator.report import summary
from simulator.report.projection_html import colour_of, render_page
from simulator.report.roofline import point_of, roofline
from simulator.report.study_style import RC, Drawing, axes_of
from simulator.trace.kernel_trace import KernelTrace

MEGA = 1e6
FRAME_HEIGHT = 900
"""Pixels of a page inside a notebook; it scrolls."""


@dataclass(frozen=True)
class ProjectionReport:
    """``projection`` of ``trace`` on ``chip``."""

    projection: Projection
    trace: KernelTrace
    chip: HardwareConfig

    def roofline(self) -> Drawing | None:
        """The kernel under the roofs of shared memory, L2 and DRAM; None without floating-point work."""
        point = point_of(self.projection, self.trace, self.chip)
        return roofline([point], self.chip, self.projection.clock_mhz * MEGA) if point else None

    def stack(self) -> Drawing:
        """The cycle stack as bars."""
        bars = summary.stack_bars(self.projection)
        with mpl.rc_context(RC):
            figure, (ax,) = axes_of(0.9 + 0.28 * len(bars))
            places = list(range(len(bars)))[::-1]
            ax.barh(places, [100 * bar.share for bar in bars], color=[colour_of(bar.name) for bar in bars])
            for place, bar in zip(places, bars, strict=True):
                ax.annotate(bar.value, (100 * bar.share, place), xytext=(4, 0), textcoords="offset points", va="center")
            ax.set_yticks(places, [bar.label for bar in bars])
            ax.set_xlabel("share of the kernel's cycles, %")
            ax.margins(x=0.12)
        return Drawing(
            "cycle_stack",
            f"Where the cycles of {self.projection.kernel} on {self.projection.hw} go: every cycle belongs to one cause.",
            "Bars: " + ", ".join(f"{bar.label} {bar.value}" for bar in bars),
            figure,
        )

    def page(self) -> str:
        """One self-contained HTML page."""
        return render_page(self.projection, self.roofline())

    def _repr_html_(self) -> str:
        style = f"width:100%;height:{FRAME_HEIGHT}px;border:0"
        return f'<iframe srcdoc="{escape(self.page())}" style="{style}"></iframe>'
