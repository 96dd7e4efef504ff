"""A kernel whose bulk copies into shared memory are issued some stages earlier, into a longer ring of mbarriers.

For rings that every warp goes round stage by stage. Warps that copy and multiply issue their copies earlier in their code; a
warp that only copies runs ahead by itself, once there are more stages to fill. Other rings are left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np

from simulator.projection.more_stages import moved_ahead
from simulator.trace.kernel_trace import EventTable, KernelTrace, Stream

COPY, INIT, EXPECT, ARRIVE, WAIT, END = "UTMALDG", "EXCH", "ARRIVE.TRANS64", "ARRIVE", "PHASECHK", "CCTL.IV"
MBARRIER_BYTES = 8


@dataclass(frozen=True)
class _Fill:
    """Places in the issuing stream of what fills a stage: the expectation of its bytes, and its copies."""

    mbarrier: int
    n_bytes: int
    pieces: list[int]


@dataclass(frozen=True)
class _Ring:
    """``fills`` in order, by the warp ``issuing``; mbarriers by stage that say that it is ``filled``, and, where a warp only
    copies, that it is ``freed``."""

    fills: list[_Fill]
    filled: list[int]
    freed: list[int]
    issuing: int

    def longer(self, first: int, n_stages: int) -> _Ring:
        """With more stages, whose mbarriers have the offsets (mere names) from ``first`` on."""
        added = [first + MBARRIER_BYTES * i for i in range(2 * n_stages)]
        return replace(
            self, filled=[*self.filled, *added[:n_stages]], freed=[*self.freed, *added[n_stages:]] if self.freed else []
        )


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
        longer = ring.longer(int(trace.events.mbarrier.max()) + MBARRIER_BYTES, n_stages)
        changed = [_renumbered(trace, stream, warp == ring.issuing, ring, longer, events) for warp, stream in enumerate(warps)]
        if not ring.freed:
            pieces, group = np.array([(place, n) for n, fill in enumerate(ring.fills) for place in fill.pieces]).T
            first_of = np.array([min(fill.pieces) for fill in ring.fills])
            changed[ring.issuing] = moved_ahead(changed[ring.issuing], pieces, group, first_of, n_stages)
        for old, new in ((ring.filled, longer.filled), (ring.freed, longer.freed)):
            changed = [_initialised(trace, stream, old[:1], new[len(old) :], events) for stream in changed]
        streams.append(tuple(changed))
        largest = max(largest, max(fill.n_bytes for fill in ring.fills))
    launch = replace(trace.launch, dynamic_smem_bytes=trace.launch.dynamic_smem_bytes + n_stages * largest)
    return replace(trace, streams=tuple(streams), events=events.extended(), launch=launch)


def _mbarriers(trace: KernelTrace, stream: Stream) -> np.ndarray:
    """The mbarrier that each instruction acts on, -1 for others and for rows that the trace did not have."""
    known = (stream.event >= 0) & (stream.event < len(trace.events))
    return np.where(known, trace.events.mbarrier[np.where(known, stream.event, 0)], -1)


def _ring(trace: KernelTrace, warps: Sequence[Stream]) -> _Ring | None:
    """The ring that the copies of a CTA fill; None if they are none, or if any warp does something else with mbarriers."""
    base = trace.static.mnemonics
    issuing = [w for w, s in enumerate(warps) if ((base[s.instruction] == COPY) & (s.event >= 0)).any()]
    fills = _fills(trace, warps[issuing[0]]) if len(issuing) == 1 else []
    filled = list(dict.fromkeys(fill.mbarrier for fill in fills))
    if not fills or [fill.mbarrier for fill in fills] != [filled[n % len(filled)] for n in range(len(fills))]:
        return None
    copier = warps[issuing[0]]
    others = [m for m in dict.fromkeys(_mbarriers(trace, copier).tolist()) if m >= 0 and m not in filled]
    ring = _Ring(fills, filled, others if _places(trace, copier, others, WAIT) else [], issuing[0])
    if len(ring.freed) not in (0, len(filled)) or not all(_goes_round(trace, s, s is copier, ring) for s in warps):
        return None
    return ring


def _fills(trace: KernelTrace, stream: Stream) -> list[_Fill]:
    """What the stream fills; nothing if a copy completes on an mbarrier that expects none."""
    found: list[_Fill] = []
    latest: dict[int, _Fill] = {}
    mbarrier = _mbarriers(trace, stream)
    for place in np.flatnonzero(mbarrier >= 0).tolist():
        opcode, m = trace.static.opcode[stream.instruction[place]], int(mbarrier[place])
        if EXPECT in opcode and trace.events.count[stream.event[place]] > 1:
            latest[m] = _Fill(m, int(trace.events.count[stream.event[place]]), [place])
            found.append(latest[m])
        elif opcode.startswith(COPY):
            if m not in latest:
                return []
            latest[m].pieces.append(place)
    return found


def _places(trace: KernelTrace, stream: Stream, mbarriers: Sequence[int], word: str) -> list[int]:
    """Where a stream does to any of the mbarriers what ``word`` names."""
    is_meant = np.array([word in opcode for opcode in trace.static.opcode])[stream.instruction]
    return np.flatnonzero(is_meant & np.isin(_mbarriers(trace, stream), mbarriers)).tolist()


def _goes_round(trace: KernelTrace, stream: Stream, is_copier: bool, ring: _Ring) -> bool:
    """Whether a stream waits for every fill or none, frees every stage or none, in order, and does nothing else."""
    mbarrier = _mbarriers(trace, stream)
    steps = [_places(trace, stream, ring.filled, WAIT), _places(trace, stream, ring.freed, WAIT if is_copier else ARRIVE)]
    turns = [n // len(ring.filled) % 2 for n in range(len(ring.fills))]
    for places, stages in zip(steps, (ring.filled, ring.freed), strict=True):
        if places and mbarrier[places].tolist() != [stages[n % len(stages)] for n in range(len(ring.fills))]:
            return False
    if steps[0] and trace.events.parity[stream.event[steps[0]]].tolist() != turns:
        return False
    n_fill = sum(len(fill.pieces) for fill in ring.fills) if is_copier else 0
    n_ends = sum(len(_places(trace, stream, [*ring.filled, *ring.freed], word)) for word in (INIT, END))
    return sum(map(len, steps)) + n_fill + n_ends == int((mbarrier >= 0).sum())


def _renumbered(trace: KernelTrace, stream: Stream, is_copier: bool, ring: _Ring, longer: _Ring, events: _Events) -> Stream:
    """The stream on the longer ring. A wait is for the parity of the turn; that for a free stage, for the turn before."""
    event = stream.event.copy()
    n_stages = len(longer.filled)

    def renumber(places: Sequence[int], number: int, mbarriers: Sequence[int], parity: int) -> None:
        for place in places:
            event[place] = events.row(int(event[place]), mbarriers[number % n_stages], parity)

    for n, place in enumerate(_places(trace, stream, ring.filled, WAIT)):
        renumber([place], n, longer.filled, n // n_stages % 2)
    for n, place in enumerate(_places(trace, stream, ring.freed, WAIT if is_copier else ARRIVE)):
        renumber([place], n, longer.freed, 1 - n // n_stages % 2 if is_copier else 0)
    for n, fill in enumerate(ring.fills if is_copier else []):
        renumber(fill.pieces, n, longer.filled, 0)
    return replace(stream, event=event)


def _initialised(trace: KernelTrace, stream: Stream, first: Sequence[int], added: Sequence[int], events: _Events) -> Stream:
    """The stream with the added mbarriers initialised like, and after, the ``first`` of the ring."""
    places = _places(trace, stream, first, INIT)
    if not places:
        return stream
    at = places[0]
    rows = [events.row(int(stream.event[at]), one, 0) for one in added]
    insert = [at + 1] * len(added)
    return Stream(
        np.insert(stream.instruction, insert, stream.instruction[at]),
        np.insert(stream.active, insert, stream.active[at]),
        np.insert(stream.event, insert, rows).astype(np.int32),
    )
