"""A timeline as a file: for Perfetto, as a page with a pipeline diagram of a few iterations, or as text."""

from __future__ import annotations

import json

from simulator.projection.timeline import Timeline
from simulator.report.ascii_timeline import ascii_timeline
from simulator.report.chrome_trace import chrome_trace
from simulator.report.pipeline_diagram import render_diagram

FORMATS = (".json", ".html", ".txt")


def timeline_file(timeline: Timeline, suffix: str) -> str:
    """The content of a file whose name ends in ``suffix``, one of FORMATS."""
    if suffix == ".json":
        return json.dumps(chrome_trace(timeline), separators=(",", ":"), allow_nan=False)
    return render_diagram(timeline) if suffix == ".html" else ascii_timeline(timeline) + "\n"
