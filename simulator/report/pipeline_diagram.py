"""A pipeline diagram: a few iterations of the main loop as drawn rows, one self-contained HTML page with an SVG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from simulator.projection.timeline import Timeline, Track, window
from simulator.report.projection_html import render_template

WIDTH, LABEL, ROW, GAP, AXIS = 1180, 190, 15, 4, 34
N_TICKS = 8
N_ITERATIONS = 4
MOST_CYCLES = 6000
MOST_ROWS = 44
COLOURS = {
    "issue": "#2a9d78", "tensor": "#5b3d99", "bulk_copy": "#2f6fbd", "global_memory": "#86b3e6", "shared_memory": "#d98324",
    "cta": "#c9c4b8", "mbarrier": "#b39ddb", "barrier": "#e6a4b0", "gmma": "#d6c9ee", "long_scoreboard": "#cfe0f4",
    "short_scoreboard": "#f6dfc0", "wait": "#ece9e2", "mio_throttle": "#f0b66d", "lg_throttle": "#a9c8ea",
    "math_pipe_throttle": "#ead98a", "dispatch_stall": "#c9ad86", "summarised": "#f2f2f2",
}  # fmt: skip
OTHER = "#d9d9d9"


@dataclass(frozen=True)
class Box:
    """A drawn slice in pixels, with its colour and the text that a pointer shows."""

    x: float
    y: float
    width: float
    colour: str
    title: str


def render_diagram(timeline: Timeline) -> str:
    """The page. Shown are about N_ITERATIONS repetitions of the steady period's bulk copies or MMAs."""
    first, last = steady_window(timeline)
    part = window(timeline, first, last)
    tracks = part.tracks[:MOST_ROWS]
    scale = (WIDTH - LABEL) / max(1.0, last - first)
    height = len(tracks) * (ROW + GAP)
    kinds = dict.fromkeys(piece.kind for track in tracks for piece in track.slices)
    return render_template(
        "pipeline.html.j2",
        kernel=timeline.kernel,
        hw=timeline.hw,
        span=f"cycles {first:,.0f} to {last:,.0f} of {timeline.end:,.0f}",
        width=WIDTH,
        height=height + AXIS,
        label=LABEL,
        axis=height,
        rows=[(track.name, n * (ROW + GAP) + ROW - 3) for n, track in enumerate(tracks)],
        boxes=list(_boxes(tracks, first, scale)),
        row=ROW,
        ticks=list(_ticks(first, last, scale)),
        legend=[(kind.replace("_", " "), COLOURS.get(kind, OTHER)) for kind in kinds],
        left_out=len(part.tracks) - len(tracks),
    )


def steady_window(timeline: Timeline) -> tuple[float, float]:
    """A few repetitions around the middle of the steady (or only) period."""
    _, first, last = timeline.periods[1 if len(timeline.periods) > 1 else 0]
    middle = (first + last) / 2
    for group in ("bulk copies in", "tensor cores"):
        starts = sorted(p.start for t in timeline.tracks if t.group == group for p in t.slices if first <= p.start <= last)
        starts = [start for start in starts if start >= middle] or starts
        distinct = [s for i, s in enumerate(starts) if i == 0 or s - starts[i - 1] > _usual_gap(starts)]
        if len(distinct) > N_ITERATIONS:
            return distinct[0] - 20, min(distinct[N_ITERATIONS], distinct[0] + MOST_CYCLES)
    length = min(last - first, MOST_CYCLES / 3)
    return middle - length / 2, middle + length / 2


def _usual_gap(starts: Sequence[float]) -> float:
    """Copies of one iteration are closer to each other than half of the mean distance."""
    return (starts[-1] - starts[0]) / max(1, len(starts) - 1) / 2


def _boxes(tracks: Sequence[Track], first: float, scale: float) -> Iterator[Box]:
    for n, track in enumerate(tracks):
        for piece in track.slices:
            title = f"{piece.name}: {piece.end - piece.start:,.0f} cycles from {piece.start:,.0f}"
            yield Box(
                x=round(LABEL + (piece.start - first) * scale, 2),
                y=n * (ROW + GAP),
                width=max(0.6, round((piece.end - piece.start) * scale, 2)),
                colour=COLOURS.get(piece.kind, OTHER),
                title=f"{title}. {piece.detail}" if piece.detail else title,
            )


def _ticks(first: float, last: float, scale: float) -> Iterator[tuple[float, str]]:
    for n in range(N_TICKS + 1):
        at = first + (last - first) * n / N_TICKS
        yield LABEL + (at - first) * scale, f"{at:,.0f}"
