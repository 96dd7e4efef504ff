"""Global memory as one SM sees it, in plain Python: L1, the way out, an L2 of unlimited size, DRAM latency.

No bandwidth is limited beyond the SM; lines are numbered; masks have a bit per 32-byte sector.
"""

from __future__ import annotations

from dataclasses import dataclass

SECTOR_BYTES = 32
LINE_BYTES = 128
ALL_SECTORS = 15
Costs = dict[str, int]
Lines = list[tuple[int, int]]
"""(line, sectors) of an access."""


@dataclass
class L1Line:
    line: int = -1
    used_at: int = 0
    ready_at: int = 0
    sectors: int = 0


@dataclass
class L2Line:
    ready_at: int = 0
    filled_at: int = 0
    sectors: int = 0
    asked_at: int | None = None
    asked: int = 0
    comes_at: int = 0
    merges_for: int = 0


class NaiveMemory:
    """One SM's L1 and everything behind it."""

    def __init__(self, costs: Costs, l1_ways: int) -> None:
        self.costs = costs
        self.l1 = [L1Line() for _ in range(l1_ways)]
        self.l2: dict[int, L2Line] = {}
        self.miss_free_at = 0
        self.fill_free_at = 0
        self.store_free_at = 0
        self.accepted_at = 0
        self.address_free_at: dict[int, int] = {}

    def load(self, lines: Lines, at: int, uses_l1: bool) -> int:
        """When the last sector of a load is in the SM."""
        hit = self.costs["l1_hit"]
        done = at + hit
        for line, mask in lines:
            present = self._look_up(line, mask, at) if uses_l1 else None
            if present is not None:
                done = max(done, present.ready_at + hit)
                continue
            back = self.read_l2(line, mask, self._leave(mask, at))
            if uses_l1:
                self._fill(line, mask, back, at)
            done = max(done, back + hit)
        return done

    def store(self, lines: Lines, at: int) -> int:
        """When the last sector of a store has left the SM."""
        sent = at
        for line, mask in lines:
            sent = self._send(mask, at)
            self.accepted_at = max(self.accepted_at, self.write_l2(line, mask, sent))
        return sent

    def update(self, lines: Lines, at: int, same: int) -> int:
        """When the old value of an atomic is back; the L2 takes lanes on one address one after another."""
        done = at
        for line, mask in lines:
            served = max(at, self.address_free_at.get(line, 0)) + same * self.costs["atomic_same_address"]
            self.address_free_at[line] = served
            self.accepted_at = max(self.accepted_at, self.write_l2(line, mask, at))
            self._send(mask, at)
            done = max(done, served)
        self.accepted_at = max(self.accepted_at, done)
        return done + self.costs["near"]

    def read_l2(self, line: int, mask: int, at: int, promotion: int = 0) -> int:
        """When a line asked for ``at`` is at the SM. A read of sectors in flight beyond the coalescer joins them. A miss
        fills whole pieces of ``promotion`` bytes."""
        entry = self.l2.setdefault(line, L2Line())
        transit = self.costs["merge_transit"]
        is_in_flight = entry.asked_at is not None and abs(at - entry.asked_at) < entry.merges_for
        if is_in_flight and entry.asked & mask == mask:
            return entry.comes_at - (entry.asked_at - at) if at < entry.asked_at else max(entry.comes_at, at + transit)
        if entry.sectors & mask == mask:
            back = max(at + self.costs["near"], entry.ready_at - max(0, entry.filled_at - at))
        else:
            back = at + self.costs["near"] + self.costs["dram"]
            self._bring(line, _promoted(mask, promotion), back, at)
            if promotion > LINE_BYTES:
                self._bring(line ^ 1, ALL_SECTORS, back, at)
        entry.comes_at = max(back, entry.comes_at) if is_in_flight else back
        entry.asked = entry.asked | mask if is_in_flight else mask
        entry.asked_at, entry.merges_for = at, back - at - transit
        return back

    def write_l2(self, line: int, mask: int, at: int) -> int:
        """Sectors are valid in the L2 from ``at`` on; when the L2 has taken them."""
        self._bring(line, mask, at, at)
        return at

    def _bring(self, line: int, mask: int, ready_at: int, at: int) -> None:
        entry = self.l2.setdefault(line, L2Line())
        entry.sectors |= mask
        entry.ready_at, entry.filled_at = ready_at, at

    def _send(self, mask: int, at: int) -> int:
        n_bytes = mask.bit_count() * SECTOR_BYTES
        self.store_free_at = max(self.store_free_at, at) + n_bytes * self.costs["store_byte"]
        return self.store_free_at

    def _leave(self, mask: int, at: int) -> int:
        """A request takes the miss path and books the port that its data comes back through."""
        n_bytes = mask.bit_count() * SECTOR_BYTES
        self.miss_free_at = max(self.miss_free_at, at) + self.costs["l1_miss"]
        self.fill_free_at = max(self.fill_free_at, at) + n_bytes * self.costs["fill_byte"]
        return max(self.miss_free_at, self.fill_free_at)

    def _look_up(self, line: int, mask: int, at: int) -> L1Line | None:
        for entry in self.l1:
            if entry.line == line and entry.sectors & mask == mask:
                entry.used_at = at
                return entry
        return None

    def _fill(self, line: int, mask: int, ready_at: int, at: int) -> None:
        """Into its place if the line has one, else into the place that was used longest ago."""
        places = [entry for entry in self.l1 if entry.line == line]
        entry = places[0] if places else min(self.l1, key=lambda place: place.used_at)
        if entry.line != line:
            entry.line, entry.sectors = line, 0
        entry.sectors |= mask
        entry.ready_at, entry.used_at = ready_at, at


def _promoted(mask: int, promotion: int) -> int:
    """Sectors of the pieces of ``promotion`` bytes that ``mask`` touches."""
    piece = max(1, min(promotion, LINE_BYTES) // SECTOR_BYTES)
    touched = {sector // piece for sector in range(LINE_BYTES // SECTOR_BYTES) if mask >> sector & 1}
    return sum(((1 << piece) - 1) << piece * n for n in touched)
