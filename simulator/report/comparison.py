"""Projections beside measurements, one row a kernel: as a terminal table and as an HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.table import Table
from rich.text import Text

from simulator.projection.projection import Projection
from simulator.report import summary
from simulator.report.format import duration, percent, signed_percent, whole, words
from simulator.report.projection_html import legend_bars, mix_bars, render_template
from simulator.report.summary import Fact
from simulator.validation.errors import signed_errors, summarize

CLOSE_PERCENT = 10.0
"""Errors up to this are shown as good."""


@dataclass(frozen=True)
class Compared:
    """A kernel with its measured cycles and microseconds; ``projection`` None with the ``reason`` why."""

    name: str
    tile: str
    measured_cycles: float
    measured_us: float
    projection: Projection | None
    reason: str = ""

    @property
    def error(self) -> float:
        """Signed error of the cycles in per cent; NaN without a projection."""
        if self.projection is None:
            return float("nan")
        return float(signed_errors(np.array([self.projection.cycles]), np.array([self.measured_cycles]))[0])


def table(rows: Sequence[Compared]) -> Table:
    """The comparison for a terminal."""
    found = Table(show_edge=False, pad_edge=False)
    found.add_column("kernel", min_width=36, overflow="fold")
    for column in ("projected", "measured", "error", "time"):
        found.add_column(column, justify="right", no_wrap=True)
    for column in ("occupancy", "bound by", "most stalls"):
        found.add_column(column, overflow="fold")
    for row in rows:
        found.add_row(*_cells(row))
    return found


def average(rows: Sequence[Compared]) -> str:
    """The mean error in one line."""
    found = summarize(np.array([row.error for row in rows]))
    if found is None:
        return "nothing was projected"
    return f"{found.n} kernels: mean error {found.mape:.1f} %, median {found.median:.1f} %, bias {found.bias:+.1f} %"


def page(title: str, subtitle: str, rows: Sequence[Compared], footer: str) -> str:
    """The comparison as one self-contained HTML page."""
    projections = [row.projection for row in rows if row.projection is not None]
    return render_template(
        "comparison.html.j2",
        title=title,
        subtitle=subtitle,
        tiles=_tiles(rows),
        rows=[_page_row(row) for row in rows],
        legend=legend_bars(projections),
        footer=footer,
    )


def _cells(row: Compared) -> list[Text]:
    name = Text.assemble(row.name, "\n", (row.tile, "dim"))
    if row.projection is None:
        reason = Text(f"not projected: {row.reason}", style="red")
        return [name, Text("-"), Text(whole(row.measured_cycles)), Text("-"), Text("-"), Text("-"), Text("-"), reason]
    style = "green" if abs(row.error) <= CLOSE_PERCENT else "yellow"
    return [
        name,
        Text(whole(row.projection.cycles), style="bold"),
        Text(whole(row.measured_cycles)),
        Text(signed_percent(row.error), style=style),
        Text(duration(row.projection.time_us)),
        Text(_occupancy(row.projection)),
        Text(words(row.projection.bound_by)),
        Text(summary.dominant_stall(row.projection)),
    ]


def _page_row(row: Compared) -> dict[str, Any]:
    found: dict[str, Any] = {"kernel": row.name, "tile": row.tile, "reason": row.reason}
    if row.projection is None:
        return found
    return found | {
        "predicted": whole(row.projection.cycles),
        "measured": whole(row.measured_cycles),
        "error": signed_percent(row.error),
        "is_close": abs(row.error) <= CLOSE_PERCENT,
        "time": duration(row.projection.time_us),
        "measured_time": duration(row.measured_us),
        "occupancy": _occupancy(row.projection),
        "bound_by": words(row.projection.bound_by),
        "stall": summary.dominant_stall(row.projection),
        "bars": mix_bars(row.projection),
    }


def _occupancy(projection: Projection) -> str:
    share = projection.occupancy.get("occupancy")
    return percent(float(share)) if share is not None else "-"


def _tiles(rows: Sequence[Compared]) -> list[Fact]:
    found = summarize(np.array([row.error for row in rows]))
    seconds = sum(row.projection.simulated.get("seconds", 0.0) for row in rows if row.projection is not None)
    tiles = [Fact("Kernels", str(len(rows)), f"{sum(row.projection is None for row in rows)} not projected")]
    if found is not None:
        tiles += [
            Fact("Mean error", f"{found.mape:.1f} %", "of the cycles, absolute"),
            Fact("Median error", f"{found.median:.1f} %", f"bias {found.bias:+.1f} %"),
            Fact("Within 10 %", f"{found.within_10:.0f} %", f"within 20 %: {found.within_20:.0f} %"),
        ]
    return [*tiles, Fact("Simulated in", f"{seconds:.1f} s", "of one core")]
