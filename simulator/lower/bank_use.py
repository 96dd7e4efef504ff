"""Which lane asks which bank, phase by phase: one pattern in full, for pictures, advice and as a plain statement of
the rules of simulator.lower.shared_access (tests hold both to the same answer)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.lower.access_kinds import INACTIVE, KIND_RULES, AccessKind
from simulator.lower.shared_access import BankRules, phase_plan


@dataclass(frozen=True)
class BankUse:
    """One pattern on the banks. ``phases``: lane numbers of each served phase, in order.

    ``touches`` bool [lanes, n_banks]: the lane wants a word of that bank.  ``words`` int64 [n_phases, n_banks]: how
    many words the bank delivers in that phase, which is how many wavefronts it is busy.
    """

    kind: AccessKind
    width_bytes: int
    rules: BankRules
    phases: tuple[tuple[int, ...], ...]
    touches: np.ndarray
    words: np.ndarray

    @property
    def wavefronts(self) -> int:
        per_phase = self.words.max(axis=1, initial=0)
        return max(int(per_phase.sum()), 1) * KIND_RULES[self.kind].wavefronts_per_visit

    @property
    def ideal_wavefronts(self) -> int:
        return max(len(self.phases), 1) * KIND_RULES[self.kind].wavefronts_per_visit

    @property
    def bank_conflicts(self) -> int:
        return (self.wavefronts - self.ideal_wavefronts) // KIND_RULES[self.kind].wavefronts_per_visit

    @property
    def banks_touched(self) -> int:
        """Banks that deliver at least one word over the whole instruction."""
        return int(self.touches.any(axis=0).sum())

    @property
    def lanes_per_bank(self) -> int:
        """The largest number of lanes that want words of one bank, over the whole instruction."""
        return int(self.touches.sum(axis=0).max(initial=0))

    def phase_of(self, lane: int) -> int | None:
        """Number of the phase that serves ``lane``, None for a lane that takes no part."""
        return next((number for number, lanes in enumerate(self.phases) if lane in lanes), None)


def bank_use(kind: AccessKind, width_bytes: int, lane_offsets: np.ndarray, rules: BankRules) -> BankUse:
    """Spread one pattern (int bytes [lanes], -1 = inactive) over the banks."""
    offsets = [int(offset) for offset in lane_offsets]
    plan = phase_plan(kind, width_bytes, (1, len(offsets)), rules)
    order = plan.lane_order[0, : int(plan.n_lanes[0])].tolist()
    span = int(plan.phase_lanes[0])
    if plan.merges[0] and (_pairs_agree(offsets, 1) or _pairs_agree(offsets, 2)):
        span *= 2
    groups = [order[first : first + span] for first in range(0, len(order), span)]
    active = [tuple(lane for lane in group if offsets[lane] != INACTIVE) for group in groups]
    phases = tuple(lanes for lanes in active if lanes)
    words_of_lane = {lane: _words(offsets[lane], int(plan.unit_bytes[0]), rules) for lanes in phases for lane in lanes}
    touches = np.zeros((len(offsets), rules.n_banks), dtype=bool)
    for lane, words in words_of_lane.items():
        touches[lane, [word % rules.n_banks for word in words]] = True
    load = np.zeros((len(phases), rules.n_banks), dtype=np.int64)
    for number, lanes in enumerate(phases):
        wanted = [word for lane in lanes for word in words_of_lane[lane]]
        for word in wanted if plan.repeats[0] else set(wanted):
            load[number, word % rules.n_banks] += 1
    return BankUse(kind, width_bytes, rules, phases, touches, load)


def _words(offset: int, unit_bytes: int, rules: BankRules) -> range:
    first = offset // unit_bytes * unit_bytes // rules.bank_width_bytes
    return range(first, first + unit_bytes // rules.bank_width_bytes)


def _pairs_agree(offsets: list[int], distance: int) -> bool:
    pairs = ((offset, offsets[lane ^ distance]) for lane, offset in enumerate(offsets))
    return all(INACTIVE in pair or pair[0] == pair[1] for pair in pairs)
