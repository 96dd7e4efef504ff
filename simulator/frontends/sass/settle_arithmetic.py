"""Results of an arithmetic row that differ between CTAs: the row is evaluated at every point of the sources' domain."""

from __future__ import annotations

import numpy as np

from simulator.frontends.sass.differences import SAME, word_difference
from simulator.frontends.sass.evaluation import evaluate_row, result_unknown
from simulator.frontends.sass.semantics import codes
from simulator.frontends.sass.semantics.compiled import EntryPoint
from simulator.frontends.sass.semantics.predicate import FILE_SIZE
from simulator.frontends.sass.semantics.records import WARP, records
from simulator.frontends.sass.semantics.units import units
from simulator.frontends.sass.settle_context import SOURCE_FIELDS, Row, SettleContext, WarpView, lanes_of

CHUNK_POINTS = 1 << 15
_evaluate_row, _result_unknown = EntryPoint(evaluate_row), EntryPoint(result_unknown)


class ArithmeticSettler:
    """Evaluates rows for a group; compiled code remembers the outcome for other warps and later iterations."""

    def __init__(self, context: SettleContext):
        self.context = context
        self.bench = records(WARP, 1)

    def settle(self, pc: int, warp: WarpView) -> None:
        """Write the differences of the row's results into the leader's warp."""
        row, name = self.context.fields[pc], self.context.state.cta["evaluation"][0]
        registers, predicates = self._evaluate(pc, row, warp, *self._sources(row, warp))
        warp.difference[row.dest : row.dest + row.n_dest] = registers
        warp.predicate_difference[predicate_results(row)] = predicates
        if name.any():
            places = [k for k, target in enumerate((row.dest_p, row.dest_q)) if target >= 0]
            self.context.table.remember((int(name[0]), int(name[1])), registers, dict(zip(places, predicates, strict=True)))
            name[:] = 0

    def _sources(self, row: Row, warp: WarpView) -> tuple[list[int], list[int]]:
        """Value rows and predicates that the results depend on and that differ."""
        guarded = row.guard != codes.TRUE_PREDICATE
        whole = row.is_uniform or warp.path & warp.live == warp.live
        registers = [getattr(row, field) for field in SOURCE_FIELDS]
        masks = [row.guard, row.p, row.q, row.s]
        if guarded or not whole:
            registers += range(row.dest, row.dest + row.n_dest)
            masks += predicate_results(row)
        if row.family == codes.PREDICATES and row.verb == codes.PREDICATES_TO_REGISTER:
            masks += [k for k in range(FILE_SIZE) if row.x0 >> k & 1]
        return (
            sorted({r for r in registers if warp.difference[r]}),
            sorted({m for m in masks if warp.predicate_difference[m]}),
        )

    def _evaluate(
        self, pc: int, row: Row, warp: WarpView, sources: list[int], masks: list[int]
    ) -> tuple[list[int], list[int]]:
        """Handles of the results: registers, then predicates."""
        table, state = self.context.table, self.context.state
        register_handles = [int(warp.difference[r]) for r in sources]
        mask_handles = [int(warp.predicate_difference[m]) for m in masks]
        domain = table.join([table.domain(h) for h in register_handles + mask_handles] or [0])
        count = len(table.points(domain)[0])
        words = np.zeros((count, row.n_dest, codes.LANES), np.uint32)
        results = np.zeros((count, codes.N_PREDICATES), np.int64)
        changes = [table.lanes_at_points(h, domain) for h in register_handles]
        flips = [table.at_points(h, domain)[:, 0] for h in mask_handles]
        for start in range(0, count, CHUNK_POINTS):
            part = slice(start, start + CHUNK_POINTS)
            n_points = len(words[part])
            _evaluate_row(
                units().compute, self.context.rows, pc, state.cta, warp.record, self.bench, np.array(sources, np.int64),
                np.array([change[part] for change in changes], np.int64).reshape(-1, n_points, codes.LANES),
                np.array(masks, np.int64), np.array([flip[part] for flip in flips], np.int64).reshape(-1, n_points),
                warp.path, words[part], results[part],
            )
        guard = int(warp.predicate[row.guard]) ^ row.guard_invert
        unknown = int(_result_unknown(self.context.rows, pc, state.warps, warp.number, warp.path & guard))
        meaningful = warp.live & ~unknown
        registers = [self._add_words(domain, words[:, k], meaningful) for k in range(row.n_dest)]
        changed = (results ^ results[0]) & meaningful
        return registers, [table.add(domain, changed[:, target]) for target in predicate_results(row)]

    def _add_words(self, domain: int, words: np.ndarray, meaningful: int) -> int:
        """Difference of words [K, L] to the leader's (point 0). Lanes without a meaning follow a lane with one."""
        if meaningful == 0:
            return SAME
        change = word_difference(words, words[0])
        if meaningful != codes.FULL:
            change[:, lanes_of(~meaningful)] = change[:, lanes_of(meaningful)[:1]]
        return self.context.table.add(domain, change)


def predicate_results(row: Row) -> list[int]:
    """Predicates that a row writes."""
    if row.family == codes.PREDICATES and row.verb == codes.REGISTER_TO_PREDICATES:
        return [k for k in range(FILE_SIZE) if row.x0 >> k & 1]
    return [target for target in (row.dest_p, row.dest_q) if target >= 0]
