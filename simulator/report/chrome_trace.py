"""A timeline in the Chrome trace format, which Perfetto (ui.perfetto.dev) opens. One SM cycle is shown as one nanosecond."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from simulator.projection.timeline import Timeline

CYCLES_PER_US = 1000
SM = 1


def chrome_trace(timeline: Timeline) -> dict[str, Any]:
    """The whole document. Flow arrows join bulk copy, mbarrier phase and the warp that waited."""
    return {
        "displayTimeUnit": "ns",
        "otherData": {
            "kernel": timeline.kernel,
            "chip": timeline.hw,
            "time": "1 ns is 1 SM cycle",
            "periods": [{"name": name, "from_cycle": first, "to_cycle": last} for name, first, last in timeline.periods],
            "left_out": timeline.n_left_out,
        },
        "traceEvents": [*_names(timeline), *_slices(timeline), *_arrows(timeline)],
    }


def _at(cycles: float) -> float:
    """A whole number of nanoseconds, in microseconds: rounding is monotonic, so slices that touch do not overlap."""
    return round(cycles) / CYCLES_PER_US


def _names(timeline: Timeline) -> Iterator[dict[str, Any]]:
    yield {"ph": "M", "pid": SM, "name": "process_name", "args": {"name": f"SM 0 of {timeline.hw}: {timeline.kernel}"}}
    for n, track in enumerate(timeline.tracks, 1):
        yield {"ph": "M", "pid": SM, "tid": n, "name": "thread_name", "args": {"name": track.name}}
        yield {"ph": "M", "pid": SM, "tid": n, "name": "thread_sort_index", "args": {"sort_index": n}}


def _slices(timeline: Timeline) -> Iterator[dict[str, Any]]:
    for n, track in enumerate(timeline.tracks, 1):
        for piece in track.slices:
            start = _at(piece.start)
            event = {"ph": "X", "pid": SM, "tid": n, "ts": start, "dur": round(_at(piece.end) - start, 3)}
            event |= {"name": piece.name, "cat": piece.kind}
            if piece.detail:
                event["args"] = {"detail": piece.detail}
            yield event


def _arrows(timeline: Timeline) -> Iterator[dict[str, Any]]:
    for number, arrow in enumerate(timeline.arrows, 1):
        last = len(arrow.stops) - 1
        for n, (track, piece) in enumerate(arrow.stops):
            phase = "s" if n == 0 else "f" if n == last else "t"
            at = _at(timeline.tracks[track].slices[piece].start)
            event = {"ph": phase, "pid": SM, "tid": track + 1, "ts": at, "id": number, "name": "copy", "cat": "copy"}
            yield event | ({"bp": "e"} if phase != "s" else {})
