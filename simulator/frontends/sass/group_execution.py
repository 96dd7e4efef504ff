"""A group of CTAs executed together: the leader in full, the others by their differences to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from simulator.errors import Unsupported, UserError
from simulator.frontends.sass.differences import SAME, DifferenceTable
from simulator.frontends.sass.execution_log import (
    Log,
    grow_entries,
    grow_events,
    grow_patterns,
    new_log,
    warp_entries,
)
from simulator.frontends.sass.executor import run_cta
from simulator.frontends.sass.launch import BoundLaunch
from simulator.frontends.sass.memory_image import BufferImage, new_memory
from simulator.frontends.sass.micro_ops import LoweredKernel
from simulator.frontends.sass.one_by_one import compared, is_cheaper
from simulator.frontends.sass.operands import SassKernel
from simulator.frontends.sass.semantics.compiled import EntryPoint
from simulator.frontends.sass.semantics.units import units
from simulator.frontends.sass.settle_context import WarpView
from simulator.frontends.sass.settling import Settler
from simulator.frontends.sass.special_registers import SpecialRegisters, cluster_ranks, lane_masks
from simulator.frontends.sass.warp_state import (
    AT_CTA_BARRIER,
    BAD_ADDRESS,
    BAD_TARGET,
    COMPLETE,
    DEADLOCK,
    DIFFERS,
    EVENTS_FULL,
    LIMIT,
    LOG_FULL,
    PATTERNS_FULL,
    TRAPPED,
    UNKNOWN_ADDRESS,
    UNKNOWN_BRANCH,
    UNKNOWN_OPERAND,
    new_state,
    reset_state,
)

_run_cta = EntryPoint(run_cta)


@dataclass(frozen=True)
class ClassExecution:
    """What the CTAs of one class execute. ``members`` int64 [n]: their indices, the leader first; ``entries``: packed log
    entries of each warp; ``events``: the leader's EVENT records; ``differences``: handle -> int64 [n], what to add to the
    leader's address or coordinate in each member."""

    members: np.ndarray
    entries: list[np.ndarray]
    events: np.recarray
    differences: dict[int, np.ndarray]

    @property
    def n_instructions(self) -> int:
        """Warp instructions of one CTA."""
        return sum(len(entries) for entries in self.entries)


class GroupExecutor:
    """Runs groups of CTAs of one launch. ``limit``: warp instructions of a CTA at most."""

    def __init__(
        self, kernel: SassKernel, bound: BoundLaunch, lowered: LoweredKernel, contents: list[BufferImage], limit: int
    ):
        self.kernel = kernel
        self.bound = bound
        self.lowered = lowered
        self.special = SpecialRegisters(lowered.special_names, bound)
        n_warps = bound.launch.n_warps
        self.state = new_state(n_warps, new_memory(n_warps, lowered.frame_bytes, contents))
        lowered.install(self.state, shared_window_bytes(kernel, bound))
        self.state.cta[0].limit = limit
        self.views = [WarpView(self.state.warps, number) for number in range(n_warps)]
        self.log: Log = new_log()

    def run(self, members: np.ndarray) -> tuple[list[ClassExecution], list[np.ndarray]]:
        """Execute a group. Returns the classes that it found, and the groups that are still to be executed. UserError or
        Unsupported, with the instruction's address, when it cannot go on."""
        found = self._follow(members, may_give_up=True)
        if found is None:
            classes = compared(members, self.lowered.rows, self._alone())
            if classes is not None:
                return [ClassExecution(np.array(c.members), c.entries, c.events, c.differences()) for c in classes], []
            found = self._follow(members)
        assert found is not None
        return [found[0]], found[1]

    def _alone(self) -> Callable[[int], tuple[list[np.ndarray], np.recarray]]:
        """Executes a CTA without the others; each finds the memory that the group found."""
        overwritten = self.state.memory.overwritten
        before = overwritten.copy()

        def execute(member: int) -> tuple[list[np.ndarray], np.recarray]:
            overwritten[:] = before
            found = self._follow(np.array([member]))
            assert found is not None
            return found[0].entries, found[0].events

        return execute

    def _follow(
        self, members: np.ndarray, may_give_up: bool = False
    ) -> tuple[ClassExecution, list[np.ndarray]] | None:
        """Execute the first CTA of a group and follow the others: (class of those that did the same, groups that did not).
        None when it gave up, because executing each one is cheaper."""
        table = DifferenceTable(members)
        overwritten, n_settled = self.state.memory.overwritten.copy(), 0
        self._reset(members, table)
        settler = Settler(self.lowered.rows, self.lowered.fields, self.state, self.views, table)
        cta = self.state.cta[0]
        while True:
            reason = _run_cta(
                units(), self.lowered.rows, self.state.cta, self.state.warps, self.state.memory, self.log, table.compiled
            )
            if reason == COMPLETE:
                break
            if reason == DIFFERS:
                settler.settle()
                n_settled += 1
                if may_give_up and is_cheaper(n_settled, len(members), int(cta.n_logged)):
                    self.state.memory.overwritten[:] = overwritten
                    return None
            elif reason == LOG_FULL:
                self.log = grow_entries(self.log)
            elif reason == EVENTS_FULL:
                self.log = grow_events(self.log)
            elif reason == PATTERNS_FULL:
                self.log = grow_patterns(self.log, int(cta.n_patterns))
            else:
                self._fail(int(reason), int(members[0]))
            if cta.group_version != table.version:
                cta.tracks, cta.group_version = int(table.alive.sum() > 1), table.version
        return self._result(table), settler.context.left

    def _reset(self, members: np.ndarray, table: DifferenceTable) -> None:
        names = self.special.names
        differences = np.zeros(len(names), np.int64)
        for position in range(len(names)):
            values = self.special.per_cta(position, members)
            if values is not None:
                domain = table.domain_of_codes(values)
                _, examples = table.points(domain)
                differences[position] = table.add(domain, values[examples] - values[0])
        leader = int(members[0])
        reset_state(
            self.state,
            self.lowered.layout,
            self.special.rows(leader),
            self.special.unknown(),
            differences,
            lane_masks(self.bound.launch),
            int(cluster_ranks(self.bound.launch, leader)),
        )
        cta = self.state.cta[0]
        cta.tracks, cta.group_version = int(len(members) > 1), 0
        cta.evaluation[:] = cta.wanted_operation = 0
        cta.n_logged = cta.n_segments = cta.n_events = 0

    def _result(self, table: DifferenceTable) -> ClassExecution:
        cta = self.state.cta[0]
        events = self.log.events[: cta.n_events].copy().view(np.recarray)
        handles = np.unique(np.concatenate([events["difference"], events["coordinate_difference"].ravel()]))
        return ClassExecution(
            members=table.members[table.alive],
            entries=warp_entries(self.log, int(cta.n_segments), self.bound.launch.n_warps),
            events=events,
            differences={int(h): table.per_member(int(h)) for h in handles if h != SAME},
        )

    def _fail(self, reason: int, leader: int) -> None:
        """Raise the error for a reason that ends the execution."""
        cta = self.state.cta[0]
        where = f"CTA {leader}, warp {int(cta.attention_warp)}"
        if reason == DEADLOCK:
            raise UserError(f"kernel '{self.kernel.name}', CTA {leader}: deadlock: {self._waiting()}")
        instruction = self.kernel.instructions[int(cta.attention_row)]
        place = f"kernel '{self.kernel.name}', address {instruction.address:#x} ({instruction.text}), {where}"
        if reason == LIMIT:
            raise UserError(f"{place}: more than {int(cta.limit):,} warp instructions in one CTA; is this loop endless?")
        if reason == TRAPPED:
            cause = self.lowered.opaque.get(int(cta.attention_row), "the kernel stops at a trap")
            raise Unsupported(f"{place}: {cause}")
        raise Unsupported(f"{place}: {_CAUSES[reason]}{self._opaque_hint()}")

    def _waiting(self) -> str:
        waits: dict[int, list[int]] = {}
        for warp in self.state.warps:
            if warp.status == AT_CTA_BARRIER:
                waits.setdefault(int(warp.at_barrier), []).append(int(warp.number))
        return "; ".join(f"warps {', '.join(map(str, numbers))} wait at barrier {b}" for b, numbers in waits.items())

    def _opaque_hint(self) -> str:
        """Instructions without functional semantics are the likely source of an unknown value."""
        opcodes = sorted({self.kernel.instructions[row].opcode for row in self.lowered.opaque})
        return f" (not interpreted here: {', '.join(opcodes[:4])})" if opcodes else ""


_CAUSES = {
    UNKNOWN_BRANCH: "the branch depends on data that is not known",
    UNKNOWN_ADDRESS: "the address depends on data that is not known",
    UNKNOWN_OPERAND: "a descriptor, barrier or coordinate depends on data that is not known",
    BAD_ADDRESS: "the access lies outside the CTA's shared or local memory",
    BAD_TARGET: "the branch leaves the kernel's code",
}


def shared_window_bytes(kernel: SassKernel, bound: BoundLaunch) -> int:
    """End of the CTA's shared window: the bytes that the system reserves, then the kernel's."""
    return RESERVED_WINDOW_BYTES + kernel.static_smem_bytes + bound.launch.dynamic_smem_bytes


RESERVED_WINDOW_BYTES = 1024
"""Upper bound of the bytes at the start of the window that belong to the system."""
