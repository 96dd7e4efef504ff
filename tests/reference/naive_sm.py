"""A streaming multiprocessor in plain Python, written from the rules and not from the engine.

Nothing is cached and nothing is woken up: at each step every warp is asked when it may issue its next
instruction, the earliest issues (the lower sub-partition first), and its effect is applied.  Times are ticks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from simulator.isa import effects as fx
from tests.engine.machine import Issue, Machine
from tests.engine.programs import Op
from tests.reference.naive_actions import act
from tests.reference.naive_memory import Costs, NaiveMemory
from tests.reference.naive_units import (
    CYCLE,
    AccessQueue,
    BarrierUnit,
    MBarrier,
    Meeting,
    Port,
    Question,
    TensorCores,
    WarpGroup,
)
from tests.reference.tick_ops import TickOp, program_in_ticks

N_SUBPARTITIONS = 4
GROUP_WARPS = 4


@dataclass(eq=False)
class SubPartition:
    """Its issue slot, pipes and queues; ``warps`` oldest first."""

    costs: Costs
    free_at: int = 0
    last: Warp | None = None
    pipe_free_at: dict[int, int] = field(default_factory=dict)
    warps: list[Warp] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.shared_queue = AccessQueue(self.costs["shared_queue"])
        self.global_queue = AccessQueue(self.costs["global_queue"])

    def choose(self) -> tuple[int, Warp] | None:
        """Greedy, then oldest: the last warp if it can use the very next slot, else the first that is ready."""
        ready = [(at, warp) for warp in self.warps if (at := self.issues_at(warp)) is not None]
        if not ready:
            return None
        for at, warp in ready:
            if warp is self.last and at == self.free_at:
                return at, warp
        return min(ready, key=lambda choice: choice[0])

    def issues_at(self, warp: Warp) -> int | None:
        """When a warp's next instruction could issue here, None while that is unknown."""
        ready_at = warp.ready_at()
        if ready_at is None:
            return None
        op = warp.op
        pipe = op.pipe if op.active else fx.UNPIPED
        return max(ready_at, self.pipe_free_at.get(pipe, 0), self.free_at)


@dataclass(eq=False)
class Cta:
    """A resident CTA: its barriers and how many of its warps have not exited."""

    costs: Costs
    n_live: int
    meetings: dict[int, Meeting] = field(default_factory=dict)
    mbarriers: dict[int, MBarrier] = field(default_factory=dict)
    cluster_meetings: list[Meeting] = field(default_factory=list)

    def meeting(self, number: int) -> Meeting:
        """The running use of a named barrier."""
        if number not in self.meetings or self.meetings[number].opened_at is not None:
            self.meetings[number] = Meeting()
        return self.meetings[number]

    def arrive_at_cluster(self, use: int, at: int) -> None:
        """A warp arrives at use ``use`` of the cluster barrier; peers in other CTAs keep this one's pace."""
        while len(self.cluster_meetings) <= use:
            self.cluster_meetings.append(Meeting())
        meeting = self.cluster_meetings[use]
        meeting.n_arrived += 1
        if meeting.n_arrived >= self.n_live:
            meeting.opened_at = at + self.costs["cluster_barrier"]

    def mbarrier(self, number: int) -> MBarrier:
        return self.mbarriers.setdefault(number, MBarrier(self.costs))


@dataclass(eq=False)
class Warp:
    """What a warp still waits for: ``results`` (scoreboard, when) in flight, an open question, a meeting."""

    ops: list[TickOp]
    cta: Cta
    group: WarpGroup
    sub: SubPartition
    lane: int
    slot: int
    stalled_until: int
    position: int = 0
    held_until: int = 0
    results: list[tuple[int, int]] = field(default_factory=list)
    questions: list[tuple[int, Question]] = field(default_factory=list)
    meeting: Meeting | None = None
    n_mmas: int = 0
    n_groups: int = 0
    n_cluster_arrivals: int = 0
    copies_done_at: int = 0
    stores_done_at: int = 0
    copy_groups: list[int] = field(default_factory=list)

    @property
    def is_finished(self) -> bool:
        return self.position >= len(self.ops)

    @property
    def op(self) -> TickOp:
        return self.ops[self.position]

    def hold(self, until: int) -> None:
        self.held_until = max(self.held_until, until)

    def ready_at(self) -> int | None:
        """When all its gates are open, None while one depends on what others will do."""
        if self.is_finished:
            return None
        gates: list[int | None] = [self.stalled_until, self.held_until]
        gates += [at for board, at in self.results if board in self.op.wait]
        gates += [question.answered_at() for board, question in self.questions if board in self.op.wait]
        if self.meeting is not None:
            gates.append(self.meeting.opened_at)
        if self.op.active:
            gates.append(self._asynchronous_gate())
        known = [gate for gate in gates if gate is not None]
        return max(known) if len(known) == len(gates) else None

    def _asynchronous_gate(self) -> int | None:
        """Groups of MMAs or copies, room in the MMA queue, the answer to an earlier question."""
        op = self.op
        if op.effect == fx.TENSOR_WAIT:
            return nth(self.group.done_at, self.n_groups - op.argument)
        if op.effect == fx.TENSOR_ASYNC:
            return nth(self.group.started_at, self.n_mmas + 1 - self.sub.costs["tensor_queue"])
        if op.effect == fx.COPY_WAIT:
            return nth(self.copy_groups, len(self.copy_groups) - op.argument)
        if op.effect == fx.MBARRIER and op.kind == fx.MBARRIER_WAIT and self.questions:
            return self.questions[-1][1].answered_at() if self.questions[-1][1].was_open else 0
        return 0


def nth(stamps: Sequence[int], n: int) -> int | None:
    """The ``n``-th stamp, counted from 1; 0 before the first, None where it is not known yet."""
    if n <= 0:
        return 0
    return stamps[n - 1] if n <= len(stamps) else None


class NaiveSm:
    """One SM that runs ``n_ctas`` CTAs of the same warps in ``machine.n_slots`` slots."""

    def __init__(self, warps: Sequence[Sequence[Op]], machine: Machine, n_ctas: int = 1) -> None:
        self.streams = program_in_ticks(warps)
        self.costs = machine.costs
        self.port = Port()
        self.tensor = TensorCores(self.costs, self.port)
        self.barriers = BarrierUnit(self.costs)
        self.memory = NaiveMemory(self.costs, machine.l1_ways)
        self.subs = [SubPartition(self.costs) for _ in range(N_SUBPARTITIONS)]
        self.slots: list[list[Warp]] = [[] for _ in range(machine.n_slots)]
        self.n_waiting = n_ctas
        self.launch_free_at = self.costs["launch_latency"]
        self.blocked_until = 0
        self.loads_free_at = 0
        self.stores_free_at = 0
        self.log: list[Issue] = []
        for slot in range(machine.n_slots):
            self.start_cta(slot, self.costs["launch_latency"])

    def start_cta(self, slot: int, at: int) -> None:
        """The next CTA of the grid takes a slot; starts are an interval apart."""
        if self.n_waiting == 0:
            return
        self.n_waiting -= 1
        start = max(at, self.launch_free_at)
        self.launch_free_at = start + self.costs["cta_interval"]
        n = len(self.streams)
        cta = Cta(self.costs, n)
        groups = [WarpGroup(min(GROUP_WARPS, n - first)) for first in range(0, n, GROUP_WARPS)]
        old, self.slots[slot] = self.slots[slot], []
        for lane, stream in enumerate(self.streams):
            sub = self.subs[(slot * n + lane) % N_SUBPARTITIONS]
            warp = Warp(stream, cta, groups[lane // GROUP_WARPS], sub, lane, slot, start)
            self.slots[slot].append(warp)
            sub.warps = [w for w in sub.warps if w not in old] + [warp]
            sub.warps.sort(key=lambda w: (w.slot, w.lane))

    def run(self) -> list[Issue]:
        """Issue until nothing can; returns the log."""
        while (step := self.next_issue()) is not None:
            self.issue(*step)
        return self.log

    def next_issue(self) -> tuple[int, Warp] | None:
        choices = [choice for sub in self.subs if (choice := sub.choose()) is not None]
        return min(choices, key=lambda choice: choice[0]) if choices else None

    def issue(self, at: int, warp: Warp) -> None:
        """One instruction: its slot, its effect, its scoreboards, the stall count after it."""
        op, sub = warp.op, warp.sub
        self.log.append(Issue(at / CYCLE, 0, warp.slot, warp.lane, warp.position))
        sub.free_at = at + CYCLE
        sub.last = warp
        warp.held_until = 0
        warp.meeting = None
        if op.active:
            done, release = act(self, warp, op, at)
            if op.write is not None and done is not None:
                warp.results.append((op.write, done))
            if op.read is not None:
                warp.results.append((op.read, release))
        warp.position += 1
        if warp.is_finished:
            self.exit(warp, at)
            return
        warp.stalled_until = at + op.stall
        if op.active and op.effect == fx.BRANCH and warp.op.address != op.address + 1:
            warp.stalled_until = max(warp.stalled_until, at + self.costs["taken_branch"])
        if op.active and op.effect == fx.BARRIER:
            self.meet(warp, op, at)
        if op.active and op.effect == fx.CLUSTER_BARRIER:
            self.meet_cluster(warp, op, at)

    def meet(self, warp: Warp, op: TickOp, at: int) -> None:
        """BAR: arrive, and wait unless it only arrives."""
        assert op.event is not None
        meeting = warp.cta.meeting(op.event.parity)
        n_needed = -(-op.event.count // 32) if op.event.count else warp.cta.n_live
        self.barriers.arrive(meeting, n_needed, at)
        if op.kind:
            warp.meeting = meeting

    def meet_cluster(self, warp: Warp, op: TickOp, at: int) -> None:
        """Arrive, or wait for the use that this warp arrived at last."""
        if op.kind:
            warp.cta.arrive_at_cluster(warp.n_cluster_arrivals, at)
            warp.n_cluster_arrivals += 1
        elif warp.n_cluster_arrivals:
            warp.meeting = warp.cta.cluster_meetings[warp.n_cluster_arrivals - 1]

    def exit(self, warp: Warp, at: int) -> None:
        """A warp has left: barrier 0 may open without it; the last one hands its slot on."""
        cta = warp.cta
        cta.n_live -= 1
        if cta.n_live == 0:
            self.start_cta(warp.slot, at + self.costs["cta_turnaround"])
            return
        meeting = cta.meeting(0)
        if meeting.n_arrived >= cta.n_live:
            meeting.n_arrived -= 1
            self.barriers.arrive(meeting, cta.n_live, at)
