"""Is a timeline well formed: slices of a track apart from each other, arrows that join, a bounded size?"""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from typing import Any

import pytest

from simulator.hw.config import HardwareConfig
from simulator.hw.loader import load_hw
from simulator.projection import timeline as timelines
from simulator.projection.run import replay_trace
from simulator.projection.timeline import Timeline, build_timeline, window
from simulator.report.ascii_timeline import ascii_timeline
from simulator.report.chrome_trace import chrome_trace
from simulator.report.pipeline_diagram import render_diagram, steady_window
from simulator.report.timeline_file import FORMATS, timeline_file
from tests.attribution.planted import narrow_boxes, one_stage


@pytest.fixture(scope="module")
def chip() -> HardwareConfig:
    return load_hw("h200")


@pytest.fixture(scope="module")
def copies(chip: HardwareConfig) -> Timeline:
    """Of a kernel that waits for bulk copies at an mbarrier."""
    return build_timeline(replay_trace(narrow_boxes()[0], chip, 1), chip)


@pytest.fixture(scope="module")
def cut(chip: HardwareConfig) -> Timeline:
    """Of a kernel that is too long to be shown whole."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timelines, "WHOLE", 900)
        return build_timeline(replay_trace(one_stage()[0], chip, 1), chip)


@pytest.fixture(params=["copies", "cut"])
def timeline(request: pytest.FixtureRequest) -> Timeline:
    return request.getfixturevalue(request.param)


def slices(document: dict[str, Any]) -> dict[int, list[tuple[float, float]]]:
    found: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for event in document["traceEvents"]:
        if event["ph"] == "X":
            found[event["tid"]].append((event["ts"], round(event["ts"] + event["dur"], 3)))
    return found


def test_does_no_slice_overlap_another_of_its_track(timeline: Timeline) -> None:
    for track in slices(chrome_trace(timeline)).values():
        assert track == sorted(track)
        assert all(end >= start >= 0 for start, end in track)
        assert all(later >= end for (_, end), (later, _) in pairwise(track))


def test_does_every_arrow_join_slices_in_order_of_time(copies: Timeline) -> None:
    assert copies.arrows
    groups = set()
    for arrow in copies.arrows:
        stops = [copies.tracks[track].slices[piece] for track, piece in arrow.stops]
        assert all(later.start >= earlier.start for earlier, later in pairwise(stops))
        groups.add(tuple(copies.tracks[track].group for track, _ in arrow.stops))
    assert ("bulk copies in", "mbarriers", "warps") in groups


def test_has_every_flow_a_start_and_an_end_inside_slices(copies: Timeline) -> None:
    document = chrome_trace(copies)
    starts = {(tid, at) for tid, track in slices(document).items() for at, _ in track}
    flows: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for event in document["traceEvents"]:
        if event["ph"] in "stf":
            flows[event["id"]].append(event)
    for events in flows.values():
        assert events[0]["ph"] == "s" and events[-1]["ph"] == "f"
        assert all((event["tid"], event["ts"]) in starts for event in events)


ARROW = {"ts": float, "id": int, "cat": str}
REQUIRED = {"M": {"args": dict}, "X": {"ts": float, "dur": float, "cat": str}, "s": ARROW, "t": ARROW, "f": ARROW}
"""Fields of an event by phase, as the Trace Event Format documents them, beside name, pid and ph."""


def test_has_every_event_what_the_format_asks_for(timeline: Timeline) -> None:
    document = json.loads(json.dumps(chrome_trace(timeline), allow_nan=False))
    assert set(document) <= {"traceEvents", "displayTimeUnit", "otherData"} and document["displayTimeUnit"] in ("ms", "ns")
    named = {e["tid"] for e in document["traceEvents"] if e["ph"] == "M" and e["name"] == "thread_name" and e["args"]["name"]}
    for event in document["traceEvents"]:
        assert event["name"] and isinstance(event["pid"], int)
        for name, kind in REQUIRED[event["ph"]].items():
            assert isinstance(event[name], kind), event
        if event["ph"] != "M":
            assert event["tid"] in named and event["ts"] >= 0
        assert event["ph"] != "f" or event["bp"] == "e", "an arrow ends at the slice around it, not at the next one"


def test_is_an_arrow_tied_to_one_slice_alone(copies: Timeline) -> None:
    """A viewer ties an arrow to the slice around its time: of slices without length it finds none."""
    document = chrome_trace(copies)
    around = slices(document)
    for event in document["traceEvents"]:
        if event["ph"] in "stf":
            assert sum(start <= event["ts"] < end for start, end in around[event["tid"]]) == 1


def test_is_the_middle_of_a_long_kernel_marked_as_left_out(cut: Timeline) -> None:
    assert [name for name, _, _ in cut.periods] == ["first", "steady", "last"]
    document = chrome_trace(cut)
    assert len(document["otherData"]["periods"]) == 3
    marked = [event for event in document["traceEvents"] if event.get("cat") == "summarised"]
    assert marked and all("not shown" in event["args"]["detail"] for event in marked)


def test_are_units_and_warps_all_there(copies: Timeline) -> None:
    assert {track.group for track in copies.tracks} >= {"CTAs", "bulk copies in", "mbarriers", "warps"}


@pytest.mark.parametrize("suffix", FORMATS)
def test_does_a_timeline_become_a_file_of_every_form(timeline: Timeline, suffix: str) -> None:
    content = timeline_file(timeline, suffix)
    assert len(content) < 20 << 20
    if suffix == ".json":
        assert json.loads(content)["traceEvents"]
    if suffix == ".html":
        assert "<svg" in content and "SM cycle" in content and "http" not in content.replace("http://www.w3.org", "")


def test_fits_the_text_a_terminal_and_has_a_letter_per_cause(timeline: Timeline) -> None:
    text = ascii_timeline(timeline, 100)
    assert max(map(len, text.splitlines())) <= 100
    assert "= CTA resident" in text and any(letter in text for letter in "#mblw")


def test_shows_the_diagram_part_of_the_steady_period(timeline: Timeline) -> None:
    first, last = steady_window(timeline)
    assert 0 < last - first <= timeline.end
    part = window(timeline, first, last)
    assert all(first <= piece.start <= piece.end <= last for track in part.tracks for piece in track.slices)
    assert render_diagram(timeline)


def test_does_perfetto_open_it(copies: Timeline) -> None:
    """Only where the package is installed: its reader is a binary that it downloads at first use, so it is no dependency."""
    processor = pytest.importorskip("perfetto.trace_processor")
    with processor.TraceProcessor(trace=json.dumps(chrome_trace(copies)).encode()) as trace:
        n_slices = next(iter(trace.query("select count(*) as n from slice"))).n
        n_flows = next(iter(trace.query("select count(*) as n from flow"))).n
        overlaps = next(
            iter(
                trace.query(
                    "select count(*) as n from slice a join slice b on a.track_id = b.track_id and a.id < b.id "
                    "and a.ts < b.ts + b.dur and b.ts < a.ts + a.dur"
                )
            )
        ).n
    assert n_slices > 0 and n_flows > 0 and overlaps == 0
