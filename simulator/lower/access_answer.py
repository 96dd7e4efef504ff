"""What one warp instruction's lane offsets cost on a chip: the answer behind ``kernelcast access``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from simulator.errors import Unsupported
from simulator.hw.config import HardwareConfig, L1Cache
from simulator.lower.access_advice import Advice, advise
from simulator.lower.access_kinds import KIND_RULES, AccessKind, check_access
from simulator.lower.global_access import global_sectors, ideal_sectors
from simulator.lower.shared_access import BankRules, shared_wavefronts_batch


class AccessPattern(NamedTuple):
    """One question: a kind, bytes per lane (or number of matrices), and lane offsets int64 [lanes], -1 = inactive."""

    kind: AccessKind
    width_bytes: int
    lane_offsets: np.ndarray


@dataclass(frozen=True)
class AccessCost:
    """Bank cost of a shared access (``sectors`` None), or sectors and lines of a global one (the rest None)."""

    wavefronts: int | None = None
    ideal_wavefronts: int | None = None
    bank_conflicts: int | None = None
    sectors: int | None = None
    lines: int | None = None


@dataclass(frozen=True)
class AccessAnswer:
    """Cost of one pattern on the chip ``hw``, the sectors that its bytes would fill side by side, and advice."""

    hw: str
    kind: AccessKind
    width_bytes: int
    cost: AccessCost
    ideal_sectors: int | None
    advice: Advice

    def to_json(self) -> dict[str, Any]:
        """The contract keys; what does not apply to the kind is null."""
        suggestion = self.advice.suggestion
        return {
            "hw": self.hw,
            "kind": KIND_RULES[self.kind].name,
            "width_bytes": self.width_bytes,
            **asdict(self.cost),
            "ideal_sectors": self.ideal_sectors,
            "suggestion": None if suggestion is None else asdict(suggestion),
            "alternatives": [asdict(other) for other in self.advice.alternatives],
            "reason": self.advice.reason,
        }


def bank_rules(chip: HardwareConfig) -> BankRules:
    """Banks of ``chip`` and how it groups lanes; Unsupported if its configuration does not say."""
    shared = chip.shared_memory
    if shared.access is None:
        raise Unsupported(
            f"{chip.name} does not say how it groups the lanes of a shared-memory access: "
            "its configuration lacks the section shared_memory.access"
        )
    return BankRules(
        shared.n_banks,
        shared.bank_width_bytes,
        shared.access.merges_paired_loads,
        shared.access.wide_load_lane_order,
    )


def l1_geometry(chip: HardwareConfig) -> L1Cache:
    """Line and sector size of ``chip``; Unsupported if its configuration does not have them."""
    if chip.l1 is None:
        raise Unsupported(f"{chip.name} has no line and sector sizes: its configuration lacks the section l1")
    return chip.l1


def answer_access(
    kind: AccessKind, width_bytes: int, lane_offsets: Sequence[int] | np.ndarray, chip: HardwareConfig
) -> AccessAnswer:
    """Cost and advice for ``lane_offsets`` (bytes, one per lane of a warp of ``chip``, -1 = inactive).

    Raises UserError for offsets that no such instruction can have, Unsupported where the chip lacks a section.
    """
    offsets = np.asarray(lane_offsets, np.int64)
    check_access(kind, width_bytes, offsets, chip.sm.warp_size)
    cost = access_costs([AccessPattern(kind, width_bytes, offsets)], chip)[0]
    if KIND_RULES[kind].is_shared:
        return AccessAnswer(
            chip.name, kind, width_bytes, cost, None, advise(kind, width_bytes, offsets, bank_rules(chip))
        )
    ideal = ideal_sectors(width_bytes, offsets, l1_geometry(chip).sector_bytes)
    return AccessAnswer(chip.name, kind, width_bytes, cost, ideal, Advice(None, reason=_global_reason(cost, ideal)))


def access_costs(patterns: Sequence[AccessPattern], chip: HardwareConfig) -> list[AccessCost]:
    """Cost of each pattern, in order; the patterns are already checked (``access_kinds.check_access``)."""
    costs = [AccessCost()] * len(patterns)
    shared = [row for row, pattern in enumerate(patterns) if KIND_RULES[pattern.kind].is_shared]
    if shared:
        kinds, widths, offsets = _columns([patterns[row] for row in shared])
        found = shared_wavefronts_batch(kinds, widths, offsets, *bank_rules(chip))
        for row, *values in zip(shared, *(column.tolist() for column in found), strict=True):
            costs[row] = AccessCost(*values)
    others = [row for row, pattern in enumerate(patterns) if not KIND_RULES[pattern.kind].is_shared]
    if others:
        l1 = l1_geometry(chip)
        _, widths, offsets = _columns([patterns[row] for row in others])
        counts = global_sectors(widths, offsets, l1.sector_bytes, l1.line_bytes)
        for row, sectors, lines in zip(others, counts.sectors.tolist(), counts.lines.tolist(), strict=True):
            costs[row] = AccessCost(sectors=sectors, lines=lines)
    return costs


def _columns(patterns: Sequence[AccessPattern]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Kinds [n], widths [n] and lane offsets [n, lanes]."""
    kinds, widths, offsets = zip(*patterns, strict=True)
    return np.array(kinds, np.int64), np.array(widths, np.int64), np.stack(offsets)


def _global_reason(cost: AccessCost, ideal: int) -> str:
    if cost.sectors == ideal:
        return "every sector that moves is needed"
    return (
        f"{cost.sectors} sectors move where {ideal} would hold the bytes: give neighbouring lanes neighbouring "
        "addresses that start on a sector boundary; padding and swizzles act on shared memory only"
    )
