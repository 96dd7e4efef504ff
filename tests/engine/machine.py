"""A machine of plain round numbers for small programs, and what a run on it shows.

It is no chip: every parameter that a test does not name has the value of ``SM_CYCLES`` and ``MEMORY_CYCLES``
(0 where they do not name it: that mechanism costs nothing).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from simulator.device.machine import lags, run_step
from simulator.isa import effects as fx
from simulator.memory.layout import COUNTER, MEMORY_PARAMETERS
from simulator.sm import heap, layout
from simulator.sm import inputs as at
from simulator.sm.dispatch import launch
from simulator.sm.engine import run as run_engine
from simulator.sm.inputs import CYCLE, Program
from tests.engine.programs import Op, assemble, ticks

NO_LIMIT = 1 << 62

SM_CYCLES: dict[str, float] = {
    "tensor_issue": 1,
    "tensor_queue": 4,
    "same_group": 1,
    "wavefront": 1,
    "subpartition_wavefront": 2,
    "subpartition_interval": 2,
    "shared_queue": 16,
    "global_queue": 16,
    "operand_release": 2,
    "l1_hit": 30,
    "l1_tag": 1,
    "fill_byte": 1 / 128,
    "store_byte": 1 / 32,
    "store_backlog": 1 << 20,
    "bulk_store_byte": 1 / 64,
    "quantum": 32,
    "lag_growth": 1 << 20,
    "lag_load": 1 << 20,
}
MEMORY_CYCLES: dict[str, float] = {"near": 200, "far": 100, "dram": 400, "n_partitions": 1}
PLAIN_NUMBERS = {
    "dram_refresh_share",
    "lag_restart",
    "tensor_queue",
    "shared_queue",
    "global_queue",
    "sample_shift",
    "n_partitions",
}


@dataclass(frozen=True)
class Machine:
    """Sizes and parameters. ``members[s]``: chip SMs that simulated SM s stands for; parameters in cycles by name."""

    members: tuple[tuple[int, ...], ...] = ((0,),)
    n_slots: int = 1
    n_domains: int = 1
    domain_of: tuple[int, ...] | None = None
    partition_of: tuple[int, ...] | None = None
    l1_sets: int = 1
    l1_ways: int = 4
    l2_sets: int = 64
    l2_ways: int = 4
    merge_slots: int = 1 << 14
    sm: dict[str, float] = field(default_factory=dict)
    memory: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        unknown = (set(self.sm) - set(layout.SM_PARAMETERS)) | (set(self.memory) - set(MEMORY_PARAMETERS))
        assert not unknown, f"no such parameters: {unknown}"

    @property
    def n_chip_sms(self) -> int:
        return sum(map(len, self.members))

    def shape(self, program: Program) -> heap.MachineShape:
        n = self.n_chip_sms
        return heap.MachineShape(
            members=[list(m) for m in self.members],
            partition_of=np.array(self.partition_of or [0] * n),
            domain_of=np.array(self.domain_of or [0] * n),
            n_slots=self.n_slots,
            n_warps=program.n_warps,
            n_mbarriers=int(program.event_table[:, at.E_MBARRIER].max(initial=-1)) + 1,
            n_ctas=len(program.cta_class),
            n_bases=program.cta_base.shape[1],
            l1_sets=self.l1_sets,
            l1_ways=self.l1_ways,
            n_partitions=int(self.memory.get("n_partitions", MEMORY_CYCLES["n_partitions"])),
            l2_sets=self.l2_sets,
            l2_ways=self.l2_ways,
            n_domains=self.n_domains,
            merge_slots=self.merge_slots,
            lag_of=lags(n),
            run_step=run_step(n // layout.CTA_RUN),
        )

    @property
    def costs(self) -> dict[str, int]:
        """Every parameter by name: times in ticks."""
        values = {**SM_CYCLES, **MEMORY_CYCLES, **self.sm, **self.memory}
        names = (*layout.SM_PARAMETERS, *MEMORY_PARAMETERS)
        return {n: int(values.get(n, 0)) if n in PLAIN_NUMBERS else ticks(values.get(n, 0)) for n in names}

    def build(self, program: Program) -> np.ndarray:
        """The heap of an idle machine that fits ``program``."""
        memory, sm = (
            np.array([self.costs[name] for name in names], np.int64)
            for names in (MEMORY_PARAMETERS, layout.SM_PARAMETERS)
        )
        return heap.make_machine(self.shape(program), memory, sm)

    def first_wave(self, n_ctas: int) -> np.ndarray:
        """CTAs go out in rounds, one per chip SM."""
        table = np.full((len(self.members) * self.n_slots, max(map(len, self.members))), -1, np.int64)
        for s, members in enumerate(self.members):
            for slot in range(self.n_slots):
                ctas = [slot * self.n_chip_sms + member for member in members]
                placed = [cta for cta in ctas if cta < n_ctas]
                table[s * self.n_slots + slot, : len(placed)] = placed
        return table


class Issue(NamedTuple):
    """One issued instruction: when (cycles), on which simulated SM, CTA slot and warp, and the how-manieth of its
    warp's stream."""

    at: float
    sm: int
    slot: int
    warp: int
    position: int


@dataclass(frozen=True)
class Outcome:
    """A finished or stuck run."""

    log: list[Issue]
    x: np.ndarray
    program: Program
    n_issued: int

    def times(self, warp: int = 0, slot: int = 0, sm: int = 0) -> list[float]:
        """Issue times of one warp."""
        return [issue.at for issue in self.log if (issue.sm, issue.slot, issue.warp) == (sm, slot, warp)]

    def counter(self, name: str) -> int:
        return int(self.x[COUNTER + fx.COUNTERS.index(name)])

    def stalls(self) -> dict[str, float]:
        """Cycles by stall reason, over all warps."""
        first = self.x[layout.STALLS]
        return {name: float(self.x[first + i]) / CYCLE for i, name in enumerate(fx.STALL_REASONS)}

    def spans(self) -> list[tuple[float, float]]:
        """(start, last issue) of each simulated CTA, in cycles."""
        first = self.x[layout.SPANS]
        pairs = self.x[first : first + 2 * len(self.program.cta_class)].reshape(-1, 2) / CYCLE
        return [(float(a), float(b)) for a, b in pairs if a >= 0]

    @property
    def finished(self) -> bool:
        n = self.x[layout.N_SMS] * self.x[layout.N_SLOTS] * self.x[layout.N_WARPS]
        first = self.x[layout.WARPS]
        states = self.x[first : first + n * layout.WARP_FIELDS].reshape(n, layout.WARP_FIELDS)[:, layout.W_BLOCK]
        return bool((states == layout.FINISHED).all())


def start(program: Program, machine: Machine) -> tuple[np.ndarray, np.ndarray]:
    """(machine with the first CTAs in place, packed program)."""
    x, k = machine.build(program), at.pack(program)
    launch(x, k, machine.first_wave(len(program.cta_class)))
    return x, k


def run(program: Program | Sequence[Sequence[Op]], machine: Machine | None = None, **changes: Any) -> Outcome:
    """Run to the end (or until nothing can issue). ``changes``: fields of ``Machine``."""
    if not isinstance(program, Program):
        program = assemble(program)
    machine = replace(machine or Machine(), **changes)
    x, k = start(program, machine)
    log = np.zeros((len(program.instruction) * len(program.cta_class), 3), np.int64)
    n_issued, _ = run_engine(x, k, NO_LIMIT, log)
    return Outcome(read_log(log[:n_issued], x, program), x, program, int(n_issued))


def read_log(log: np.ndarray, x: np.ndarray, program: Program) -> list[Issue]:
    """The engine's log in words."""
    number = (log[:, 1] - x[layout.WARPS]) // layout.WARP_FIELDS
    place, warp = np.divmod(number, x[layout.N_WARPS])
    sm, slot = np.divmod(place, x[layout.N_SLOTS])
    begin = program.stream_start[np.searchsorted(program.stream_start, log[:, 2], side="right") - 1]
    rows = zip(log[:, 0] / CYCLE, sm, slot, warp, log[:, 2] - begin, strict=True)
    return [Issue(float(t), int(s), int(c), int(w), int(p)) for t, s, c, w, p in rows]
