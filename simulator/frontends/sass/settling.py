"""Settles what differs between CTAs at one row, where compiled code cannot.

Arithmetic is evaluated for all CTAs. At branches, barriers and accesses the CTAs leave that would take other lanes,
another target or another lane pattern than the leader; the rest then differ by an address alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simulator.frontends.sass.differences import SAME, DifferenceTable
from simulator.frontends.sass.semantics import codes
from simulator.frontends.sass.settle_access import AccessSettler
from simulator.frontends.sass.settle_arithmetic import ArithmeticSettler
from simulator.frontends.sass.settle_context import SOURCE_FIELDS, Row, SettleContext, WarpView, lanes_of
from simulator.frontends.sass.warp_state import CtaState

REGISTER_CONTROL = (codes.BARRIER, codes.BRANCH_INDIRECT, codes.WARP_SYNC, codes.BRANCH_DIVERGENT)


class Settler:
    """Works on the state of one group's leader; ``context.left`` collects the CTAs that go their own way."""

    def __init__(self, rows: np.recarray, fields: Sequence[Row], state: CtaState, views: Sequence[WarpView],
                 table: DifferenceTable):
        self.context = SettleContext(rows, fields, state, views, table)
        self.arithmetic = ArithmeticSettler(self.context)
        self.access = AccessSettler(self.context)

    def settle(self) -> None:
        """Settle the row that the interpreter stopped at; it goes on behind the check."""
        cta, table = self.context.cta, self.context.table
        if cta.get("wanted_operation"):
            table.combine(cta.get("wanted_operation"), cta.get("wanted_x"), cta.get("wanted_y"))
            cta.put("wanted_operation", 0)
            return
        pc = cta.get("attention_row")
        row, warp = self.context.fields[pc], self.context.views[cta.get("attention_warp")]
        if self._refresh(row, warp):
            return
        handle = SAME
        if row.family == codes.CONTROL:
            self._control(row, warp)
        elif row.family in (codes.MEMORY, codes.ASYNC):
            handle = self.access.settle(row, warp)
        else:
            self.arithmetic.settle(pc, warp)
        cta.put("override_row", pc)
        cta.put("override_handle", handle)

    def _refresh(self, row: Row, warp: WarpView) -> bool:
        """Describe the sources' differences anew if CTAs have left since; True when that may settle the row."""
        handles = {int(warp.difference[getattr(row, field)]) for field in SOURCE_FIELDS[:4]} - {SAME}
        return sum(self.context.table.refresh(handle) for handle in handles) > 0

    def _control(self, row: Row, warp: WarpView) -> None:
        """CTAs leave that execute a control row in other lanes, or with other operands."""
        domain, active, taken = self.context.guards(row, warp)
        keys = [active[:, None], taken[:, None]]
        if row.verb in REGISTER_CONTROL:
            lanes = lanes_of(int(active[0]))
            domain, keys = self.context.with_registers(domain, keys, warp, [row.a, row.b], lanes)
        self.context.split(domain, keys)
