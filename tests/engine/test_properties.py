"""What holds for every program: time is attributed once, nothing is negative, runs repeat, pauses change nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from simulator.isa.effects import COUNTERS
from simulator.sm.engine import run as run_engine
from simulator.sm.inputs import CYCLE
from tests.engine.machine import Issue, Machine, Outcome, read_log, run, start
from tests.engine.programs import Op, assemble
from tests.reference.random_programs import kernels, machines

bounded = settings(max_examples=12, deadline=None)


def lifetimes(outcome: Outcome, n_ctas: int) -> float:
    """Cycles from the start of each warp's CTA to the end of the warp's last issue slot, summed.

    For runs in which CTA i is the i-th of slot 0, or the only one of slot i."""
    starts = [start for start, _ in outcome.spans()]
    last: dict[tuple[int, int], float] = {}
    n_started: dict[tuple[int, int], int] = {}
    for issue in outcome.log:
        place = (issue.slot, issue.warp)
        if issue.position == 0:
            n_started[place] = n_started.get(place, 0) + 1
        cta = issue.slot if issue.slot else n_started[place] - 1
        last[cta, issue.warp] = issue.at
    return sum(at + 1 - starts[cta] for (cta, _), at in last.items())


@given(kernel=kernels(), machine=machines(), n_ctas=st.integers(1, 4), at_once=st.booleans())
@bounded
def test_is_every_cycle_of_every_resident_warp_attributed_once(
    kernel: list[list[Op]], machine: Machine, n_ctas: int, at_once: bool
) -> None:
    outcome = run(assemble(kernel, n_ctas=n_ctas), replace(machine, n_slots=n_ctas if at_once else 1))
    stalls = outcome.stalls()
    after_exit = stalls.pop("drain")
    assert sum(stalls.values()) == lifetimes(outcome, n_ctas)
    assert after_exit >= 0
    assert min(stalls.values()) >= 0
    assert stalls["selected"] == outcome.n_issued


@given(kernel=kernels(), machine=machines(), n_ctas=st.integers(1, 4))
@bounded
def test_is_no_resource_busier_than_time_allows(kernel: list[list[Op]], machine: Machine, n_ctas: int) -> None:
    outcome = run(assemble(kernel, n_ctas=n_ctas), machine)
    begin = machine.costs["launch_latency"] / CYCLE
    end = max(issue.at for issue in outcome.log) + 1
    counters = {name: outcome.counter(name) for name in COUNTERS}
    assert min(counters.values()) >= 0
    assert counters["l1_hit_sectors"] <= counters["l1_read_sectors"]
    looked_up = counters["l2_near_hit_sectors"] + counters["l2_miss_sectors"]
    assert looked_up >= counters["l2_read_sectors"], "a promoted miss looks up sectors that nobody has read"
    if counters["bulk_fill_bytes"] == 0:
        assert looked_up == counters["l2_read_sectors"]
    assert counters["dram_read_bytes"] <= counters["l2_miss_sectors"] * 32
    assert outcome.n_issued <= 4 * (end - begin)
    for sub in range(4):
        n_warps = outcome.program.n_warps
        slots = [issue.at for issue in outcome.log if (issue.slot * n_warps + issue.warp) % 4 == sub]
        gaps = np.diff(slots)
        assert gaps.min(initial=1) >= 1


@given(kernel=kernels(), machine=machines(), n_ctas=st.integers(1, 4))
@bounded
def test_does_a_run_take_at_least_what_its_warps_must_take(
    kernel: list[list[Op]], machine: Machine, n_ctas: int
) -> None:
    outcome = run(assemble(kernel, n_ctas=n_ctas), machine)
    assume(outcome.finished)
    longest = max(sum(op.stall for op in stream[:-1]) for stream in kernel)
    for begin, end in outcome.spans():
        assert end - begin >= longest


@given(kernel=kernels(), machine=machines(), n_ctas=st.integers(1, 4))
@bounded
def test_is_a_run_the_same_every_time(kernel: list[list[Op]], machine: Machine, n_ctas: int) -> None:
    program = assemble(kernel, n_ctas=n_ctas)
    first, second = run(program, machine), run(program, machine)
    assert first.log == second.log
    assert (first.x == second.x).all()


def paused(program_ctas: tuple[list[list[Op]], int], machine: Machine, piece: int) -> tuple[list[Issue], np.ndarray]:
    """The log of a run in pieces of at least ``piece`` instructions, and the machine at its end."""
    program = assemble(program_ctas[0], n_ctas=program_ctas[1])
    x, k = start(program, machine)
    log: list[Issue] = []
    while True:
        part = np.zeros((4096, 3), np.int64)
        n, _ = run_engine(x, k, piece, part)
        assert n <= len(part)
        if n == 0:
            return log, x
        log += read_log(part[:n], x, program)


@given(kernel=kernels(), machine=machines(), n_ctas=st.integers(1, 6), piece=st.integers(1, 40), n_sms=st.integers(1, 3))
@bounded
def test_does_a_pause_change_nothing(
    kernel: list[list[Op]], machine: Machine, n_ctas: int, piece: int, n_sms: int
) -> None:
    chip = replace(machine, members=tuple((sm,) for sm in range(n_sms)))
    whole = run(assemble(kernel, n_ctas=n_ctas), chip)
    log, x = paused((kernel, n_ctas), chip, piece)
    assert log == whole.log
    assert (x == whole.x).all()
