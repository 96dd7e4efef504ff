"""Pages that stand alone: one HTML file each, no script, no external asset."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from simulator.projection.projection import Projection
from simulator.report import summary
from simulator.report.format import duration, whole, words
from simulator.report.summary import Bar, Fact

if TYPE_CHECKING:
    from simulator.report.study_style import Drawing

STALL_COLOURS = {
    "selected": "#2a9d78",
    "not_selected": "#9bd3bf",
    "wait": "#c9c4b8",
    "long_scoreboard": "#2f6fbd",
    "lg_throttle": "#86b3e6",
    "short_scoreboard": "#d98324",
    "mio_throttle": "#f0b66d",
    "barrier": "#b5475d",
    "mbarrier": "#7d57c1",
    "gmma": "#5b3d99",
    "math_pipe_throttle": "#d6c245",
    "dispatch_stall": "#8c6d46",
    "membar": "#5d6a7a",
    "branch_resolving": "#c68fb4",
    "no_instruction": "#3f9aa6",
    "drain": "#94a0ad",
}
CAUSE_COLOURS = {
    "tensor": "#5b3d99",
    "other_issue": "#2a9d78",
    "shared_memory": "#d98324",
    "bank_conflicts": "#b42318",
    "tma_latency": "#86b3e6",
    "l2": "#5b8fd0",
    "hbm_bandwidth": "#1d4e89",
    "hbm_latency": "#2f6fbd",
    "dependency": "#c9c4b8",
    "instruction_fetch": "#3f9aa6",
    "prologue": "#d6c245",
    "epilogue": "#c68fb4",
    "tail": "#94a0ad",
    "launch": "#5d6a7a",
}
OTHER_COLOUR = "#aab1bb"


def render_page(projection: Projection, roofline: Drawing | None = None) -> str:
    """The HTML page of one projection, with its roofline if there is one."""
    return render_template(
        "projection.html.j2",
        kernel=projection.kernel,
        hw=projection.hw,
        hw_digest=projection.hw_digest[:12],
        warnings=projection.warnings,
        tiles=_tiles(projection),
        interval=summary.interval_text(projection.interval, projection.cycles, projection.time_us),
        stack=list(_stacked(summary.stack_bars(projection))),
        diagnosis=summary.diagnosis_lines(projection),
        roofline=embedded(roofline),
        stalls=mix_bars(projection),
        bounds=summary.bound_bars(projection),
        bytes=summary.byte_bars(projection),
        facts=summary.facts(projection),
        weak=summary.weak_inputs(projection),
        effort=summary.effort(projection),
    )


def render_template(template: str, **content: Any) -> str:
    """A template of this room, filled; a name that it needs and does not get is an error."""
    environment = Environment(
        loader=PackageLoader("simulator.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(**content)


def embedded(drawing: Drawing | None) -> dict[str, str] | None:
    """A figure as a page holds it."""
    if drawing is None:
        return None
    source = "data:image/svg+xml;base64," + base64.b64encode(drawing.svg()).decode()
    return {"source": source, "alt": drawing.alt, "caption": drawing.caption, "name": drawing.name}


def mix_bars(projection: Projection) -> list[dict[str, Any]]:
    """The stall bars with their colour and the place where each starts in a stacked bar."""
    return list(_stacked(summary.stall_bars(projection)))


def legend_bars(projections: Sequence[Projection]) -> list[dict[str, Any]]:
    """Each stall reason that occurs in any of the projections, once."""
    bars = {bar.name: bar for projection in projections for bar in summary.stall_bars(projection) if bar.name != "rest"}
    ordered = [bars[name] for name in STALL_COLOURS if name in bars]
    return [{**asdict(bar), "value": "", "colour": colour_of(bar.name)} for bar in ordered]


def colour_of(reason: str) -> str:
    """The same colour for a stall reason or a cause on every page."""
    return STALL_COLOURS.get(reason) or CAUSE_COLOURS.get(reason, OTHER_COLOUR)


def _stacked(bars: Sequence[Bar]) -> Iterator[dict[str, Any]]:
    start = 0.0
    for bar in bars:
        yield {**asdict(bar), "start": start, "colour": colour_of(bar.name)}
        start += bar.share


def _tiles(projection: Projection) -> list[Fact]:
    occupancy = summary.facts(projection)[0]
    return [
        Fact("Cycles", whole(projection.cycles), "launch latency included"),
        Fact("Time", duration(projection.time_us), f"at {projection.clock_mhz:.0f} MHz"),
        Fact("Bound by", words(projection.bound_by), _tightest(projection)),
        Fact(occupancy.label, occupancy.value, occupancy.note),
    ]


def _tightest(projection: Projection) -> str:
    bars = summary.bound_bars(projection)
    return f"tightest bound: {bars[0].label}, {bars[0].note} of the cycles" if bars else ""
