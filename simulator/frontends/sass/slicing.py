"""Which rows must be executed: the backward slice from addresses, branches, barriers and descriptors.

Everything else is only logged. Liveness is flow sensitive (registers are reused for data and addresses), on sets of value
rows and predicates held as bits of Python integers. Guards of other rows are a weaker demand: they are computed from
integer code, and count as true where that would take floating point or loaded data.

Words of the frame are values like registers: a spilled address needs its own store, not those of spilled data. A store at
a computed place in the frame makes the words that it hits unknown; only a load from there that matters makes the
whole frame matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from simulator.frontends.sass.semantics import codes
from simulator.frontends.sass.semantics.predicate import FILE_SIZE
from simulator.frontends.sass.semantics.records import WORD_BYTES
from simulator.frontends.sass.warp_state import Layout

CHEAP = frozenset({codes.INTEGER, codes.LOGIC, codes.PREDICATES, codes.CROSS_LANE, codes.CONSTANT_LOAD})
STORES = {codes.SHARED_WRITE: "shared", codes.MATRIX_WRITE: "shared", codes.ASYNC_COPY: "shared",
          codes.LOCAL_WRITE: "local"}
LOADS = {codes.SHARED_READ: "shared", codes.SHARED_ATOMIC: "shared", codes.LOCAL_READ: "local"}
SOURCES = ("a", "a_hi", "b", "b_hi", "c", "c_hi")
ADDRESS = SOURCES[:4]
PREDICATE_SOURCES = ("p", "q", "s")
STACK_POINTER = 1
ALWAYS = -2
"""Condition of a demand that holds whatever the predicates are."""

Demand = dict[int, int]
"""Condition -> values (bits) that are needed where it holds."""


@dataclass(frozen=True)
class _Row:
    """Bit sets of one row: what it writes, what its results depend on, what must be known in any case, stored data, its
    guard; ``condition``: under which it executes (ALWAYS, or twice the predicate plus 1 when inverted)."""

    written: int
    read: int
    required: int
    data: int
    guard: int
    condition: int


def _add(demand: Demand, condition: int, values: int) -> None:
    if values:
        demand[condition] = demand.get(condition, 0) | values


def _union(demands: Iterable[Demand]) -> Demand:
    total: Demand = {}
    for demand in demands:
        for condition, values in demand.items():
            total[condition] = total.get(condition, 0) | values
    return total


class Slicer:
    """Chooses ``action`` for every row of a lowered kernel; ``successors[i]``: rows that may follow row i."""

    def __init__(self, rows: np.ndarray, layout: Layout, successors: Sequence[Sequence[int]]):
        self.rows = rows
        self.layout = layout
        self.successors = successors
        self.fields = [dict(zip(rows.dtype.names or (), row, strict=True)) for row in rows.tolist()]
        self.frame = frame_words(self.fields, layout.zero)
        self.sets = [self._row(i, row) for i, row in enumerate(self.fields)]
        self.tracked: set[str] = set()

    def choose_actions(self) -> None:
        """Write the ``action`` field."""
        hard = self._hard_demand()
        soft = self._demand([s.required | s.guard for s in self.sets], lambda i: self._family(i) in CHEAP)
        for i, sets in enumerate(self.sets):
            self.rows["action"][i] = self._action(i, sets, hard[i], soft[i])

    def _action(self, i: int, sets: _Row, hard: int, soft: int) -> int:
        family, verb = self._family(i), self.fields[i]["verb"]
        if family in (codes.CONTROL, codes.ASYNC):
            return codes.EXECUTE
        if self.frame[i] and verb == codes.LOCAL_WRITE:
            return codes.EXECUTE if sets.written & hard else codes.SKIP
        if verb == codes.LOCAL_WRITE and family == codes.MEMORY and any(self.frame):
            return codes.MARK_UNKNOWN
        if family == codes.MEMORY and verb in STORES:
            return codes.EXECUTE if STORES[verb] in self.tracked else codes.SKIP
        if family == codes.MEMORY and verb == codes.SHARED_ATOMIC:
            return codes.EXECUTE if "shared" in self.tracked else codes.MARK_UNKNOWN
        if sets.written & hard:
            return codes.MARK_UNKNOWN if family == codes.OPAQUE else codes.EXECUTE
        if sets.written & soft:
            return codes.EXECUTE if family in CHEAP else codes.MARK_UNKNOWN
        return codes.SKIP

    def _hard_demand(self) -> list[int]:
        """Live-out demand, repeated while it makes more kinds of memory matter."""
        while True:
            roots = [s.required | (s.data if self._stores_tracked(i) else 0) for i, s in enumerate(self.sets)]
            demand = self._demand(roots, lambda i: self._family(i) != codes.OPAQUE)
            found = {
                LOADS[verb]
                for i, verb in enumerate(self.rows["verb"].tolist())
                if self._family(i) == codes.MEMORY and verb in LOADS and not self.frame[i]
                and self.sets[i].written & demand[i]
            }
            if found <= self.tracked:
                return demand
            self.tracked |= found
            if "local" in found:
                self.frame = [range(0)] * len(self.fields)
                self.sets = [self._row(i, row) for i, row in enumerate(self.fields)]

    def _stores_tracked(self, i: int) -> bool:
        verb = self.fields[i]["verb"]
        return self._family(i) == codes.MEMORY and {**STORES, **LOADS}.get(verb, "") in self.tracked

    def _family(self, i: int) -> int:
        return self.fields[i]["family"]

    def _demand(self, roots: list[int], spreads: Callable[[int], bool]) -> list[int]:
        """Demand after each row: liveness, where only rows that produce a demanded value use their sources."""
        n = len(self.sets)
        before: list[Demand] = [{} for _ in range(n)]
        after: list[Demand] = [{} for _ in range(n)]
        spreading = [spreads(i) for i in range(n)]
        changed = True
        while changed:
            changed = False
            for i in range(n - 1, -1, -1):
                after[i] = _union(before[successor] for successor in self.successors[i])
                needed = self._before(self.sets[i], after[i], roots[i], spreading[i])
                if needed != before[i]:
                    before[i], changed = needed, True
        return [self._demanded(sets, demand) for sets, demand in zip(self.sets, after, strict=True)]

    def _demanded(self, sets: _Row, demand: Demand) -> int:
        """Values in demand that a row may provide: not those that are needed only where its guard fails."""
        bits = 0
        for condition, values in demand.items():
            if condition == ALWAYS or condition != sets.condition ^ 1:
                bits |= values
        return bits

    def _before(self, sets: _Row, after: Demand, root: int, spreads: bool) -> Demand:
        """Demand before a row. A guarded result replaces the old value where the guard holds, so that the old value is
        needed only where it fails; demand under a predicate that the row writes becomes unconditional."""
        demanded = sets.written & self._demanded(sets, after)
        kept: Demand = {}
        for condition, values in after.items():
            left = values
            if sets.condition in (ALWAYS, condition):
                left = values & ~sets.written
            elif condition == ALWAYS:
                replaced = values & sets.written
                left = values & ~sets.written
                _add(kept, sets.condition ^ 1, replaced)
            _add(kept, condition, left)
        for condition in [c for c in kept if c != ALWAYS and 1 << (self.layout.zero + (c >> 1)) & sets.written]:
            _add(kept, ALWAYS, kept.pop(condition))
        uses = root | (sets.read if demanded and spreads else 0)
        if uses:
            _add(kept, sets.condition, uses & ~sets.guard)
            _add(kept, ALWAYS, sets.guard)
        return kept

    def _row(self, i: int, row: dict[str, int]) -> _Row:
        family, verb = row["family"], row["verb"]
        written = self._bits(range(row["dest"], row["dest"] + row["n_dest"]))
        written |= self._predicates((row["dest_p"], row["dest_q"]))
        guard = self._predicates((row["guard"],))
        predicates = self._predicates(row[name] for name in PREDICATE_SOURCES)
        read, required, data = self._bits(row[name] for name in SOURCES) | predicates, 0, 0
        if family == codes.PREDICATES:
            selected = self._predicates(k for k in range(FILE_SIZE) if row["x0"] >> k & 1)
            if verb == codes.PREDICATES_TO_REGISTER:
                read |= selected
            elif verb == codes.REGISTER_TO_PREDICATES:
                written |= selected
        elif family == codes.CONTROL:
            required = read | guard
        elif family == codes.MEMORY:
            required = self._bits(row[name] for name in ADDRESS) | predicates | guard
            read, data, required = self._memory(row, required)
            if self.frame[i]:
                words = sum(1 << (self.layout.zero + codes.N_PREDICATES + word) for word in self.frame[i])
                is_load = verb == codes.LOCAL_READ
                read, data, written = (words, 0, written) if is_load else (data, 0, written | words)
        elif family == codes.ASYNC:
            required = read | guard | self._bits(range(row["a"], row["a"] + self._run_length(row)))
        condition = 2 * row["guard"] + (row["guard_invert"] != 0) if guard else ALWAYS
        return _Row(written, read, required, data, guard, condition)

    def _memory(self, row: dict[str, int], required: int) -> tuple[int, int, int]:
        """(sources of the result, stored data, required address) of a memory row."""
        verb = row["verb"]
        both = self._bits((row["c"], row["c_hi"]))
        if verb == codes.ASYNC_COPY:
            return 0, 0, required | both
        if verb == codes.SHARED_ATOMIC:
            return both, both, required
        if verb in STORES and verb != codes.MATRIX_WRITE:
            length = row["x3"] if row["c_hi"] == 0 else 1
            return 0, self._bits(range(row["c"], row["c"] + length)), required
        return 0, 0, required

    def _run_length(self, row: dict[str, int]) -> int:
        verb = row["verb"]
        if verb == codes.MATRIX_MULTIPLY_ASYNC:
            return row["x0"]
        if verb in (codes.TENSOR_LOAD, codes.TENSOR_STORE, codes.TENSOR_PREFETCH):
            return row["x0"] + 2
        return 2 if verb == codes.BULK_COPY else 1

    def _bits(self, indices: Iterable[int]) -> int:
        bits = 0
        for index in indices:
            if index < self.layout.zero:
                bits |= 1 << index
        return bits

    def _predicates(self, indices: Iterable[int]) -> int:
        bits = 0
        for index in indices:
            if index >= 0 and index % codes.FIRST_UNIFORM_PREDICATE != codes.TRUE_PREDICATE:
                bits |= 1 << (self.layout.zero + index)
        return bits


def frame_words(fields: Sequence[dict[str, int]], zero: int) -> list[range]:
    """Words of the frame, from the stack pointer on, that each row reads or writes; empty where the address is more than the
    stack pointer and a constant, and for all rows when the stack pointer moves after the first access."""
    local = [row["family"] == codes.MEMORY and row["verb"] in (codes.LOCAL_READ, codes.LOCAL_WRITE) for row in fields]
    moves = [i for i, row in enumerate(fields) if row["dest"] <= STACK_POINTER < row["dest"] + row["n_dest"]]
    if True in local[: max(moves, default=-1) + 1]:
        return [range(0)] * len(fields)
    return [_words(row, zero) if is_local else range(0) for row, is_local in zip(fields, local, strict=True)]


def _words(row: dict[str, int], zero: int) -> range:
    is_plain = row["a"] == STACK_POINTER and row["a_mod"] == 1 and row["b"] == zero and row["x0"] >= 0
    if not is_plain or (row["x0"] | row["x1"]) % WORD_BYTES:
        return range(0)
    return range(row["x0"] // WORD_BYTES, (row["x0"] + row["x1"]) // WORD_BYTES)


def run_lengths(rows: np.ndarray) -> np.ndarray:
    """Number of rows from each one on that may be logged at once: unguarded, nothing to execute."""
    lengths = np.zeros(len(rows), np.int64)
    busy = np.isin(rows["family"], (codes.CONTROL, codes.MEMORY, codes.ASYNC))
    plain = (rows["action"] == codes.SKIP) & ~busy
    plain &= (rows["guard"] == codes.TRUE_PREDICATE) & (rows["guard_invert"] == 0)
    for i in range(len(rows) - 1, -1, -1):
        if plain[i]:
            lengths[i] = 1 + (lengths[i + 1] if i + 1 < len(rows) else 0)
    return lengths
