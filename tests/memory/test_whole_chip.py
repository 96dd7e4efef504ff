"""A simulated SM stands for several: are the requests of all CTAs made, each once, and do samples tell the truth?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.device.machine import Plan, coalescer_of, collect, first_wave, members_of
from simulator.sm.inputs import Program
from tests.engine.instructions import expect, init, load, load_box, nop, store, try_wait
from tests.engine.machine import Machine, Outcome, run
from tests.engine.programs import Op, Tensor, assemble

LINE = 128
LOADS_PER_CTA = 12


def strided_ctas(n_ctas: int, ops: list[Op]) -> Program:
    """CTAs that touch consecutive pieces of ``LOADS_PER_CTA`` lines."""
    return assemble([ops], n_ctas=n_ctas, cta_base=[[cta * LOADS_PER_CTA * LINE] for cta in range(n_ctas)])


def reads() -> list[Op]:
    return [load(n * LINE, base=0, write=0) for n in range(LOADS_PER_CTA)] + [nop(wait=(0,))]


def machine(n_sms: int, n_chip_sms: int, n_slots: int = 2, **changes: object) -> Machine:
    members = tuple(tuple(range(sm, n_chip_sms, n_sms)) for sm in range(n_sms))
    return Machine(members=members, n_slots=n_slots, l2_sets=4096, l2_ways=16, merge_slots=1 << 17, **changes)  # type: ignore[arg-type]


@given(n_ctas=st.integers(1, 70), n_sms=st.integers(1, 4), spare=st.integers(0, 9))
@settings(max_examples=40, deadline=None)
def test_are_the_requests_of_every_cta_made_exactly_once(n_ctas: int, n_sms: int, spare: int) -> None:
    """Every CTA reads lines of its own: bytes requested = bytes delivered = bytes from DRAM."""
    outcome = run(strided_ctas(n_ctas, reads()), machine(n_sms, n_sms + spare))
    requested = n_ctas * LOADS_PER_CTA * LINE
    assert outcome.finished
    assert outcome.counter("fill_bytes") == requested
    assert outcome.counter("l2_read_sectors") * 32 == requested
    assert outcome.counter("dram_read_bytes") == requested


def test_are_the_stores_of_every_cta_made_exactly_once() -> None:
    ops = [store(n * LINE, base=0) for n in range(LOADS_PER_CTA)]
    outcome = run(strided_ctas(23, ops), machine(2, 6))
    assert outcome.counter("l2_write_sectors") == 23 * LOADS_PER_CTA * 4


def test_are_the_boxes_of_every_cta_loaded_exactly_once() -> None:
    rows = 16
    tensor = Tensor(shape=(64, 4096), strides=(LINE,), box=(64, rows))
    body = [init(), expect(tensor.box_bytes), load_box(tensor, (0, 0), base=(-1, 0)), try_wait(0), nop(wait=(0,))]
    program = assemble([body], n_ctas=13, cta_base=[[cta * rows] for cta in range(13)])
    outcome = run(program, machine(2, 5))
    assert outcome.counter("fill_bytes") == 13 * tensor.box_bytes
    assert outcome.counter("bulk_fill_bytes") == 13 * tensor.box_bytes
    assert outcome.counter("dram_read_bytes") == 13 * tensor.box_bytes


def test_do_members_share_what_they_all_read() -> None:
    """All CTAs read the same lines: each is fetched from DRAM once."""
    outcome = run(assemble([reads()], n_ctas=12), machine(2, 6))
    assert outcome.counter("fill_bytes") == 12 * LOADS_PER_CTA * LINE
    assert outcome.counter("dram_read_bytes") == LOADS_PER_CTA * LINE


@pytest.mark.parametrize("lag_cycles", [0, 300, 5000])
def test_does_the_lag_of_sms_change_when_and_not_what_they_request(lag_cycles: int) -> None:
    program = strided_ctas(23, reads())
    outcome = run(program, machine(2, 6, sm={"lag": lag_cycles}))
    assert outcome.finished
    assert outcome.counter("fill_bytes") == outcome.counter("dram_read_bytes") == 23 * LOADS_PER_CTA * LINE


def test_do_sms_behind_a_saturated_port_drift_apart() -> None:
    """Members that read the same lines merge while their lag is short: the slower the lag grows, the fewer reads."""
    program = assemble([reads() * 40], n_ctas=6)
    counts = []
    for growth in (1 << 20, 2000):
        lag = {"lag": 20, "lag_growth": growth, "lag_most": 4000, "lag_load": 0, "lag_restart": 0}
        outcome = run(program, machine(1, 6, sm=lag, memory={"coalescer_sector": 1, "merge_transit": 150}))
        counts.append(outcome.counter("l2_read_sectors"))
    assert counts[0] <= counts[1]


def test_does_a_launch_end_with_its_last_write() -> None:
    """The last store leaves the SM after the last instruction has issued."""
    chip = machine(1, 1, sm={"store_byte": 10})
    program = assemble([[store(0)]])
    outcome = run(program, chip)
    result = collect(outcome.x, chip.shape(program), outcome.n_issued)
    assert result.last_issue_cycles == 0
    assert result.end_cycles >= LINE * 10


def streams(outcome: Outcome) -> dict[str, int]:
    names = ("l2_read_sectors", "l2_miss_sectors", "dram_read_bytes", "fill_bytes", "l2_write_sectors")
    return {name: outcome.counter(name) for name in names}


@pytest.mark.parametrize("shift", [1, 2])
def test_does_a_sample_of_lines_count_what_the_whole_would(shift: int) -> None:
    """Half the lines are read again by the next CTA, and everything is written once."""
    n = 256
    reads = [load(i * LINE, base=0, write=0) for i in range(n)]
    writes = [store(i * LINE + (1 << 30), base=0) for i in range(n)]
    base = [[cta * n * LINE // 2] for cta in range(40)]
    program = assemble([[*reads, nop(wait=(0,)), *writes]], n_ctas=40, cta_base=base)
    exact = streams(run(program, machine(2, 8)))
    sampled = streams(run(program, machine(2, 8, memory={"sample_shift": shift})))
    assert sampled["fill_bytes"] == exact["fill_bytes"]
    for name, value in exact.items():
        assert sampled[name] == pytest.approx(value, rel=0.04), name


@pytest.mark.parametrize("shift", [1, 3])
def test_does_a_sample_of_box_rows_count_what_the_whole_would(shift: int) -> None:
    tensor = Tensor(shape=(64, 1 << 16), strides=(LINE,), box=(64, 64))
    body: list[Op] = [init()]
    for step in range(8):
        copy = load_box(tensor, (0, 64 * step), base=(-1, 0))
        body += [expect(tensor.box_bytes), copy, try_wait(step % 2), nop(wait=(0,))]
    program = assemble([body], n_ctas=16, cta_base=[[cta * 256] for cta in range(16)])
    exact = streams(run(program, machine(2, 8)))
    sampled = streams(run(program, machine(2, 8, memory={"sample_shift": shift})))
    assert sampled == {name: pytest.approx(value, rel=0.03) for name, value in exact.items()}


@given(n_sms=st.integers(1, 9), spare=st.integers(0, 20), n_slots=st.integers(1, 4), n_ctas=st.integers(1, 200))
@settings(max_examples=60, deadline=None)
def test_does_the_first_wave_place_each_cta_once(n_sms: int, spare: int, n_slots: int, n_ctas: int) -> None:
    plan = Plan(n_sms, n_sms + spare, n_slots, sample_shift=0, clock_hz=1e9, l1_bytes=0)
    table = first_wave(plan, members_of(plan), n_ctas)
    placed = np.sort(table[table >= 0])
    assert placed.tolist() == list(range(min(n_ctas, plan.n_chip_sms * n_slots)))
    assert sorted(sm for members in members_of(plan) for sm in members) == list(range(plan.n_chip_sms))


def test_do_coalescers_divide_the_chip_in_launch_order() -> None:
    domain = coalescer_of(132, (16, 16, 18, 18, 16, 16, 16, 16))
    assert np.bincount(domain).tolist() == [16, 16, 18, 18, 16, 16, 16, 16]
    assert (np.diff(domain) >= 0).all()
