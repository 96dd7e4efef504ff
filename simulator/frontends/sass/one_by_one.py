"""CTAs that differ at every other row: executed one by one, and compared afterwards.

To settle a row for a whole group takes as long as a thousand instructions; where every load gives every CTA another
address (a pointer chase), executing each CTA is cheaper than following differences. The classes are the same ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from simulator.frontends.sass.execution_log import entry_columns
from simulator.frontends.sass.semantics import codes
from simulator.frontends.sass.semantics.records import EVENT

FEWEST_SETTLED = 1_000
"""Rows settled before a group is given up."""
INSTRUCTIONS_PER_SETTLING = 1_000
"""Warp instructions that are executed in the time that one row takes to settle (0.5 ms against 2 M a second)."""
MOST_ADDRESSES = 1 << 25
"""Events of all CTAs that are compared at most."""

VARIES = ("address", "coordinate", "difference", "coordinate_difference")
"""Event fields in which CTAs of a class may differ."""
FIXED = [name for name in EVENT.names or () if name not in VARIES]


def is_cheaper(n_settled: int, n_ctas: int, n_logged: int) -> bool:
    """Whether executing each of ``n_ctas`` takes less time than settling as often as for the first ``n_logged`` rows."""
    return n_settled >= FEWEST_SETTLED and n_ctas * n_logged < INSTRUCTIONS_PER_SETTLING * n_settled


@dataclass
class CtaClass:
    """CTAs that execute the same. ``entries``, ``events``: as in ClassExecution, of the first; ``members``; for each of
    them ``addresses`` int64 [n_events] and ``coordinates`` int64 [n tensor events, rank]."""

    entries: list[np.ndarray]
    events: np.recarray
    members: list[int] = field(default_factory=list)
    addresses: list[np.ndarray] = field(default_factory=list)
    coordinates: list[np.ndarray] = field(default_factory=list)

    def differences(self) -> dict[int, np.ndarray]:
        """Handle -> what to add in each member, int64 [n]; writes the handles into the events."""
        by_content: dict[bytes, int] = {bytes(8 * len(self.members)): 0}
        found: dict[int, np.ndarray] = {}

        def handle(values: np.ndarray) -> int:
            number = by_content.setdefault(values.tobytes(), len(by_content))
            if number:
                found.setdefault(number, values)
            return number

        addresses = np.stack(self.addresses, axis=1)
        addresses -= addresses[:, :1]
        for event in np.flatnonzero(addresses.any(axis=1)):
            self.events["difference"][event] = handle(addresses[event])
        coordinates = np.stack(self.coordinates, axis=2)
        coordinates -= coordinates[:, :, :1]
        tensor = np.flatnonzero(self.events["descriptor"] >= 0)
        for event, dimension in np.argwhere(coordinates.any(axis=2)):
            self.events["coordinate_difference"][tensor[event], dimension] = handle(coordinates[event, dimension])
        return found


def compared(
    members: np.ndarray, rows: np.recarray, execute: Callable[[int], tuple[list[np.ndarray], np.recarray]]
) -> list[CtaClass] | None:
    """Classes of CTAs, by what ``execute(cta)`` says that each one does: (entries of each warp, events). None when their
    events are too many to compare."""
    known: dict[bytes, CtaClass] = {}
    local = np.flatnonzero((rows["family"] == codes.MEMORY) & np.isin(rows["verb"], (codes.LOCAL_READ, codes.LOCAL_WRITE)))
    for member in members.tolist():
        entries, events = execute(member)
        if len(members) * len(events) > MOST_ADDRESSES:
            return None
        found = known.setdefault(_digest(entries, events, local), CtaClass(entries, events))
        found.members.append(member)
        found.addresses.append(events["address"].copy())
        found.coordinates.append(events["coordinate"][events["descriptor"] >= 0])
    return list(known.values())


def _digest(entries: list[np.ndarray], events: np.recarray, local: np.ndarray) -> bytes:
    """Of all that is the same within a class: executed rows and the fixed fields, with the addresses of local memory."""
    digest = hashlib.sha256()
    for warp in entries:
        row, _, event = entry_columns(warp)
        digest.update(len(warp).to_bytes(8, "little"))
        digest.update(warp.tobytes())
        if len(local):
            digest.update(events["address"][event[np.isin(row, local) & (event >= 0)]].tobytes())
    for name in FIXED:
        digest.update(events[name].tobytes())
    return digest.digest()
