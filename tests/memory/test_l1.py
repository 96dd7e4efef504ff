"""The L1 and the ways in and out of an SM: hits, tag and data passes, miss path, fill port, store port."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from tests.engine.instructions import load, nop, store
from tests.engine.machine import Machine, run
from tests.engine.programs import Event, Op, assemble
from tests.memory.probes import chase, line

NEAR = 200
HIT = 30
QUIET = Machine(
    sm={"l1_hit": HIT, "l1_tag": 0, "fill_byte": 0, "store_byte": 0, "global_queue": 60},
    memory={"near": NEAR, "dram": 0},
    l1_sets=1,
    l1_ways=2,
)
PASS = 1
"""Cycles from issue to the L1's data path."""
MISS = PASS + NEAR + HIT
FOUND = PASS + HIT


def with_sm(**parameters: float) -> Machine:
    return replace(QUIET, sm={**QUIET.sm, **parameters})


def read(n: int, mask: int = 15, cached: bool = True) -> Op:
    return load(line(n), ((0, mask),), cached=cached, write=0)


def latencies(*ops: Op) -> list[float]:
    times = run([chase(*ops)], QUIET).times()
    return [b - a for a, b in zip(times[::2], times[1::2], strict=True)]


def test_does_a_second_load_hit() -> None:
    assert latencies(read(1), read(1)) == [MISS, FOUND]


def test_does_a_bypassing_load_neither_look_nor_leave_anything() -> None:
    assert latencies(read(1, cached=False), read(1, cached=False), read(1)) == [MISS, MISS, MISS]
    assert latencies(read(1), read(1, cached=False)) == [MISS, MISS]


def test_is_the_least_recently_used_line_of_a_set_evicted() -> None:
    assert latencies(read(1), read(2), read(1), read(3), read(1), read(2)) == [MISS, MISS, FOUND, MISS, FOUND, MISS]


def test_does_a_hit_need_all_its_sectors() -> None:
    assert latencies(read(1, 0b0011), read(1, 0b0001), read(1, 0b0110), read(1, 0b0111)) == [MISS, FOUND, MISS, FOUND]


def test_does_a_load_of_a_line_on_its_way_wait_for_it() -> None:
    outcome = run([[read(1), nop(stall=100), load(line(1), cached=True, write=1), nop(wait=(1,))]], QUIET)
    assert outcome.times()[-1] == MISS
    assert outcome.counter("l2_read_sectors") == 4


def test_does_every_line_of_an_access_take_its_tag_pass() -> None:
    four = load(line(0), tuple((n, 15) for n in range(4)), write=0)
    outcome = run([chase(four)], with_sm(l1_tag=3))
    assert outcome.times()[-1] == PASS + 4 * 3 + NEAR + HIT


def test_do_bank_passes_count_when_they_are_more_than_tag_passes() -> None:
    wide = Op(effect=read(0).effect, pipe=read(0).pipe, write=0, event=Event(wavefronts=8, lines=((0, 15),)))
    outcome = run([[wide, nop(wait=(0,))]], with_sm(l1_tag=3))
    assert outcome.times()[-1] == PASS + 8 + NEAR + HIT


@pytest.mark.parametrize(("parameter", "per_line"), [("l1_miss", 2), ("fill_byte", 128 * 2)])
def test_do_misses_leave_one_after_another(parameter: str, per_line: int) -> None:
    loads = [load(line(n), write=0) for n in range(10)]
    outcome = run([[*loads, nop(wait=(0,))]], with_sm(**{parameter: 2}))
    assert outcome.times()[-1] == PASS + 10 * per_line + NEAR + HIT


def test_does_a_hit_not_take_the_miss_path() -> None:
    again = [load(line(1), cached=True, write=0)] * 10
    outcome = run([[*chase(read(1)), *again, nop(wait=(0,))]], with_sm(l1_miss=50))
    begin = outcome.times()[2]
    assert outcome.times()[-1] == begin + 9 + FOUND


def test_do_stores_leave_through_the_store_port() -> None:
    """128 bytes at half a cycle each, one after another; the source registers are free at once."""
    outcome = run([[store(line(n), read=0) for n in range(3)] + [nop(wait=(0,))]], with_sm(store_byte=0.5))
    assert outcome.times() == [0, 1, 2, 2 + PASS + 2]


def test_does_a_store_backlog_hold_the_next_access() -> None:
    """Each store takes 64 cycles; with a backlog of 100 the third access waits until 128 - 100."""
    machine = with_sm(store_byte=0.5, store_backlog=100, operand_release=0)
    outcome = run([[*[store(line(n)) for n in range(2)], store(line(3), read=0), nop(wait=(0,))]], machine)
    assert outcome.times()[-1] == PASS + 2 * 64 - 100


def test_do_loads_behind_a_full_queue_wait_for_its_head() -> None:
    """Each access takes 32 cycles of the data path; a queue of two."""
    slow = [load(line(n)) for n in range(6)]
    times = run([slow], with_sm(l1_tag=32, global_queue=2)).times()
    assert times[:3] == [0, 1, 2]
    assert [b - a for a, b in itertools.pairwise(times[3:])] == [32, 32]


def test_are_sectors_and_hits_counted() -> None:
    outcome = run([chase(read(1), read(1), read(2, 0b0011), read(2, 0b0001))], QUIET)
    assert outcome.counter("l1_read_sectors") == 4 + 4 + 2 + 1
    assert outcome.counter("l1_hit_sectors") == 4 + 1
    assert outcome.counter("fill_bytes") == 128 + 64


def test_does_the_l1_belong_to_one_sm() -> None:
    outcome = run(assemble([chase(read(1))], n_ctas=2), QUIET, members=((0,), (1,)), n_slots=1)
    assert outcome.times(sm=0)[-1] == outcome.times(sm=1)[-1] == MISS
