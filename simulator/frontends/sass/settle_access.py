"""Accesses whose address, guard or data differ between CTAs.

CTAs leave that would access other lanes, another lane pattern, another shared location or another operand than the
leader; the rest then differ by the origin of a global pattern alone. Data that moves through shared and local memory
carries its difference along.
"""

from __future__ import annotations

import numpy as np

from simulator.frontends.sass.differences import SAME, word_difference
from simulator.frontends.sass.evaluation import read_contents
from simulator.frontends.sass.execution_log import GLOBAL_ORIGIN
from simulator.frontends.sass.semantics import codes
from simulator.frontends.sass.semantics.addresses import SHARED_OFFSET
from simulator.frontends.sass.semantics.records import WORD_BYTES
from simulator.frontends.sass.settle_context import Row, SettleContext, WarpView, lanes_of


class AccessSettler:
    """Settles MEMORY and ASYNC rows of a group."""

    def __init__(self, context: SettleContext):
        self.context = context

    def settle(self, row: Row, warp: WarpView) -> int:
        """Handle by which the (global) address differs, after the CTAs with another access have left."""
        context = self.context
        domain, active, copied = context.guards(row, warp)
        context.split(domain, [active[:, None], copied[:, None]])
        lanes = lanes_of(int(active[0]))
        if len(lanes) == 0:
            return SAME
        if row.family == codes.ASYNC:
            return self._asynchronous(row, warp, lanes)
        if codes.SHARED_READ <= row.verb <= codes.LOCAL_WRITE:
            self._same_registers(warp, [row.a, row.b], lanes)
            if row.action == codes.EXECUTE:
                self._move_data(row, warp, lanes)
            return SAME
        if row.verb == codes.ASYNC_COPY:
            self._same_registers(warp, [row.c, row.c_hi], lanes)
            lanes = lanes_of(int(copied[0]))
        return self._global(row, warp, lanes)

    def _asynchronous(self, row: Row, warp: WarpView, lanes: np.ndarray) -> int:
        if row.verb == codes.BULK_COPY:
            self._same_registers(warp, [row.a, row.a + 1, row.c], lanes[:1])
            return self._address_handle(warp, [[row.b, row.b_hi]], 0, lanes[:1], 1)
        registers = [row.a, row.b, row.c, row.b_hi if row.verb < codes.MBARRIER_INIT else row.c_hi]
        self._same_registers(warp, registers + ([row.a + 1] if row.x3 else []), lanes)
        return SAME

    def _same_registers(self, warp: WarpView, registers: list[int], lanes: np.ndarray) -> None:
        """CTAs leave in which registers differ from the leader's in the given lanes."""
        if any(warp.difference[r] for r in registers):
            self.context.split(*self.context.with_registers(0, [], warp, registers, lanes))

    def _global(self, row: Row, warp: WarpView, lanes: np.ndarray) -> int:
        if len(lanes) == 0:
            return SAME
        pairs = [[row.a, row.a_hi], [row.b, row.b_hi]]
        handle = self._address_handle(warp, pairs, row.x0, lanes, GLOBAL_ORIGIN)
        if row.n_dest:
            self._loaded(row, warp, pairs, lanes)
        return handle

    def _addresses(self, warp: WarpView, pairs: list[list[int]], offset: int) -> tuple[int, np.ndarray]:
        """(domain, addresses [K, L]) of a sum of register pairs and an offset."""
        table = self.context.table
        domain = table.join([table.domain(int(warp.difference[r])) for pair in pairs for r in pair])
        total = np.full((len(table.points(domain)[0]), codes.LANES), offset, np.int64)
        for pair in pairs:
            for position, register in enumerate(pair):
                change = table.at_points(int(warp.difference[register]), domain)
                total += ((warp.values[register].astype(np.int64) + change) & codes.WORD) << (32 * position)
        return domain, total

    def _address_handle(
        self, warp: WarpView, pairs: list[list[int]], offset: int, lanes: np.ndarray, alignment: int
    ) -> int:
        """CTAs leave whose lane pattern differs; handle of the pattern origins of the rest."""
        domain, addresses = self._addresses(warp, pairs, offset)
        used = addresses[:, lanes]
        origin = used.min(axis=1) // alignment * alignment
        before = self.context.table.version
        self.context.split(domain, [used - origin[:, None]])
        if self.context.table.version != before:
            domain, addresses = self._addresses(warp, pairs, offset)
            origin = addresses[:, lanes].min(axis=1) // alignment * alignment
        return self.context.table.add(domain, origin - origin[0])

    def _loaded(self, row: Row, warp: WarpView, pairs: list[list[int]], lanes: np.ndarray) -> None:
        """Differences of loaded registers: known contents at each CTA's addresses, otherwise unknown in all."""
        active, memory = int((1 << lanes).sum()), self.context.state.memory
        if row.action != codes.EXECUTE or len(memory.start) == 0:
            if active & warp.live == warp.live:
                warp.difference[row.dest : row.dest + row.n_dest] = SAME
            return
        while True:
            domain, addresses = self._addresses(warp, pairs, row.x0)
            words = np.zeros((len(addresses), row.n_dest, codes.LANES), np.uint32)
            known = np.zeros(len(addresses), np.int64)
            read_contents(memory, addresses, active, row.x1, row.x2, words, known)
            if (known == known[0]).all():
                break
            self.context.split(domain, [known[:, None]])
        changes = word_difference(words, words[0])
        changes[:, :, lanes_of(~int(known[0]))] = 0
        for k in range(row.n_dest):
            self.context.merge(warp.difference, row.dest + k, domain, changes[:, k], active, warp.live)

    def _move_data(self, row: Row, warp: WarpView, lanes: np.ndarray) -> None:
        base = warp.values[row.a].astype(np.int64) * row.a_mod + warp.values[row.b] + row.x0
        addresses = base[lanes] & codes.WORD
        whole = row.x1 % WORD_BYTES == 0 and not (addresses % WORD_BYTES).any()
        if row.verb in (codes.LOCAL_READ, codes.LOCAL_WRITE):
            words = (addresses - self.context.cta.get("frame_base")) // WORD_BYTES
            if not whole or (words != words[0]).any():
                self.context.alone()
            else:
                self._move_local(row, warp, lanes, int(words[0]))
            return
        words = (addresses & SHARED_OFFSET) // WORD_BYTES
        if not whole or row.verb not in (codes.SHARED_READ, codes.SHARED_WRITE):
            self.context.alone()
        elif row.verb == codes.SHARED_WRITE:
            self._write_shared(row, warp, lanes, words)
        else:
            self._read_shared(row, warp, lanes, words)

    def _move_local(self, row: Row, warp: WarpView, lanes: np.ndarray, word: int) -> None:
        table, words = self.context.table, self.context.state.memory.local_difference[warp.number]
        written, writes = int((1 << lanes).sum()), row.verb == codes.LOCAL_WRITE
        for k in range(row.x3 if writes else row.n_dest):
            register = (row.c if row.c_hi else row.c + k) if writes else row.dest + k
            source = int(warp.difference[register] if writes else words[word + k])
            target, place = (words, word + k) if writes else (warp.difference, register)
            domain = table.domain(source)
            self.context.merge(target, place, domain, table.lanes_at_points(source, domain), written, warp.live)

    def _write_shared(self, row: Row, warp: WarpView, lanes: np.ndarray, words: np.ndarray) -> None:
        table, shared = self.context.table, self.context.state.cta["shared_difference"][0]
        for k in range(row.x3):
            handle = int(warp.difference[row.c if row.c_hi else row.c + k])
            domain = table.domain(handle)
            values = table.lanes_at_points(handle, domain)
            for lane, word in zip(lanes, words, strict=True):
                shared[word + k] = table.add(domain, np.ascontiguousarray(values[:, lane]))

    def _read_shared(self, row: Row, warp: WarpView, lanes: np.ndarray, words: np.ndarray) -> None:
        table, shared = self.context.table, self.context.state.cta["shared_difference"][0]
        for k in range(row.n_dest):
            handles = [int(shared[word + k]) for word in words]
            domain = table.join([table.domain(h) for h in set(handles)])
            change = np.zeros((len(table.points(domain)[0]), codes.LANES), np.int64)
            for lane, handle in zip(lanes, handles, strict=True):
                change[:, lane] = table.at_points(handle, domain)[:, 0]
            written = int((1 << lanes).sum())
            self.context.merge(warp.difference, row.dest + k, domain, change, written, warp.live)
