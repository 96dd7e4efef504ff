"""Differences between the CTAs of a group that are executed together.

A *difference* says for every CTA by how much a value row (or predicate, or address) departs from the leader's. It is
stored over a *domain*: a numbering of the CTAs such that CTAs with equal numbers have equal differences. A tile row that
1,000 CTAs share has as many values as there are tile rows, whatever the size of the grid.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from simulator.frontends.sass.execution_log import GLOBAL_ORIGIN
from simulator.frontends.sass.semantics.codes import LANES
from simulator.frontends.sass.semantics.linear import (
    KEEPS_ALIGNMENT,
    LANE,
    MASK_SHIFT,
    SAME_IN_LANES,
    SCALE,
    SUM,
    combination_slot,
)
from simulator.frontends.sass.semantics.recollection import evaluation_slot
from simulator.frontends.sass.warp_state import REGISTERS, new_differences

SAME = 0
"""Handle of the empty difference."""
WORD_RANGE = 1 << 32
HALF_RANGE = 1 << 31


@dataclass
class Domain:
    """``codes`` int64 [G]: number of each CTA of the group; ``size``: numbers run from 0 to size - 1."""

    codes: np.ndarray
    size: int
    version: int = -1
    points: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    examples: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))


@dataclass
class _Difference:
    domain: int
    values: np.ndarray
    version: int


class DifferenceTable:
    """Differences of one group. ``members`` int64 [G]: CTA indices, the leader first; ``alive`` bool [G]: CTAs that still
    run what the leader runs. Values are int64 [size] (all lanes alike) or [size, L] over their domain."""

    def __init__(self, members: np.ndarray):
        self.members = members
        self.alive = np.ones(len(members), bool)
        self.version = 0
        self.compiled = new_differences()
        self._n_combinations = self._n_evaluations = 0
        self.domains: list[Domain] = [Domain(np.zeros(len(members), np.int64), 1)]
        self._differences: list[_Difference] = [_Difference(0, np.zeros(1, np.int64), 0)]
        self._by_content: dict[tuple[int, tuple[int, ...], bytes], int] = {}
        self._by_codes: dict[bytes, int] = {}
        self._joined: dict[tuple[int, int, int], int] = {}

    def domain_of_codes(self, codes: np.ndarray) -> int:
        """Domain with the given numbering (any integers); an equal one is reused."""
        _, compact = np.unique(codes, return_inverse=True)
        key = compact.tobytes()
        if key not in self._by_codes:
            self._by_codes[key] = len(self.domains)
            self.domains.append(Domain(compact.astype(np.int64), int(compact.max()) + 1))
        return self._by_codes[key]

    def points(self, domain: int) -> tuple[np.ndarray, np.ndarray]:
        """(numbers that alive CTAs have, position of one such CTA for each), the leader's first."""
        found = self.domains[domain]
        if found.version != self.version:
            alive = np.flatnonzero(self.alive)
            numbers, first = np.unique(found.codes[alive], return_index=True)
            order = np.argsort(first, kind="stable")
            found.points, found.examples, found.version = numbers[order], alive[first[order]], self.version
        return found.points, found.examples

    def join(self, domains: list[int]) -> int:
        """Coarsest domain that tells apart what each of the given ones does."""
        joined = domains[0]
        for other in domains[1:]:
            joined = self._join_two(joined, other)
        return joined

    def _join_two(self, first: int, second: int) -> int:
        if first == second or second == 0:
            return first
        if first == 0:
            return second
        key = (min(first, second), max(first, second), self.version)
        if key not in self._joined:
            a, b = self.domains[first], self.domains[second]
            pairs = a.codes * b.size + b.codes
            count = len(np.unique(pairs[self.alive]))
            if count == len(self.points(first)[0]):
                self._joined[key] = first
            elif count == len(self.points(second)[0]):
                self._joined[key] = second
            else:
                self._joined[key] = self.domain_of_codes(pairs)
        return self._joined[key]

    def domain(self, handle: int) -> int:
        """Domain of a difference."""
        return self._differences[handle].domain

    def at_points(self, handle: int, domain: int) -> np.ndarray:
        """Values at the points of a (joined) domain, int64 [K, L] or [K, 1]."""
        difference = self._differences[handle]
        _, examples = self.points(domain)
        values = difference.values[self.domains[difference.domain].codes[examples]]
        return values if values.ndim == 2 else values[:, None]

    def lanes_at_points(self, handle: int, domain: int) -> np.ndarray:
        """Values at the points of a (joined) domain, int64 [K, L] (read only)."""
        values = self.at_points(handle, domain)
        return np.broadcast_to(values, (len(values), LANES))

    def over(self, joined: int, domain: int, values: np.ndarray) -> np.ndarray:
        """``values`` at the points of ``domain`` as values at the points of a domain that refines it."""
        if joined == domain:
            return values
        points, _ = self.points(domain)
        _, examples = self.points(joined)
        place = np.zeros(self.domains[domain].size, np.int64)
        place[points] = np.arange(len(points))
        return values[place[self.domains[domain].codes[examples]]]

    def per_member(self, handle: int) -> np.ndarray:
        """Value of a difference that is alike in all lanes, for each alive CTA, int64."""
        difference = self._differences[handle]
        values = difference.values if difference.values.ndim == 1 else difference.values[:, 0]
        return np.asarray(values[self.domains[difference.domain].codes[self.alive]])

    def add(self, domain: int, values: np.ndarray) -> int:
        """Handle of a difference with ``values`` [K] or [K, L] at the points of a domain; SAME when all are zero."""
        if not values.any():
            return SAME
        if values.ndim == 2 and (values == values[:, :1]).all():
            values = values[:, 0]
        points, _ = self.points(domain)
        domain, values, points = self._reduced(domain, values, points)
        full = np.zeros((self.domains[domain].size, *values.shape[1:]), np.int64)
        full[points] = values
        key = (domain, full.shape, full.tobytes())
        if key not in self._by_content:
            self._by_content[key] = len(self._differences)
            self._differences.append(_Difference(domain, full, self.version))
            self._describe(len(self._differences) - 1, values)
        return self._by_content[key]

    def _reduced(self, domain: int, values: np.ndarray, points: np.ndarray) -> tuple[int, np.ndarray, np.ndarray]:
        """The same difference over a coarser domain when many points have equal values."""
        if len(points) < 2:
            return domain, values, points
        flat = np.ascontiguousarray(values).view(np.dtype((np.void, values.itemsize * (values.size // len(values)))))
        _, first, inverse = np.unique(flat.ravel(), return_index=True, return_inverse=True)
        if 2 * len(first) > len(points):
            return domain, values, points
        numbering = np.zeros(self.domains[domain].size, np.int64)
        numbering[points] = inverse
        coarser = self.domain_of_codes(numbering[self.domains[domain].codes])
        new_points, examples = self.points(coarser)
        at = np.zeros(self.domains[domain].size, np.int64)
        at[points] = np.arange(len(points))
        return coarser, values[at[self.domains[domain].codes[examples]]], new_points

    def _describe(self, handle: int, values: np.ndarray) -> None:
        """Flags and ends of a difference, for compiled code."""
        record = self.compiled.record
        if handle >= len(record):
            record = np.concatenate([record, np.zeros_like(record)]).view(np.recarray)
            self.compiled = self.compiled._replace(record=record)
        flags = SAME_IN_LANES if values.ndim == 1 else 0
        if not (values % GLOBAL_ORIGIN).any():
            flags |= KEEPS_ALIGNMENT
        entry = record[handle]
        entry.flags, entry.lowest, entry.highest = flags, values.min(), values.max()

    def combine(self, operation: int, x: int, y: int) -> None:
        """Form a combination that compiled code asked for (see ``semantics.linear.combine``)."""
        handle = self._combined(operation, x, y)
        if 2 * self._n_combinations > len(self.compiled.key):
            self.compiled = self.compiled._replace(key=np.zeros_like(self.compiled.key))
            self._n_combinations = 0
        slot = combination_slot(self.compiled.key, operation, x, y)
        self.compiled.key[slot] = operation, x, y
        self.compiled.result[slot] = handle
        self._n_combinations += 1

    def _combined(self, operation: int, x: int, y: int) -> int:
        if operation == LANE:
            domain = self.domain(x)
            return self.add(domain, np.ascontiguousarray(self.lanes_at_points(x, domain)[:, y]))
        if operation == SCALE:
            domain = self.domain(x)
            return self.add(domain, as_word_difference(self.at_points(x, domain) * y))
        domain = self.join([self.domain(x), self.domain(y)])
        if operation == SUM:
            return self.add(domain, as_word_difference(self.at_points(x, domain) + self.at_points(y, domain)))
        mask = (operation >> MASK_SHIFT) >> np.arange(LANES) & 1
        return self.add(domain, np.where(mask, self.lanes_at_points(y, domain), self.lanes_at_points(x, domain)))

    def remember(self, name: tuple[int, int], registers: list[int], predicates: dict[int, int]) -> None:
        """Keep the outcome of an evaluation for compiled code: handles of registers, and of predicates by place."""
        if 2 * self._n_evaluations > len(self.compiled.evaluation):
            self.compiled = self.compiled._replace(evaluation=np.zeros_like(self.compiled.evaluation))
            self._n_evaluations = 0
        slot = evaluation_slot(self.compiled.evaluation, *name)
        self.compiled.evaluation[slot] = name
        self.compiled.outcome[slot, : len(registers)] = registers
        for place, handle in predicates.items():
            self.compiled.outcome[slot, REGISTERS + place] = handle
        self._n_evaluations += 1

    def refresh(self, handle: int) -> bool:
        """Describe a difference anew after CTAs have left; False when it was up to date."""
        difference = self._differences[handle]
        if difference.version == self.version:
            return False
        difference.version = self.version
        points, _ = self.points(difference.domain)
        values = difference.values[points]
        if values.ndim == 2 and (values == values[:, :1]).all():
            values = values[:, 0]
            difference.values = difference.values[:, 0].copy()
        self._describe(handle, values)
        return True

    def split(self, domain: int, keys: np.ndarray) -> list[np.ndarray]:
        """Let the CTAs go whose ``keys`` [K, ...] at the points of a domain differ from the leader's. Returns the groups
        that left, one for each key, as CTA indices."""
        points, _ = self.points(domain)
        flat = np.ascontiguousarray(keys.reshape(len(points), -1))
        void = flat.view(np.dtype((np.void, flat.itemsize * flat.shape[1]))).ravel()
        _, numbers = np.unique(void, return_inverse=True)
        stays = numbers == numbers[0]
        if stays.all():
            return []
        number_of_code = np.full(self.domains[domain].size, -1, np.int64)
        number_of_code[points] = numbers
        of_member = number_of_code[self.domains[domain].codes]
        leaving = self.alive & (of_member != numbers[0])
        groups = [self.members[leaving & (of_member == number)] for number in np.unique(of_member[leaving])]
        self.alive &= ~leaving
        self.version += 1
        return groups


def word_difference(words: np.ndarray, leader: np.ndarray) -> np.ndarray:
    """Two's complement difference of 32-bit words, int64 in [-2^31, 2^31)."""
    return as_word_difference(words.astype(np.int64) - leader.astype(np.int64))


def as_word_difference(change: np.ndarray) -> np.ndarray:
    """The same change modulo 2^32, int64 in [-2^31, 2^31)."""
    return (change + HALF_RANGE) % WORD_RANGE - HALF_RANGE


