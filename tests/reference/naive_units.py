"""The units of an SM that warps share, in plain Python: tensor cores, barriers, mbarriers, the shared-memory port."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.reference.naive_calendar import NaiveCalendar
from tests.reference.naive_memory import Costs

CYCLE = 1 << 16
PORT_WINDOW = 16 * CYCLE
OPERAND_WINDOW = 512 * CYCLE


class AccessQueue:
    """In front of shared memory or of the L1: accesses of one sub-partition until they leave it."""

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.leaves_at: list[int] = []

    def enter(self, leaves_at: int) -> None:
        self.leaves_at.append(leaves_at)

    def has_room_at(self) -> int:
        """When the queue takes another access."""
        return self.leaves_at[-self.depth] if len(self.leaves_at) >= self.depth else 0

    @property
    def last_leaves_at(self) -> int:
        return self.leaves_at[-1] if self.leaves_at else 0


class Port:
    """The SM's shared-memory port: wavefronts of accesses one after another, MMA operands and copies interleaved."""

    def __init__(self) -> None:
        self.wavefronts = NaiveCalendar(PORT_WINDOW)
        self.operands = NaiveCalendar(OPERAND_WINDOW)


@dataclass
class WarpGroup:
    """Four warps of a CTA: their asynchronous MMAs in issue order and the groups that they committed."""

    n_warps: int
    arrivals: list[int] = field(default_factory=list)
    started_at: list[int] = field(default_factory=list)
    done_at: list[int] = field(default_factory=list)


class TensorCores:
    """Runs one asynchronous MMA at a time."""

    def __init__(self, costs: Costs, port: Port) -> None:
        self.costs = costs
        self.port = port
        self.since = 0
        self.until = 0
        self.drained_at = 0
        self.group: WarpGroup | None = None
        self.is_alternating = False

    def arrive(self, group: WarpGroup, number: int, op: Any, at: int) -> None:
        """A warp issues its MMA ``number``; the last of the group starts it."""
        while len(group.arrivals) <= number:
            group.arrivals.append(0)
        group.arrivals[number] += 1
        if group.arrivals[number] < group.n_warps:
            return
        start = max(self.until, at)
        if start > self.until:
            self.since = start
        self.is_alternating = self.group is not group
        self.group = group
        self.until = max(start + op.interval, self.port.operands.reserve_share(start, op.port))
        self.drained_at = self.until + op.latency
        group.started_at.append(start)
        if op.argument:
            group.done_at.append(self.until + op.latency)

    def contention(self, op: Any, at: int) -> int:
        """Longer dispatch of an instruction that issues ``at`` beside an MMA that has not written its result."""
        if not self.since <= at < self.drained_at:
            return 0
        if self.is_alternating:
            return int(op.contention)
        return int(op.contention) * self.costs["same_group"] >> 16


@dataclass
class Meeting:
    """One use of a barrier: warps that came so far, and when it opened."""

    n_arrived: int = 0
    opened_at: int | None = None


class BarrierUnit:
    """Named barriers of all CTAs of the SM: one unit that takes its time for each arrival."""

    def __init__(self, costs: Costs) -> None:
        self.costs = costs
        self.free_at = 0

    def arrive(self, meeting: Meeting, n_needed: int, at: int) -> None:
        self.free_at = max(self.free_at, at) + self.costs["barrier_warp"]
        meeting.n_arrived += 1
        if meeting.n_arrived >= n_needed:
            meeting.opened_at = self.free_at + self.costs["barrier_base"]


class MBarrier:
    """Counts arrivals and bytes of the running phase; remembers when each phase ended."""

    def __init__(self, costs: Costs) -> None:
        self.costs = costs
        self.count = 0
        self.restart(0)

    def restart(self, count: int) -> None:
        """Initialise for ``count`` arrivals a phase."""
        self.count = self.n_missing = count
        self.n_bytes = 0
        self.latest = 0
        self.phase_ended_at: list[int] = []

    def arrive(self, n_arrivals: int, n_bytes: int, at: int) -> None:
        """``n_bytes`` more are expected; delivered bytes are negative."""
        self.n_missing -= n_arrivals
        self.n_bytes += n_bytes
        self.latest = max(self.latest, at)
        if self.n_missing <= 0 and self.n_bytes == 0:
            self.phase_ended_at.append(self.latest + self.costs["mbarrier_release"])
            self.n_missing = self.count
            self.latest = 0

    def is_running(self, parity: int) -> bool:
        """Whether the phase that a wait for ``parity`` means is not over."""
        return len(self.phase_ended_at) % 2 == parity

    @property
    def last_ended_at(self) -> int:
        return self.phase_ended_at[-1] if self.phase_ended_at else 0


class Question:
    """A try_wait: its answer comes when the phase is over."""

    def __init__(self, barrier: MBarrier, parity: int, asked: int) -> None:
        self.barrier = barrier
        self.phase = len(barrier.phase_ended_at)
        self.was_open = barrier.is_running(parity)
        self.known_at = None if self.was_open else max(asked, barrier.last_ended_at)

    def answered_at(self) -> int | None:
        if self.known_at is None and len(self.barrier.phase_ended_at) > self.phase:
            self.known_at = self.barrier.phase_ended_at[self.phase]
        return self.known_at
