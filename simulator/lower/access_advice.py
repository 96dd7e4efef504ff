"""The smallest change of a shared-memory layout that removes an access pattern's bank conflicts, verified.

Two families are searched: *padding* (rows of a tile lie a few bytes further apart) and *XOR swizzles* (some bits of
the byte offset are XORed onto its bank bits: one field of bits, or, where that is not enough, two).  Every proposal is
recomputed with the rules of simulator.lower.shared_access; only one that reaches the pattern's floor is returned.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from simulator.lower.access_kinds import INACTIVE, KIND_RULES, AccessKind, alignment_bytes
from simulator.lower.bank_use import bank_use
from simulator.lower.shared_access import BankRules, shared_cost

MODEST_PADDING = 1 / 8
"""Padding up to this share of a row is preferred to a swizzle: it changes one constant and no index arithmetic."""

BEARABLE_PADDING = 1 / 4
"""Up to this share, padding the pattern's own rows is preferred to a gap after a longer stretch of them."""

HIGHEST_SWIZZLE_BIT = 16
"""Source bits of a swizzle stay below this bit of the byte offset (tiles of up to 64 KiB)."""


@dataclass(frozen=True)
class Suggestion:
    """A layout change: ``family`` "padding" or "swizzle", the formula for a byte offset, and what it achieves.

    ``extra_bytes_per_row`` is what padding costs; a swizzle costs none.
    """

    family: str
    formula: str
    text: str
    wavefronts: int
    extra_bytes_per_row: int


@dataclass(frozen=True)
class Advice:
    """The least invasive suggestion and the best one of the other family, or the reason why there is none."""

    suggestion: Suggestion | None
    alternatives: tuple[Suggestion, ...] = ()
    reason: str | None = None


class _Padding(NamedTuple):
    pitch: int
    pad: int
    is_row: bool

    @property
    def share(self) -> float:
        return self.pad / self.pitch

    def move(self, offsets: np.ndarray) -> np.ndarray:
        moved: np.ndarray = offsets + offsets // self.pitch * self.pad
        return moved


class _Field(NamedTuple):
    """Bits of the byte offset from ``source`` on, XORed onto those from ``target`` on, which lie below them."""

    bits: int
    target: int
    source: int

    @property
    def formula(self) -> str:
        return f"((byte >> {self.source}) & {(1 << self.bits) - 1}) << {self.target}"

    def term(self, offsets: np.ndarray) -> np.ndarray:
        bits: np.ndarray = ((offsets >> self.source) & ((1 << self.bits) - 1)) << self.target
        return bits

    def meets(self, other: _Field) -> bool:
        """Whether both write, or both read, a common bit."""
        writes = self.target < other.target + other.bits and other.target < self.target + self.bits
        reads = self.source < other.source + other.bits and other.source < self.source + self.bits
        return writes or reads


class _Swizzle(NamedTuple):
    fields: tuple[_Field, ...]

    def move(self, offsets: np.ndarray) -> np.ndarray:
        moved = offsets
        for field in self.fields:
            moved = moved ^ field.term(offsets)
        return moved


def advise(kind: AccessKind, width_bytes: int, lane_offsets: np.ndarray, rules: BankRules) -> Advice:
    """Advice for one shared-memory pattern (``lane_offsets`` int bytes [lanes], -1 = inactive, already checked)."""
    offsets = np.asarray(lane_offsets, np.int64)
    use = bank_use(kind, width_bytes, offsets, rules)
    floor = _floor_wavefronts(kind, offsets, use.phases)
    if use.wavefronts == use.ideal_wavefronts:
        return Advice(None, reason="there is no bank conflict to remove")
    if use.wavefronts == floor:
        return Advice(None, reason=_same_address_reason(offsets, use.phases))
    padding = _first_that_reaches(
        floor, kind, width_bytes, offsets, rules, _paddings(kind, width_bytes, offsets, rules)
    )
    fields = _fields(kind, width_bytes, rules)
    single = [_Swizzle((field,)) for field in fields]
    swizzle = _first_that_reaches(floor, kind, width_bytes, offsets, rules, single)
    if swizzle is None:
        swizzle = _first_that_reaches(floor, kind, width_bytes, offsets, rules, _double_swizzles(fields, offsets))
    found = [_describe(change, use.wavefronts, floor) for change in _least_invasive_first(padding, swizzle)]
    if not found:
        return Advice(
            None,
            reason="no padding of a row pitch and no XOR swizzle of one or two bit fields gives every lane of a phase banks "
            "of its own",
        )
    return Advice(found[0], tuple(found[1:]))


def _floor_wavefronts(kind: AccessKind, offsets: np.ndarray, phases: tuple[tuple[int, ...], ...]) -> int:
    """Wavefronts that remain when no two different addresses share a bank."""
    rules = KIND_RULES[kind]
    visits = [_most_on_one_address(offsets, lanes) if rules.repeats_same_address else 1 for lanes in phases]
    return max(sum(visits), 1) * rules.wavefronts_per_visit


def _most_on_one_address(offsets: np.ndarray, lanes: tuple[int, ...]) -> int:
    return Counter(offsets[list(lanes)].tolist()).most_common(1)[0][1]


def _same_address_reason(offsets: np.ndarray, phases: tuple[tuple[int, ...], ...]) -> str:
    most = max(_most_on_one_address(offsets, lanes) for lanes in phases)
    return (
        f"up to {most} lanes update the same address, and the atomic unit serves them one after the other: "
        "no arrangement of addresses changes that (combine the values in registers first)"
    )


def _paddings(kind: AccessKind, width_bytes: int, offsets: np.ndarray, rules: BankRules) -> list[_Padding]:
    """Candidates: the pattern's own row pitch by a bearable amount, then every stride, the smallest share first."""
    unit = alignment_bytes(kind, width_bytes)
    strides = {stride for stride in _strides(offsets) if stride % unit == 0}
    row = _row_pitch(strides, unit)
    pads = range(unit, rules.n_banks * rules.bank_width_bytes + 1, unit)
    candidates = [_Padding(stride, pad, stride == row) for stride in strides - {unit} for pad in pads]
    return sorted(candidates, key=lambda c: (not (c.is_row and c.share <= BEARABLE_PADDING), c.share, c.pad))


def _strides(offsets: np.ndarray) -> set[int]:
    """Distances (bytes) that most lane pairs with numbers one bit apart have in common."""
    strides = set()
    lanes = np.arange(len(offsets))
    for bit in range(len(offsets).bit_length() - 1):
        low = lanes[(lanes >> bit) & 1 == 0]
        high = low | 1 << bit
        both = (offsets[low] != INACTIVE) & (offsets[high] != INACTIVE)
        distances = Counter(np.abs(offsets[high] - offsets[low])[both].tolist())
        for distance, count in distances.most_common(1):
            if distance > 0 and 2 * count > int(both.sum()):
                strides.add(distance)
    return strides


def _row_pitch(strides: set[int], unit: int) -> int | None:
    """The smallest stride beyond the run unit, 2 unit, 4 unit ... with which lanes walk along a row."""
    along = unit
    inside = set()
    while along in strides:
        inside.add(along)
        along *= 2
    return min(strides - inside, default=None)


def _fields(kind: AccessKind, width_bytes: int, rules: BankRules) -> list[_Field]:
    """Candidates, the fewest bits first, then the coarsest blocks, then the nearest source bits."""
    unit = max(alignment_bytes(kind, width_bytes), rules.bank_width_bytes)
    lowest = unit.bit_length() - 1
    top = (rules.n_banks * rules.bank_width_bytes).bit_length() - 1
    candidates = [
        _Field(bits, target, source)
        for bits in range(1, top - lowest + 1)
        for target in range(lowest, top - bits + 1)
        for source in range(target + bits, HIGHEST_SWIZZLE_BIT - bits + 1)
    ]
    return sorted(candidates, key=lambda change: (change.bits, -change.target, change.source))


def _double_swizzles(fields: list[_Field], offsets: np.ndarray) -> list[_Swizzle]:
    """Two fields at once, the fewest bits first; their sources are bits in which the lanes' offsets differ."""
    active = offsets[offsets >= 0]
    varies = int(np.bitwise_or.reduce(active) & ~np.bitwise_and.reduce(active)) if len(active) else 0
    used = [field for field in fields if all(varies >> (field.source + bit) & 1 for bit in range(field.bits))]
    pairs = [_Swizzle((low, high)) for low in used for high in used if low.target < high.target and not low.meets(high)]
    return sorted(pairs, key=lambda pair: sum(field.bits for field in pair.fields))


def _first_that_reaches(
    floor: int,
    kind: AccessKind,
    width_bytes: int,
    offsets: np.ndarray,
    rules: BankRules,
    candidates: list[_Padding] | list[_Swizzle],
) -> _Padding | _Swizzle | None:
    if not candidates:
        return None
    moved = np.stack([np.where(offsets < 0, INACTIVE, change.move(offsets)) for change in candidates])
    reached = np.flatnonzero(shared_cost(kind, width_bytes, moved, rules).wavefronts == floor)
    return candidates[int(reached[0])] if len(reached) else None


def _least_invasive_first(
    padding: _Padding | _Swizzle | None, swizzle: _Padding | _Swizzle | None
) -> list[_Padding | _Swizzle]:
    is_modest = isinstance(padding, _Padding) and padding.share <= MODEST_PADDING
    order = (padding, swizzle) if is_modest else (swizzle, padding)
    return [change for change in order if change is not None]


def _describe(change: _Padding | _Swizzle, before: int, after: int) -> Suggestion:
    if isinstance(change, _Padding):
        pitch = change.pitch + change.pad
        formula = f"byte = (byte // {change.pitch}) * {pitch} + byte % {change.pitch}"
        what = (
            f"pad rows by {change.pad} bytes: {pitch} instead of {change.pitch}"
            if change.is_row
            else f"leave {change.pad} bytes free after every {change.pitch}"
        )
        return Suggestion("padding", formula, f"{what}: {before} -> {_count(after)}", after, change.pad)
    formula = "byte ^= " + " | ".join(field.formula for field in change.fields)
    aligned = 1 << max(field.source + field.bits for field in change.fields)
    return Suggestion(
        "swizzle", formula, f"{formula}, tile aligned to {aligned} bytes: {before} -> {_count(after)}", after, 0
    )


def _count(wavefronts: int) -> str:
    return f"{wavefronts} wavefront{'s' if wavefronts != 1 else ''}"
