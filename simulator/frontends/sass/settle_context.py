"""What settling a row needs: the leader's state as plain arrays, the table of differences, and who left the group."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np

from simulator.frontends.sass.differences import DifferenceTable
from simulator.frontends.sass.semantics import codes
from simulator.frontends.sass.warp_state import CtaState

LANES = np.arange(codes.LANES)
SOURCE_FIELDS = ("a", "a_hi", "b", "b_hi", "c", "c_hi")
_ARRAYS = ("values", "unknown", "difference", "predicate", "predicate_unknown", "predicate_difference")

Row = SimpleNamespace
"""Fields of one lowered row as Python integers."""


def lanes_of(mask: int) -> np.ndarray:
    """Lane numbers of a mask."""
    return np.flatnonzero((mask >> LANES) & 1)


class CtaView:
    """Fields of the CTA record that settling reads and writes, as plain integers (records are slow to ask)."""

    def __init__(self, ctas: np.recarray):
        self._columns = {name: ctas[name] for name in ctas.dtype.names or ()}

    def get(self, name: str) -> int:
        return int(self._columns[name][0])

    def put(self, name: str, value: int) -> None:
        self._columns[name][0] = value


class WarpView:
    """Arrays of one warp's record, and the lanes at the row in question: ``path`` reach it, ``live`` have not exited."""

    values: np.ndarray
    unknown: np.ndarray
    difference: np.ndarray
    predicate: np.ndarray
    predicate_unknown: np.ndarray
    predicate_difference: np.ndarray

    def __init__(self, warps: np.recarray, number: int):
        self.number = number
        self.record = warps[number : number + 1]
        for name in _ARRAYS:
            setattr(self, name, warps[name][number])
        self._mask, self._exited = warps["mask"], warps["exited"]

    @property
    def path(self) -> int:
        return int(self._mask[self.number])

    @property
    def live(self) -> int:
        return codes.FULL & ~int(self._exited[self.number])


class SettleContext:
    """State, differences and departures of one group. ``cta``: the CTA record; ``fields``: the lowered rows; ``left``: groups
    of CTA indices that went their own way."""

    def __init__(self, rows: np.recarray, fields: Sequence[Row], state: CtaState, views: Sequence[WarpView],
                 table: DifferenceTable):
        self.rows = rows
        self.fields = fields
        self.state = state
        self.cta = CtaView(state.cta)
        self.views = views
        self.table = table
        self.left: list[np.ndarray] = []

    def split(self, domain: int, keys: list[np.ndarray]) -> None:
        """The CTAs go whose keys (each [K, n] at the points of a domain) are not the leader's."""
        self.left += self.table.split(domain, np.concatenate([key.astype(np.int64) for key in keys], axis=1))

    def alone(self) -> None:
        """Every other CTA leaves by itself: what differs here is not followed."""
        everyone = self.table.domain_of_codes(np.arange(len(self.table.members)))
        self.split(everyone, [np.arange(len(self.table.points(everyone)[0]))[:, None]])

    def guards(self, row: Row, warp: WarpView) -> tuple[int, np.ndarray, np.ndarray]:
        """(domain, lanes that execute the row [K], those of them where predicate operand p holds [K])."""
        table = self.table
        handles = [int(warp.predicate_difference[m]) for m in (row.guard, row.p)]
        domain = table.join([table.domain(h) for h in handles])
        guard = int(warp.predicate[row.guard]) ^ table.at_points(handles[0], domain)[:, 0] ^ row.guard_invert
        operand = int(warp.predicate[row.p]) ^ table.at_points(handles[1], domain)[:, 0] ^ row.p_invert
        active = warp.path & guard
        return domain, active, active & operand

    def with_registers(
        self, domain: int, keys: list[np.ndarray], warp: WarpView, registers: list[int], lanes: np.ndarray
    ) -> tuple[int, list[np.ndarray]]:
        """Extend split keys by the differences of registers in some lanes: (common domain, keys)."""
        table = self.table
        handles = [int(warp.difference[r]) for r in registers]
        joined = table.join([domain, *(table.domain(h) for h in handles)])
        columns = [table.over(joined, domain, key) for key in keys]
        for handle in handles:
            columns.append(table.lanes_at_points(handle, joined)[:, lanes])
        return joined, columns

    def merge(self, handles: np.ndarray, place: int, domain: int, change: np.ndarray, written: int, live: int) -> None:
        """Set a difference ([K, L] over a domain) in the written lanes; live lanes that are not written keep theirs."""
        table = self.table
        old = int(handles[place])
        joined = table.join([domain, table.domain(old)])
        full = np.array(table.over(joined, domain, change))
        kept = lanes_of(live & ~written)
        full[:, kept] = table.lanes_at_points(old, joined)[:, kept]
        if live & written:
            full[:, lanes_of(~live)] = full[:, lanes_of(live & written)[:1]]
        handles[place] = table.add(joined, full)
