"""Settles what differs between CTAs at one row, where compiled code cannot.

Arithmetic is evaluated at every point of the sources' domain. At branches, barriers and accesses the CTAs leave that
would take other lanes, another target or another lane pattern than the leader; the rest then differ by an address alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from simulator.frontends.sass.differences import SAME, DifferenceTable, word_difference
from simulator.frontends.sass.evaluation import evaluate_row, read_contents, result_unknown
from simulator.frontends.sass.execution_log import GLOBAL_ORIGIN
from simulator.frontends.sass.semantics import codes
from simulator.frontends.sass.semantics.addresses import SHARED_OFFSET
from simulator.frontends.sass.semantics.predicate import FILE_SIZE
from simulator.frontends.sass.semantics.records import WARP, WORD_BYTES, records
from simulator.frontends.sass.warp_state import CtaState

LANES = np.arange(codes.LANES)
SOURCE_FIELDS = ("a", "a_hi", "b", "b_hi", "c", "c_hi")
CHUNK_POINTS = 1 << 15


def lanes_of(mask: int) -> np.ndarray:
    """Lane numbers of a mask."""
    return np.flatnonzero((mask >> LANES) & 1)


class Settler:
    """Works on the state of one group's leader. ``left``: groups of CTA indices that went their own way."""

    def __init__(self, rows: np.recarray, state: CtaState, table: DifferenceTable):
        self.rows = rows
        self.state = state
        self.table = table
        self.left: list[np.ndarray] = []
        self.bench = records(WARP, 1)
        self._memo: dict[tuple[Any, ...], tuple[list[int], list[int]]] = {}

    def settle(self) -> None:
        """Settle the row that the interpreter stopped at; it goes on behind the check."""
        cta = self.state.cta[0]
        number, pc = int(cta.attention_warp), int(cta.attention_row)
        row, warp = self.rows[pc], self.state.warps[number]
        if self._refresh(row, warp):
            return
        cta.override_row, cta.override_handle = pc, SAME
        if row.family == codes.CONTROL:
            self._control(row, warp)
        elif row.family in (codes.MEMORY, codes.ASYNC):
            cta.override_handle = self._access(row, warp)
        else:
            self._arithmetic(pc, number)

    def _refresh(self, row: Any, warp: Any) -> bool:
        """Describe the sources' differences anew if CTAs have left since; True when that may settle the row."""
        handles = {int(warp.difference[getattr(row, field)]) for field in SOURCE_FIELDS[:4]}
        return any([self.table.refresh(handle) for handle in handles if handle])

    # Arithmetic

    def _arithmetic(self, pc: int, number: int) -> None:
        row, warp = self.rows[pc], self.state.warps[number]
        path, live = int(warp.mask), codes.FULL & ~int(warp.exited)
        sources, masks = self._sources(row, warp, path, live)
        key = self._memo_key(pc, row, warp, path, sources, masks)
        if key not in self._memo:
            self._memo[key] = self._evaluate(pc, number, sources, masks)
        registers, predicates = self._memo[key]
        for k, handle in enumerate(registers):
            warp.difference[row.dest + k] = handle
        for target, handle in zip(self._predicate_results(row), predicates, strict=True):
            warp.predicate_difference[target] = handle

    def _sources(self, row: Any, warp: Any, path: int, live: int) -> tuple[list[int], list[int]]:
        """Value rows and predicates that the results depend on and that differ."""
        whole = row.is_uniform or (path & live == live and row.guard == codes.TRUE_PREDICATE)
        registers = [int(getattr(row, field)) for field in SOURCE_FIELDS]
        masks = [int(row.guard), int(row.p), int(row.q), int(row.s)]
        if not whole or row.guard != codes.TRUE_PREDICATE:
            registers += [int(row.dest) + k for k in range(row.n_dest)]
            masks += self._predicate_results(row)
        if row.family == codes.PREDICATES and row.verb == codes.PREDICATES_TO_REGISTER:
            masks += [k for k in range(FILE_SIZE) if int(row.x0) >> k & 1]
        return (
            sorted({r for r in registers if warp.difference[r]}),
            sorted({m for m in masks if warp.predicate_difference[m]}),
        )

    def _predicate_results(self, row: Any) -> list[int]:
        if row.family == codes.PREDICATES and row.verb == codes.REGISTER_TO_PREDICATES:
            return [k for k in range(FILE_SIZE) if int(row.x0) >> k & 1]
        return [int(target) for target in (row.dest_p, row.dest_q) if target >= 0]

    def _memo_key(self, pc: int, row: Any, warp: Any, path: int, sources: list[int], masks: list[int]) -> tuple[Any, ...]:
        rows = [int(getattr(row, field)) for field in SOURCE_FIELDS] + [int(row.dest) + k for k in range(row.n_dest)]
        return (
            pc, path, self.table.version, int(warp.exited),
            tuple(int(warp.difference[r]) for r in sources), tuple(int(warp.predicate_difference[m]) for m in masks),
            warp.values[rows].tobytes(), warp.unknown[rows].tobytes(), warp.predicate.tobytes(),
        )

    def _evaluate(self, pc: int, number: int, sources: list[int], masks: list[int]) -> tuple[list[int], list[int]]:
        """Handles of the results: registers, then predicates."""
        row, warp, table = self.rows[pc], self.state.warps[number], self.table
        path, live = int(warp.mask), codes.FULL & ~int(warp.exited)
        register_handles = [int(warp.difference[r]) for r in sources]
        mask_handles = [int(warp.predicate_difference[m]) for m in masks]
        domain = table.join([table.domain(h) for h in register_handles + mask_handles] or [0])
        count = len(table.points(domain)[0])
        words = np.zeros((count, int(row.n_dest), codes.LANES), np.uint32)
        results = np.zeros((count, codes.N_PREDICATES), np.int64)
        values = [table.at_points(h, domain) for h in register_handles]
        flips = [table.at_points(h, domain)[:, 0] for h in mask_handles]
        for start in range(0, count, CHUNK_POINTS):
            part = slice(start, start + CHUNK_POINTS)
            n_points = len(words[part])
            shape = (n_points, codes.LANES)
            stacked = np.array([np.broadcast_to(v[part], shape) for v in values], np.int64).reshape(-1, *shape)
            evaluate_row(
                self.rows, pc, self.state.cta, self.state.warps[number : number + 1], self.bench,
                np.array(sources, np.int64), stacked, np.array(masks, np.int64),
                np.array([f[part] for f in flips], np.int64).reshape(-1, n_points), path, words[part], results[part],
            )
        guard = int(warp.predicate[row.guard]) ^ int(row.guard_invert)
        unknown = int(result_unknown(self.rows, pc, self.state.warps, number, path & guard))
        registers = [self._add_words(domain, words[:, k], unknown, live) for k in range(row.n_dest)]
        changed = (results ^ results[0]) & live & ~unknown
        return registers, [table.add(domain, changed[:, target]) for target in self._predicate_results(row)]

    def _add_words(self, domain: int, words: np.ndarray, unknown: int, live: int) -> int:
        """Difference of result words [K, L] to the leader's (point 0). Lanes without a meaning follow a lane with one."""
        change = word_difference(words, words[0])
        meaningful = lanes_of(live & ~unknown)
        if len(meaningful) == 0:
            return SAME
        idle = lanes_of(~(live & ~unknown))
        change[:, idle] = change[:, meaningful[:1]]
        return self.table.add(domain, change)

    # Control

    def _control(self, row: Any, warp: Any) -> None:
        domain, guard, operand = self._guards(row, warp)
        path = int(warp.mask)
        active = path & (guard ^ int(row.guard_invert))
        keys = [active[:, None], (active & (operand ^ int(row.p_invert)))[:, None]]
        if row.verb in (codes.BARRIER, codes.BRANCH_INDIRECT, codes.WARP_SYNC, codes.BRANCH_DIVERGENT):
            domain, columns = self._with_registers(domain, keys, warp, [int(row.a), int(row.b)], lanes_of(int(active[0])))
            keys = columns
        self._split(domain, keys)

    def _guards(self, row: Any, warp: Any) -> tuple[int, np.ndarray, np.ndarray]:
        """(domain, guard masks [K], masks of predicate operand p [K]) over the alive CTAs, before inversion."""
        table = self.table
        handles = [int(warp.predicate_difference[m]) for m in (row.guard, row.p)]
        domain = table.join([table.domain(h) for h in handles])
        guard, operand = (
            int(warp.predicate[m]) ^ table.at_points(h, domain)[:, 0] for m, h in zip((row.guard, row.p), handles, strict=True)
        )
        return domain, guard, operand

    def _with_registers(
        self, domain: int, keys: list[np.ndarray], warp: Any, registers: list[int], lanes: np.ndarray
    ) -> tuple[int, list[np.ndarray]]:
        """Extend split keys by the differences of registers in some lanes, over a common domain."""
        table = self.table
        handles = [int(warp.difference[r]) for r in registers]
        joined = table.join([domain, *(table.domain(h) for h in handles)])
        _, examples = table.points(joined)
        points, _ = table.points(domain)
        place = np.zeros(table.domains[domain].size, np.int64)
        place[points] = np.arange(len(points))
        columns = [key[place[table.domains[domain].codes[examples]]] for key in keys]
        for handle in handles:
            values = np.broadcast_to(table.at_points(handle, joined), (len(examples), codes.LANES))
            columns.append(values[:, lanes])
        return joined, columns

    def _split(self, domain: int, keys: list[np.ndarray]) -> None:
        self.left += self.table.split(domain, np.concatenate([key.astype(np.int64) for key in keys], axis=1))

    def alone(self) -> None:
        """Every other CTA leaves by itself: what differs here is not followed."""
        everyone = self.table.domain_of_codes(np.arange(len(self.table.members)))
        self._split(everyone, [np.arange(len(self.table.points(everyone)[0]))[:, None]])

    # Accesses

    def _access(self, row: Any, warp: Any) -> int:
        """Handle by which the (global) address differs, after the CTAs with another pattern have left."""
        domain, guard, operand = self._guards(row, warp)
        active = int(warp.mask) & (guard ^ int(row.guard_invert))
        self._split(domain, [active[:, None], (active & (operand ^ int(row.p_invert)))[:, None]])
        lanes = lanes_of(int(active[0]))
        if len(lanes) == 0:
            return SAME
        if row.family == codes.ASYNC:
            return self._async_access(row, warp, lanes)
        if codes.SHARED_READ <= row.verb <= codes.LOCAL_WRITE:
            self._same_registers(warp, [int(row.a), int(row.b)], lanes)
            if row.action == codes.EXECUTE:
                self._move_data(row, warp, lanes)
            return SAME
        if row.verb == codes.ASYNC_COPY:
            self._same_registers(warp, [int(row.c), int(row.c_hi)], lanes)
            lanes = lanes_of(int(active[0]) & (int(operand[0]) ^ int(row.p_invert)))
        return self._global_access(row, warp, lanes)

    def _async_access(self, row: Any, warp: Any, lanes: np.ndarray) -> int:
        if row.verb == codes.BULK_COPY:
            self._same_registers(warp, [int(row.a), int(row.a) + 1, int(row.c)], lanes[:1])
            return self._address_handle(warp, [int(row.b), int(row.b_hi)], [], 0, lanes[:1])
        registers = [int(row.a), int(row.b), int(row.c), int(row.b_hi) if row.verb < codes.MBARRIER_INIT else int(row.c_hi)]
        if row.x3:
            registers.append(int(row.a) + 1)
        self._same_registers(warp, registers, lanes)
        return SAME

    def _same_registers(self, warp: Any, registers: list[int], lanes: np.ndarray) -> None:
        """CTAs leave in which registers differ from the leader's in the given lanes."""
        if any(warp.difference[r] for r in registers):
            domain, columns = self._with_registers(0, [], warp, registers, lanes)
            self._split(domain, columns)

    def _global_access(self, row: Any, warp: Any, lanes: np.ndarray) -> int:
        if len(lanes) == 0:
            return SAME
        handle = self._address_handle(
            warp, [int(row.a), int(row.a_hi)], [int(row.b), int(row.b_hi)], int(row.x0), lanes, GLOBAL_ORIGIN
        )
        if row.n_dest:
            self._loaded(row, warp, lanes)
        return handle

    def _addresses(
        self, warp: Any, pairs: list[list[int]], offset: int
    ) -> tuple[int, np.ndarray]:
        """(domain, addresses [K, L]) of a sum of register pairs and an offset."""
        table = self.table
        handles = [[int(warp.difference[r]) for r in pair] for pair in pairs]
        domain = table.join([table.domain(h) for pair in handles for h in pair] or [0])
        total = np.full((len(table.points(domain)[0]), codes.LANES), offset, np.int64)
        for pair, pair_handles in zip(pairs, handles, strict=True):
            for position, (register, handle) in enumerate(zip(pair, pair_handles, strict=True)):
                words = (warp.values[register].astype(np.int64) + table.at_points(handle, domain)) & codes.WORD
                total += words << (32 * position)
        return domain, total

    def _address_handle(
        self, warp: Any, first: list[int], second: list[int], offset: int, lanes: np.ndarray, alignment: int = 1
    ) -> int:
        """CTAs leave whose lane pattern differs; handle of the pattern origins of the rest."""
        pairs = [first, second] if second else [first]
        domain, addresses = self._addresses(warp, pairs, offset)
        used = addresses[:, lanes]
        origin = used.min(axis=1) // alignment * alignment
        self._split(domain, [used - origin[:, None]])
        domain, addresses = self._addresses(warp, pairs, offset)
        origin = addresses[:, lanes].min(axis=1) // alignment * alignment
        return self.table.add(domain, origin - origin[0])

    def _loaded(self, row: Any, warp: Any, lanes: np.ndarray) -> None:
        """Differences of loaded registers: known contents at each CTA's addresses, otherwise unknown in all."""
        active, live = int((1 << lanes).sum()), codes.FULL & ~int(warp.exited)
        pairs = [[int(row.a), int(row.a_hi)], [int(row.b), int(row.b_hi)]]
        if row.action != codes.EXECUTE or len(self.state.memory.start) == 0:
            if active & live == live:
                warp.difference[row.dest : row.dest + row.n_dest] = SAME
            return
        while True:
            domain, addresses = self._addresses(warp, pairs, int(row.x0))
            words = np.zeros((len(addresses), int(row.n_dest), codes.LANES), np.uint32)
            known = np.zeros(len(addresses), np.int64)
            read_contents(self.state.memory, addresses, active, int(row.x1), int(row.x2), words, known)
            if (known == known[0]).all():
                break
            self._split(domain, [known[:, None]])
        changes = word_difference(words, words[0])
        changes[:, :, lanes_of(codes.FULL & ~int(known[0]))] = 0
        for k in range(int(row.n_dest)):
            self._merge(warp.difference, int(row.dest) + k, domain, changes[:, k], active, live)

    def _merge(
        self, handles: np.ndarray, place: int, domain: int, change: np.ndarray, written: int, live: int
    ) -> None:
        """Set a difference in the written lanes; live lanes that are not written keep theirs."""
        table = self.table
        old = int(handles[place])
        joined = table.join([domain, table.domain(old)])
        _, examples = table.points(joined)
        points, _ = table.points(domain)
        at = np.zeros(table.domains[domain].size, np.int64)
        at[points] = np.arange(len(points))
        full = np.broadcast_to(change, (len(points), codes.LANES))[at[table.domains[domain].codes[examples]]].copy()
        kept = lanes_of(live & ~written)
        full[:, kept] = np.broadcast_to(table.at_points(old, joined), full.shape)[:, kept]
        if live & written:
            full[:, lanes_of(~live)] = full[:, lanes_of(live & written)[:1]]
        handles[place] = table.add(joined, full)

    # Data that moves through shared and local memory

    def _move_data(self, row: Any, warp: Any, lanes: np.ndarray) -> None:
        base = warp.values[row.a].astype(np.int64) * int(row.a_mod) + warp.values[row.b] + int(row.x0)
        addresses = base[lanes] & codes.WORD
        whole = row.x1 % WORD_BYTES == 0 and not (addresses % WORD_BYTES).any()
        if row.verb in (codes.LOCAL_READ, codes.LOCAL_WRITE):
            words = (addresses - int(self.state.cta[0].frame_base)) // WORD_BYTES
            if not whole or (words != words[0]).any():
                self.alone()
                return
            self._move_local(row, warp, lanes, int(words[0]))
            return
        words = (addresses & SHARED_OFFSET) // WORD_BYTES
        if not whole or row.verb not in (codes.SHARED_READ, codes.SHARED_WRITE):
            self.alone()
        elif row.verb == codes.SHARED_WRITE:
            self._write_shared(row, warp, lanes, words)
        else:
            self._read_shared(row, warp, lanes, words)

    def _move_local(self, row: Any, warp: Any, lanes: np.ndarray, word: int) -> None:
        written, live = int((1 << lanes).sum()), codes.FULL & ~int(warp.exited)
        words = self.state.memory.local_difference[warp.number]
        writes = row.verb == codes.LOCAL_WRITE
        for k in range(int(row.x3 if writes else row.n_dest)):
            register = int(row.c if row.c_hi else row.c + k) if writes else int(row.dest) + k
            source = int(warp.difference[register] if writes else words[word + k])
            target, place = (words, word + k) if writes else (warp.difference, register)
            domain = self.table.domain(source)
            self._merge(target, place, domain, self.table.at_points(source, domain), written, live)

    def _write_shared(self, row: Any, warp: Any, lanes: np.ndarray, words: np.ndarray) -> None:
        shared = self.state.cta[0].shared_difference
        for k in range(int(row.x3)):
            handle = int(warp.difference[row.c if row.c_hi else row.c + k])
            domain = self.table.domain(handle)
            values = np.broadcast_to(self.table.at_points(handle, domain), (len(self.table.points(domain)[0]), codes.LANES))
            for lane, word in zip(lanes, words, strict=True):
                shared[word + k] = self.table.add(domain, np.ascontiguousarray(values[:, lane]))

    def _read_shared(self, row: Any, warp: Any, lanes: np.ndarray, words: np.ndarray) -> None:
        table, shared = self.table, self.state.cta[0].shared_difference
        written, live = int((1 << lanes).sum()), codes.FULL & ~int(warp.exited)
        for k in range(int(row.n_dest)):
            handles = [int(shared[word + k]) for word in words]
            domain = table.join([table.domain(h) for h in set(handles)])
            change = np.zeros((len(table.points(domain)[0]), codes.LANES), np.int64)
            for lane, handle in zip(lanes, handles, strict=True):
                change[:, lane] = table.at_points(handle, domain)[:, 0]
            self._merge(warp.difference, int(row.dest) + k, domain, change, written, live)
