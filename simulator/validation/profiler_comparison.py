"""A projection beside what a profiler measured of the same launch, figure by figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from simulator.errors import UserError
from simulator.projection.html import html_card
from simulator.validation.profiler_csv import Launch
from simulator.validation.profiler_metrics import (
    CYCLES,
    METRICS,
    STALLS_PER_ISSUE,
    TIME,
    TOTAL,
    WAITING,
    Metric,
    projected,
    projected_stalls,
)

TIME_AGREES = 0.05
"""Times within 5 % need no explanation."""
DIFFERS = 0.05
"""A work, traffic or clock figure that is further off than 5 % may explain a time."""
SHARE_OF_TIME = 0.5
"""It must also be off by half of what the time is."""
SMALL_STALL = 0.05
"""Stall reasons below this share of a warp's time on both sides explain nothing."""


@dataclass(frozen=True)
class Row:
    """One figure; ``error`` = projected / measured - 1 (None where nothing was measured); in the unit of ``unit``;
    ``effect``: the difference over the whole that the figure is part of (the figure itself where there is none)."""

    metric: str
    projection: str
    unit: str
    measured: float
    projected: float
    error: float | None
    kind: str
    effect: float | None = None
    explains: bool = False

    def shown(self) -> tuple[str, str, str]:
        """Measured, projected and their unit as texts, times in us and clocks in MHz."""
        factor, unit = SHOWN_UNITS.get(self.unit, (1.0, self.unit))
        measured, projected = (_digits(value * factor) for value in (self.measured, self.projected))
        return measured, projected, unit


SHOWN_UNITS = {"second": (1e6, "us"), "hertz": (1e-6, "MHz")}
"""Factor and name of units that are written as a projection writes them."""


def _digits(value: float) -> str:
    """Every digit before the point, four significant ones at least."""
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.4g}"


@dataclass(frozen=True)
class ProfilerComparison:
    """``explanation``: the first figure that explains why the times differ, in words."""

    kernel: str
    launch: str
    rows: list[Row]
    explanation: str
    unknown: list[str]

    def to_json(self) -> dict[str, Any]:
        """The document of ``ncu --json``."""
        return asdict(self)

    @property
    def frame(self) -> pd.DataFrame:
        """One row a figure: what the projection calls it, measured, projected, error, unit, kind, the profiler's name."""
        columns = ["projection", "measured", "projected", "error", "unit", "kind", "metric"]
        return pd.DataFrame([asdict(row) for row in self.rows])[columns]

    def _repr_html_(self) -> str:
        """Figures that either side has, and what explains a difference."""
        shown = [row for row in self.rows if row.measured or row.projected]
        lines = [(row.projection, *row.shown(), _percent(row.error)) for row in shown]
        return html_card(f"{self.kernel}, launch {self.launch} of the CSV", self.explanation, {"figures": [HEAD, *lines]})


HEAD = ("", "measured", "projected", "unit", "error")


def _percent(error: float | None) -> str:
    return "-" if error is None else f"{100 * error:+.1f} %".replace("-0.0", "+0.0")


def choose_launch(launches: Sequence[Launch], document: Mapping[str, Any], id: str | None) -> Launch:
    """The launch with that ID; else the first of the projected kernel; else the only one."""
    if id is not None:
        found = [launch for launch in launches if launch.id == id]
        if not found:
            raise UserError(f"the profiler CSV has no launch with ID {id}; it has {', '.join(x.id for x in launches[:8])}")
        return found[0]
    kernel = str(document.get("kernel", ""))
    named = [launch for launch in launches if kernel and kernel in (launch.kernel, launch.kernel.split("(")[0].split("<")[0])]
    if named:
        return named[0]
    if len(launches) == 1:
        return launches[0]
    names = ", ".join(dict.fromkeys(launch.kernel for launch in launches[:8]))
    raise UserError(f"the profiler CSV has no launch of kernel '{kernel}' (it has {names}); choose one with --id")


def compare_with_profiler(document: Mapping[str, Any], launch: Launch) -> ProfilerComparison:
    """Every figure that both sides have, and the first that explains a difference in time."""
    rows = [row for metric in METRICS if (row := _row(document, launch, metric)) is not None]
    rows += _stall_rows(document, launch)
    if not rows:
        raise UserError("the profiler CSV and the result have no figure in common; measure for example sm__cycles_elapsed.max")
    explaining, explanation = _explain(rows)
    rows = [Row(**{**asdict(row), "explains": row is explaining}) for row in rows]
    used = {row.metric for row in rows}
    unknown = [name for name in launch.values if "__" in name and name not in used]
    return ProfilerComparison(launch.kernel, launch.id, rows, explanation, unknown)


def _row(document: Mapping[str, Any], launch: Launch, metric: Metric) -> Row | None:
    ours = projected(document, metric)
    name = next((name for name in metric.names if name in launch.values), None)
    if ours is None or name is None:
        return None
    measured = launch.values[name]
    error = _error(ours, measured)
    whole = sum(launch.values.get(part, 0.0) for part in metric.part_of)
    effect = (ours - measured) / whole if whole else error
    return Row(name, ".".join(metric.path), launch.units[name], measured, ours, error, metric.kind, effect)


def _stall_rows(document: Mapping[str, Any], launch: Launch) -> list[Row]:
    ours = projected_stalls(document)
    rows = []
    for name, measured in launch.values.items():
        head, _, tail = STALLS_PER_ISSUE.partition("{}")
        if name.startswith(head) and name.endswith(tail):
            reason = name[len(head) : -len(tail)]
            if reason in ours:
                error = _error(ours[reason], measured)
                rows.append(Row(name, f"stalls.{reason}", "warps per issue", measured, ours[reason], error, WAITING))
    return sorted(rows, key=lambda row: -row.measured)


def _error(ours: float, measured: float) -> float | None:
    if measured == 0:
        return 0.0 if ours == 0 else None
    return ours / measured - 1


def _explain(rows: Sequence[Row]) -> tuple[Row | None, str]:
    """Work first, then traffic, clock, overlap, waits: the first figure that is off in the direction of the time."""
    total = _total(rows)
    if total is None or total.error is None:
        return None, "no time or cycles were measured, so there is nothing to explain"
    if abs(total.error) <= TIME_AGREES:
        return None, f"the projection agrees: {total.projection} is off by {100 * total.error:+.1f} %"
    grows = {".".join(metric.path): metric.grows for metric in METRICS}
    longer = total.error > 0
    needed = max(DIFFERS, SHARE_OF_TIME * abs(total.error))
    head = f"projected {total.projection} is {100 * total.error:+.1f} % off"
    for row in rows:
        direction = grows.get(row.projection, 1)
        if row.kind in (TOTAL, WAITING) or direction == 0 or (row.effect is not None and abs(row.effect) <= needed):
            continue
        if ((row.projected > row.measured) == longer) == (direction > 0):
            off = "measured 0" if row.error is None else f"{100 * row.error:+.1f} %"
            return row, f"{head}; the first figure that explains it: {row.projection} ({row.metric}), {off}"
    waits = [row for row in rows if row.kind == WAITING and "selected" not in row.projection and _counts(row, rows)]
    waits = [row for row in waits if (row.projected > row.measured) == longer]
    if waits:
        row = max(waits, key=lambda row: abs(row.projected - row.measured))
        return row, (
            f"{head}; what this CSV has of work, traffic, clock and overlap agrees, the waits do not: {row.projection} is "
            f"{row.projected:.2f} warps per issue, measured {row.measured:.2f}"
        )
    return None, f"{head}; no figure in this CSV explains it"


def _counts(row: Row, rows: Sequence[Row]) -> bool:
    stalls = [other for other in rows if other.kind == WAITING]
    measured, ours = sum(other.measured for other in stalls), sum(other.projected for other in stalls)
    return row.measured > SMALL_STALL * measured or row.projected > SMALL_STALL * ours


def _total(rows: Sequence[Row]) -> Row | None:
    for metric in (TIME, CYCLES):
        for row in rows:
            if row.projection == ".".join(metric.path):
                return row
    return None
