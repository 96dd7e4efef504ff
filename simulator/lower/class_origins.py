"""Origins that classes of CTAs share.

A simulated SM runs the CTA of its first member; the others request what that CTA requests, moved by the differences of their
bases.  Addresses of a trace start from the first CTA of each class, so a member of another class would be moved by too
little.  Here every class starts from the first class's origin, and its bases hold the rest.
"""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from simulator.trace.kernel_trace import NONE, EventTable, KernelTrace, Stream


def with_common_origins(trace: KernelTrace) -> KernelTrace:
    """The same accesses, with bases that are comparable between classes wherever two classes execute the same instructions."""
    shifts = {number: _shifts(trace, number) for number in range(1, trace.n_classes)}
    shifts = {number: found for number, found in shifts.items() if found}
    if not shifts:
        return trace
    base = trace.cta_base.copy()
    columns = {f.name: [getattr(trace.events, f.name)] for f in fields(EventTable)}
    n_rows = len(trace.events)
    streams = list(trace.streams)
    for number, found in shifts.items():
        for column, distance in found.items():
            base[trace.cta_class == number, column] += distance
        used = np.unique(np.concatenate([s.event[s.event >= 0] for s in trace.streams[number]]))
        own = {name: parts[0][used].copy() for name, parts in columns.items()}
        for column, distance in found.items():
            own["address"][own["base"][:, 0] == column] -= distance
            own["coordinate"][own["base"] == column] -= distance
        for name, parts in columns.items():
            parts.append(own[name])
        streams[number] = tuple(_renumbered(s, used, n_rows) for s in trace.streams[number])
        n_rows += len(used)
    events = EventTable(**{name: np.concatenate(parts) for name, parts in columns.items()})
    return replace(trace, events=events, streams=tuple(streams), cta_base=base)


def _renumbered(stream: Stream, used: np.ndarray, first: int) -> Stream:
    row = (first + np.searchsorted(used, stream.event)).astype(np.int32)
    return replace(stream, event=np.where(stream.event >= 0, row, np.int32(NONE)))


def _shifts(trace: KernelTrace, number: int) -> dict[int, int]:
    """Distance of class ``number``'s origin from the first class's, by base column: where all common accesses agree on it."""
    ours, theirs = _common_events(trace, number)
    events = trace.events
    found: dict[int, int] = {}
    unclear: set[int] = set()
    for d in range(events.base.shape[1]):
        column = events.base[ours, d]
        both = (column >= 0) & (column == events.base[theirs, d])
        value = events.coordinate[:, d].astype(np.int64)
        if d == 0:
            value = np.where(events.tensor >= 0, value, events.address)
        distance = (value[theirs] - value[ours])[both]
        for one in np.unique(column[both]):
            distances = np.unique(distance[column[both] == one])
            if len(distances) > 1 or found.get(int(one), int(distances[0])) != distances[0]:
                unclear.add(int(one))
            found[int(one)] = int(distances[0])
    return {column: distance for column, distance in found.items() if distance and column not in unclear}


def _common_events(trace: KernelTrace, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Event rows of the first class and of class ``number`` that stand for each other: at the start of the streams, and at
    their end, as far as both execute the same instructions."""
    pairs = []
    for first, other in zip(trace.streams[0], trace.streams[number], strict=True):
        for step in (1, -1):
            length = min(len(first.instruction), len(other.instruction))
            same = first.instruction[::step][:length] == other.instruction[::step][:length]
            n = length if same.all() else int(np.argmin(same))
            pair = np.stack([first.event[::step][:n], other.event[::step][:n]])
            pairs.append(pair[:, (pair >= 0).all(axis=0)])
            if n == length:
                break
    ours, theirs = np.unique(np.concatenate(pairs, axis=1), axis=1)
    return ours, theirs
