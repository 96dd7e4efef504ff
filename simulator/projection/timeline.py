"""What one SM does over time, as tracks of slices and arrows between them; bounded, however long the kernel runs.

A short kernel is shown whole.  Of a longer one the first, a steady and the last period are shown in full, and what lies
between them is one slice per track that says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from simulator.device.recording import Recording, record
from simulator.hw.config import HardwareConfig
from simulator.isa.effects import (
    EVENT_CTA,
    EVENT_GLOBAL,
    EVENT_LOAD_BOX,
    EVENT_MMA,
    EVENT_PHASE,
    EVENT_SHARED,
    EVENT_STORE_BOX,
    REASON_MASK,
    STALL_REASONS,
)
from simulator.projection.run import Replay
from simulator.sm.inputs import CYCLE
from simulator.sm.layout import EVENT_END, EVENT_KIND, EVENT_NUMBER, EVENT_OF, EVENT_START
from simulator.trace.kernel_trace import KernelTrace

WHOLE = 24_000
"""Issues of one SM that are shown whole; a longer kernel shows three periods of a third of that each."""
RUN_GAP = 12
"""Issues of a warp at most so many cycles apart are one slice."""
MOST_LANES = 12
"""Requests of one kind in flight at once that get a track of their own; further ones are left out and counted."""
MOST_RECORDED = 3_000_000
SUMMARY, ISSUE = "summarised", "issue"


@dataclass(frozen=True)
class Slice:
    """Something that lasts, in SM cycles. ``kind``: "issue", a stall reason, or the unit's name."""

    start: float
    end: float
    name: str
    kind: str
    detail: str = ""


@dataclass
class Track:
    """Slices that do not overlap, in order of time. ``group``: the unit that it belongs to."""

    group: str
    name: str
    slices: list[Slice] = field(default_factory=list)


@dataclass(frozen=True)
class Arrow:
    """From a bulk copy to the mbarrier phase that it completes to the warp that waited: (track number, slice number) each."""

    stops: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Timeline:
    """``periods``: (name, first cycle, last cycle) shown in full; ``n_left_out``: slices beyond the room of their tracks."""

    kernel: str
    hw: str
    tracks: list[Track]
    arrows: list[Arrow]
    periods: list[tuple[str, float, float]]
    end: float
    n_left_out: int


def build_timeline(replay: Replay, hw: HardwareConfig) -> Timeline:
    """Replay once more, recording the first SM, and arrange what it did."""
    found = record(replay.program, hw, replay.plan, MOST_RECORDED)
    return arrange(found, replay.trace, replay.program.instruction, hw.name)


def arrange(found: Recording, trace: KernelTrace, instruction: np.ndarray, hw: str) -> Timeline:
    """Tracks and arrows of a recording; ``instruction``: static row of each stream entry."""
    periods = choose_periods(found)
    tracks = list(warp_tracks(found, trace, instruction, periods))
    units, n_left_out = unit_tracks(found, periods)
    tracks = units + tracks
    end = found.end / CYCLE
    _summarise(tracks, periods, end)
    return Timeline(trace.kernel, hw, tracks, list(join(tracks)), periods, end, n_left_out)


def choose_periods(found: Recording) -> list[tuple[str, float, float]]:
    """The whole span, or its first, steady and last period."""
    at = found.issues[:, 0] / CYCLE
    end = found.end / CYCLE
    if len(at) <= WHOLE:
        return [("whole", 0.0, end)]
    third, middle = WHOLE // 3, len(at) // 2
    steady = (float(at[middle - third // 2]), float(at[middle + third // 2]))
    return [("first", 0.0, float(at[third])), ("steady", *steady), ("last", float(at[-third]), end)]


def _in_periods(starts: np.ndarray, ends: np.ndarray, periods: Sequence[tuple[str, float, float]]) -> np.ndarray:
    inside = np.zeros(len(starts), bool)
    for _, first, last in periods:
        inside |= (starts >= first) & (ends <= last)
    return inside


def warp_tracks(
    found: Recording, trace: KernelTrace, instruction: np.ndarray, periods: Sequence[tuple[str, float, float]]
) -> Iterator[Track]:
    """One track per warp: runs of issues, and waits by reason."""
    for warp in range(found.n_slots * found.n_warps):
        mine = found.issues[found.issues[:, 1] == warp]
        track = Track("warps", f"CTA slot {warp // found.n_warps}, warp {warp % found.n_warps}")
        for _, first, last in periods:
            at = mine[:, 0] / CYCLE
            track.slices += _warp_slices(mine[(at >= first) & (at + 1 <= last)], trace, instruction)
        if track.slices:
            yield track


def _warp_slices(issues: np.ndarray, trace: KernelTrace, instruction: np.ndarray) -> list[Slice]:
    if not len(issues):
        return []
    at = issues[:, 0] / CYCLE
    rows = instruction[issues[:, 2]]
    breaks = np.flatnonzero(np.diff(at) > RUN_GAP) + 1
    slices: list[Slice] = []
    for first, last in zip([0, *breaks], [*breaks, len(issues)], strict=True):
        text = trace.static.text[rows[first]]
        if first:
            reason = STALL_REASONS[int(issues[first, 3]) & REASON_MASK]
            slices.append(Slice(at[first - 1] + 1, at[first], reason.replace("_", " "), reason, f"until {text}"))
        name = trace.static.opcode[rows[first]] if last - first == 1 else f"{last - first} instructions"
        slices.append(Slice(at[first], at[last - 1] + 1, name, ISSUE, f"from {text}"))
    return slices


UNITS = {
    EVENT_CTA: ("CTAs", "CTA {number}", "cta"),
    EVENT_MMA: ("tensor cores", "MMA", "tensor"),
    EVENT_LOAD_BOX: ("bulk copies in", "bulk load", "bulk_copy"),
    EVENT_STORE_BOX: ("bulk copies out", "bulk store", "bulk_copy"),
    EVENT_PHASE: ("mbarriers", "phase {number} complete", "mbarrier"),
    EVENT_SHARED: ("shared-memory port", "{number} wavefronts", "shared_memory"),
    EVENT_GLOBAL: ("global reads", "{number} lines", "global_memory"),
}


def unit_tracks(found: Recording, periods: Sequence[tuple[str, float, float]]) -> tuple[list[Track], int]:
    """Tracks of the units that log events, and how many events had no room."""
    tracks: list[Track] = []
    n_left_out = 0
    for kind, (group, name, colour) in UNITS.items():
        events = found.events[found.events[:, EVENT_KIND] == kind]
        start, end = events[:, EVENT_START] / CYCLE, events[:, EVENT_END] / CYCLE
        if kind == EVENT_PHASE:
            end = start + 1
        if kind == EVENT_SHARED:
            start, end = np.maximum(start, end + 1 - events[:, EVENT_NUMBER]), end + 1
        if kind == EVENT_CTA:
            inside = np.ones(len(events), bool)
        else:
            inside = _in_periods(start, end, periods)
        lanes: list[Track] = []
        order = np.flatnonzero(inside)
        for i in order[np.argsort(start[order], kind="stable")]:
            number = int(events[i, EVENT_NUMBER])
            is_copy = kind == EVENT_LOAD_BOX
            detail = f"mbarrier {number}" if is_copy else f"mbarrier {int(events[i, EVENT_OF])}" if kind == EVENT_PHASE else ""
            piece = Slice(float(start[i]), float(end[i]), name.format(number=number), colour, detail)
            n_left_out += not _place(lanes, piece, group)
        for n, lane in enumerate(lanes):
            lane.name = f"{group} {n + 1}" if len(lanes) > 1 else group
        tracks += lanes
    return tracks, n_left_out


def _place(lanes: list[Track], piece: Slice, group: str) -> bool:
    """Put a slice on the first lane that is free; False if all are taken."""
    for lane in lanes:
        if lane.slices[-1].end <= piece.start:
            lane.slices.append(piece)
            return True
    if len(lanes) == MOST_LANES:
        return False
    lanes.append(Track(group, group, [piece]))
    return True


def _summarise(tracks: list[Track], periods: Sequence[tuple[str, float, float]], end: float) -> None:
    """One slice between periods on every track that has anything there, apart from CTAs, which are shown throughout."""
    gaps = [(a[2], b[1]) for a, b in pairwise(periods)]
    for track in tracks:
        if track.group == "CTAs":
            continue
        for first, last in gaps:
            before = [piece for piece in track.slices if piece.end <= first]
            after = [piece for piece in track.slices if piece.start >= last]
            start = max(first, before[-1].end if before else first)
            stop = min(last, after[0].start if after else last)
            note = f"{last - first:,.0f} cycles like the steady period, not shown"
            track.slices = [*before, Slice(start, stop, SUMMARY, SUMMARY, note), *after]


def join(tracks: Sequence[Track]) -> Iterator[Arrow]:
    """Arrows from each bulk load to the phase that it completes to the first warp that had waited for it."""
    phases: dict[str, list[tuple[float, int, int]]] = {}
    for t, track in enumerate(tracks):
        if track.group == "mbarriers":
            for s, piece in enumerate(track.slices):
                phases.setdefault(piece.detail, []).append((piece.start, t, s))
    waits = [
        (track.slices[s + 1].start, t, s + 1)
        for t, track in enumerate(tracks)
        for s, piece in enumerate(track.slices[:-1])
        if piece.kind == "mbarrier" and track.group == "warps"
    ]
    ended = np.array(sorted(waits) or np.zeros((0, 3)))
    for t, track in enumerate(tracks):
        if track.group != "bulk copies in":
            continue
        for s, piece in enumerate(track.slices):
            later = [p for p in sorted(phases.get(piece.detail, [])) if p[0] >= piece.end]
            if not later:
                continue
            stops = [(t, s), (later[0][1], later[0][2])]
            n = int(np.searchsorted(ended[:, 0], later[0][0]))
            if n < len(ended) and ended[n, 0] - later[0][0] <= JOIN_WITHIN:
                stops.append((int(ended[n, 1]), int(ended[n, 2])))
            yield Arrow(tuple(stops))


JOIN_WITHIN = 200
"""Cycles between a phase and the issue of a warp that it released, at most."""


def window(timeline: Timeline, first: float, last: float) -> Timeline:
    """The part of a timeline between two cycles, slices cut at its borders, without arrows."""
    tracks = []
    for track in timeline.tracks:
        cut = [
            replace(piece, start=max(piece.start, first), end=min(piece.end, last))
            for piece in track.slices
            if piece.start < last and piece.end > first
        ]
        tracks.append(Track(track.group, track.name, cut))
    return replace(timeline, tracks=[t for t in tracks if t.slices], arrows=[], periods=[("window", first, last)])
