"""A kernel whose bulk copies into shared memory are issued some stages earlier, into a longer ring of mbarriers.

For warps that issue copies and wait for each of them in turn. Rings with warps of their own for the copies, or that skip
stages, are left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np

from simulator.projection.more_stages import mnemonics, moved_ahead
from simulator.trace.kernel_trace import EventTable, KernelTrace, Stream

COPY, SYNCHRONISE = "UTMALDG", "SYNCS"
INIT, EXPECT, WAIT = "EXCH", "ARRIVE.TRANS64", "PHASECHK"
MBARRIER_BYTES = 8


@dataclass(frozen=True)
class _Fill:
    """Places in the issuing stream of what fills a stage: the expectation of its bytes, and its copies."""

    mbarrier: int
    n_bytes: int
    pieces: list[int]


@dataclass
class _Events:
    """Rows of the event table with other mbarriers and parities."""

    table: EventTable
    source: list[int] = field(default_factory=list)
    numbers: dict[tuple[int, int, int], int] = field(default_factory=dict)

    def row(self, event: int, mbarrier: int, parity: int) -> int:
        key = (event, mbarrier, parity)
        if key not in self.numbers:
            self.numbers[key] = len(self.table) + len(self.source)
            self.source.append(event)
        return self.numbers[key]

    def extended(self) -> EventTable:
        rows = np.concatenate([np.arange(len(self.table)), np.array(self.source, np.int64)])
        table = EventTable(**{one.name: getattr(self.table, one.name)[rows] for one in fields(EventTable)})
        new = np.array([(mbarrier, parity) for _, mbarrier, parity in self.numbers], np.int64).reshape(-1, 2)
        mbarrier = np.concatenate([self.table.mbarrier, new[:, 0].astype(np.int32)])
        parity = np.concatenate([self.table.parity, new[:, 1].astype(np.int32)])
        return replace(table, mbarrier=mbarrier, parity=parity)


def with_bulk_copies_ahead(trace: KernelTrace, n_stages: int) -> KernelTrace | None:
    """Every stage is filled in the place of the one ``n_stages`` before it; the ring, and shared memory, grow by as many
    stages. None where the copies of a CTA are no such ring."""
    events, largest, streams = _Events(trace.events), 0, []
    for warps in trace.streams:
        ring = _ring(trace, warps)
        if ring is None:
            return None
        fills, order, issuing = ring
        largest = max(largest, max(fill.n_bytes for fill in fills))
        longer = [*order, *(_free(trace) + MBARRIER_BYTES * i for i in range(n_stages))]
        own = [fills if warp == issuing else [] for warp in range(len(warps))]
        changed = [_renumbered(trace, stream, mine, order, longer, events) for stream, mine in zip(warps, own, strict=True)]
        places = [(place, number) for number, fill in enumerate(fills) for place in fill.pieces]
        first_of = np.array([min(fill.pieces) for fill in fills])
        pieces, group = np.array(places).T
        changed[issuing] = moved_ahead(changed[issuing], pieces, group, first_of, n_stages)
        streams.append(tuple(_initialised(trace, stream, order[0], longer[len(order) :], events) for stream in changed))
    launch = replace(trace.launch, dynamic_smem_bytes=trace.launch.dynamic_smem_bytes + n_stages * largest)
    return replace(trace, streams=tuple(streams), events=events.extended(), launch=launch)


def _free(trace: KernelTrace) -> int:
    """The first offset that no mbarrier has; a mere name."""
    return int(trace.events.mbarrier.max(initial=0)) + MBARRIER_BYTES


def _acts(trace: KernelTrace, stream: Stream) -> tuple[np.ndarray, np.ndarray]:
    """(places that act on an mbarrier, mbarrier of each place or -1)."""
    mbarrier = np.where(stream.event >= 0, trace.events.mbarrier[stream.event], -1)
    return np.flatnonzero(mbarrier >= 0), mbarrier


def _ring(trace: KernelTrace, warps: Sequence[Stream]) -> tuple[list[_Fill], list[int], int] | None:
    """(fills in order, mbarriers of the ring in order, issuing warp); None if a CTA's copies are not one ring."""
    base = mnemonics(trace)
    issuing = [w for w, s in enumerate(warps) if ((base[s.instruction] == COPY) & (s.event >= 0)).any()]
    fills = _fills(trace, warps[issuing[0]]) if len(issuing) == 1 else None
    if not fills:
        return None
    order = list(dict.fromkeys(fill.mbarrier for fill in fills))
    if any(fill.mbarrier != order[number % len(order)] for number, fill in enumerate(fills)):
        return None
    for warp in warps:
        waits = _waited(trace, warp, order)
        if waits is None or (waits and max(waits.values()) != len(fills) - 1) or len(set(waits.values())) not in (0, len(fills)):
            return None
    return fills, order, issuing[0]


def _fills(trace: KernelTrace, stream: Stream) -> list[_Fill] | None:
    found: list[_Fill] = []
    latest: dict[int, _Fill] = {}
    places, mbarrier = _acts(trace, stream)
    for place in places.tolist():
        opcode, m = trace.static.opcode[stream.instruction[place]], int(mbarrier[place])
        if EXPECT in opcode and trace.events.count[stream.event[place]] > 0:
            latest[m] = _Fill(m, int(trace.events.count[stream.event[place]]), [place])
            found.append(latest[m])
        elif opcode.startswith(COPY):
            if m not in latest:
                return None
            latest[m].pieces.append(place)
    return found


def _waited(trace: KernelTrace, stream: Stream, order: Sequence[int]) -> dict[int, int] | None:
    """Place -> number of the fill that is waited for there; None if the stream does something else with mbarriers."""
    places, mbarrier = _acts(trace, stream)
    phase = dict.fromkeys(order, -1)
    found = {}
    for place in places.tolist():
        opcode, m = trace.static.opcode[stream.instruction[place]], int(mbarrier[place])
        if m not in phase or not opcode.startswith((COPY, SYNCHRONISE)):
            return None
        if WAIT in opcode:
            if phase[m] < 0 or trace.events.parity[stream.event[place]] != phase[m] % 2:
                phase[m] += 1
            found[place] = phase[m] * len(order) + order.index(m)
    return found


def _renumbered(
    trace: KernelTrace, stream: Stream, fills: Sequence[_Fill], order: Sequence[int], longer: Sequence[int], events: _Events
) -> Stream:
    """The stream with its fills and waits on the longer ring."""
    event = stream.event.copy()
    for number, fill in enumerate(fills):
        for place in fill.pieces:
            event[place] = events.row(int(event[place]), longer[number % len(longer)], 0)
    for place, number in (_waited(trace, stream, order) or {}).items():
        event[place] = events.row(int(event[place]), longer[number % len(longer)], number // len(longer) % 2)
    return replace(stream, event=event)


def _initialised(trace: KernelTrace, stream: Stream, first: int, added: Sequence[int], events: _Events) -> Stream:
    """The stream with the new mbarriers initialised after the ``first`` of the ring."""
    known = stream.event < len(trace.events)
    mbarrier = np.where((stream.event >= 0) & known, trace.events.mbarrier[np.where(known, stream.event, 0)], -1)
    is_init = np.array([INIT in opcode for opcode in trace.static.opcode])[stream.instruction]
    places = np.flatnonzero(is_init & (mbarrier == first))
    if not len(places):
        return stream
    at = int(places[0])
    rows = [events.row(int(stream.event[at]), one, 0) for one in added]
    insert = [at + 1] * len(added)
    return Stream(
        np.insert(stream.instruction, insert, stream.instruction[at]),
        np.insert(stream.active, insert, stream.active[at]),
        np.insert(stream.event, insert, rows).astype(np.int32),
    )
