"""Assembles the event table, lane patterns and CTA differences of a trace, without repetition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from simulator.trace.kernel_trace import LANES, NONE, EventTable, Stream

MAX_RANK = 5
SCALARS = ("pattern", "address", "shared_address", "shared_pattern", "tensor", "count", "mbarrier", "parity", "cta_mask")
WIDE = frozenset({"address", "count"})


@dataclass(frozen=True)
class ClassStreams:
    """One CTA class before its events are merged. ``members`` int64 [n]: CTA indices, the representative first;
    ``warps``: (instruction int32, active uint8, event int32 or NONE) of each warp; ``events``: column -> array, as in
    EventTable but for ``base``; ``address_difference`` int64 [n_events] and ``coordinate_difference`` int64
    [n_events, MAX_RANK]: keys of ``differences`` (0 = none), whose values are int64 [n]; ``fixed``: columns of those keys
    that mean the same in every class."""

    members: np.ndarray
    warps: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]]
    events: Mapping[str, np.ndarray]
    address_difference: np.ndarray
    coordinate_difference: np.ndarray
    differences: Mapping[int, np.ndarray]
    fixed: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class AssembledClasses:
    """Fields of a KernelTrace that depend on the classes."""

    streams: tuple[tuple[Stream, ...], ...]
    events: EventTable
    lane_patterns: np.ndarray
    cta_class: np.ndarray
    cta_base: np.ndarray


def assemble(classes: Sequence[ClassStreams], lane_patterns: np.ndarray, n_ctas: int) -> AssembledClasses:
    """Merge the classes: equal events share one row, used patterns are renumbered, differences become columns."""
    cta_class = np.zeros(n_ctas, np.int32)
    n_fixed = 1 + max((column for found in classes for column in found.fixed.values()), default=-1)
    columns = [np.zeros(n_ctas, np.int64) for _ in range(n_fixed)]
    merged = _DistinctRows()
    places = []
    for number, found in enumerate(classes):
        cta_class[found.members] = number
        places.append(merged.places(_table(found, _columns(found, columns, n_fixed, n_ctas))))
    streams = []
    for found, place in zip(classes, places, strict=True):
        streams.append(tuple(_stream(instruction, active, event, place) for instruction, active, event in found.warps))
    events = merged.rows()
    patterns = _renumber_patterns(events, lane_patterns)
    base = np.stack(columns, axis=1) if columns else np.zeros((n_ctas, 0), np.int64)
    return AssembledClasses(tuple(streams), _event_table(events), patterns, cta_class, base)


def _columns(found: ClassStreams, columns: list[np.ndarray], n_fixed: int, n_ctas: int) -> dict[int, int]:
    """Difference key -> column. Classes reuse columns behind the fixed ones, since a column is read for the CTAs of its
    class alone; keys with equal differences share one."""
    place: dict[int, int] = {}
    by_content: dict[bytes, int] = {}
    for key, values in found.differences.items():
        if key in found.fixed:
            place[key] = found.fixed[key]
            columns[place[key]][found.members] = values
            continue
        content = np.ascontiguousarray(values, np.int64).tobytes()
        if content not in by_content:
            column = n_fixed + len(by_content)
            by_content[content] = column
            if column == len(columns):
                columns.append(np.zeros(n_ctas, np.int64))
            columns[column][found.members] = values
        place[key] = by_content[content]
    return place


def _table(found: ClassStreams, place: dict[int, int]) -> np.ndarray:
    """All event fields of a class as int64 [n, columns]: SCALARS, coordinates, bases."""
    n = len(found.address_difference)
    keys = np.array([0, *place], np.int64)
    order = np.argsort(keys)
    values = np.array([NONE, *place.values()], np.int64)[order]
    base = values[np.searchsorted(keys[order], found.coordinate_difference)]
    by_address = values[np.searchsorted(keys[order], found.address_difference)]
    base[:, 0] = np.where(by_address != NONE, by_address, base[:, 0])
    scalars = [np.asarray(found.events[name], np.int64).reshape(n, 1) for name in SCALARS]
    return np.concatenate([*scalars, np.asarray(found.events["coordinate"], np.int64), base], axis=1)


class _DistinctRows:
    """Rows of int64 columns (SCALARS, coordinates, bases), each kept once, in order of first use."""

    def __init__(self) -> None:
        self._place: dict[bytes, int] = {}

    def places(self, rows: np.ndarray) -> np.ndarray:
        """Place of each row of a table among the distinct ones, int64."""
        void = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()
        known, contents = self._place, cast("list[bytes]", void.tolist())
        return np.array([known.setdefault(row, len(known)) for row in contents], np.int64)

    def rows(self) -> np.ndarray:
        """The distinct rows, int64 [n, columns]."""
        return np.frombuffer(b"".join(self._place), np.int64).reshape(-1, len(SCALARS) + 2 * MAX_RANK).copy()


def _stream(instruction: np.ndarray, active: np.ndarray, event: np.ndarray, place: np.ndarray) -> Stream:
    if len(place) == 0:
        return Stream(instruction, active, event)
    renamed = np.where(event == NONE, NONE, place[np.maximum(event, 0)]).astype(np.int32)
    return Stream(instruction, active, renamed)


def _renumber_patterns(merged: np.ndarray, lane_patterns: np.ndarray) -> np.ndarray:
    """Keep the patterns that events name, numbered by first use; rewrites the pattern columns of ``merged``."""
    columns = [SCALARS.index("pattern"), SCALARS.index("shared_pattern")]
    used = merged[:, columns].ravel()
    numbers, first = np.unique(used[used != NONE], return_index=True)
    kept = numbers[np.argsort(first, kind="stable")]
    rename = np.full(len(lane_patterns) + 1, NONE, np.int64)
    rename[kept] = np.arange(len(kept))
    for column in columns:
        merged[:, column] = np.where(merged[:, column] == NONE, NONE, rename[merged[:, column]])
    return np.asarray(lane_patterns[kept], np.int32).reshape(-1, LANES)


def _event_table(merged: np.ndarray) -> EventTable:
    coordinate = len(SCALARS)
    fields = {name: merged[:, place].astype(np.int64 if name in WIDE else np.int32) for place, name in enumerate(SCALARS)}
    return EventTable(
        coordinate=merged[:, coordinate : coordinate + MAX_RANK].astype(np.int32),
        base=merged[:, coordinate + MAX_RANK :].astype(np.int32),
        **fields,
    )
