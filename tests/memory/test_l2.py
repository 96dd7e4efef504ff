"""The L2 and the DRAM behind it, as loads see them: latencies, sharing, eviction, bytes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.memory.l2 import AS_ASKED, read_line
from simulator.sm.inputs import CYCLE
from tests.engine.instructions import atomic, expect, init, load, load_box, nop, store, try_wait
from tests.engine.machine import run
from tests.engine.programs import Tensor
from tests.memory.probes import (
    BARE,
    DRAM,
    FAR,
    NEAR,
    TWO_PARTITIONS,
    chase,
    homes,
    latencies,
    line,
    read,
    run_on_two,
)

LATER = [nop(stall=15)] * 100
"""1,500 cycles."""


def test_does_a_first_touch_come_from_dram_and_a_second_from_the_l2() -> None:
    outcome = run([chase(read(1), read(1))], BARE)
    assert latencies(outcome) == [NEAR + DRAM, NEAR]
    assert outcome.counter("dram_read_bytes") == 128


def test_does_the_far_partition_cost_its_extra_latency_and_leave_a_copy_near() -> None:
    (n, *_) = homes(2, home=1)
    outcome = run_on_two([*LATER, nop(), *chase(read(n), read(n))], chase(read(n)))
    times = outcome.times(sm=0)[len(LATER) + 1 :]
    assert [times[1] - times[0] - 1, times[3] - times[2] - 1] == [NEAR + FAR, NEAR]
    assert outcome.counter("l2_far_hit_sectors") == 4
    assert outcome.counter("dram_read_bytes") == 128


def test_does_a_line_of_the_near_partition_never_ask_the_far_one() -> None:
    (n, *_) = homes(2, home=0)
    outcome = run_on_two(chase(read(n), read(n)), [nop()])
    assert latencies(outcome) == [NEAR + DRAM, NEAR]
    assert outcome.counter("l2_far_hit_sectors") == 0


def test_do_reads_of_a_line_on_its_way_wait_for_it_without_a_second_fetch() -> None:
    machine = replace(TWO_PARTITIONS, partition_of=(0, 0), memory={})
    outcome = run_on_two(chase(read(5)), [nop(stall=100), *chase(read(5))], machine)
    arrival = outcome.times(sm=0)[1]
    assert outcome.times(sm=1)[2] == arrival
    assert outcome.counter("dram_read_bytes") == 128
    assert outcome.counter("l2_read_sectors") == 8


@pytest.mark.parametrize(("later", "n_sectors"), [(99, 4), (100, 8)])
def test_does_a_coalescer_merge_a_read_with_one_in_flight_beyond_it(later: int, n_sectors: int) -> None:
    shared = replace(TWO_PARTITIONS, partition_of=(0, 0), domain_of=(0, 0), memory={"merge_transit": NEAR + DRAM - 100})
    outcome = run_on_two(chase(read(5)), [nop(stall=later), *chase(read(5))], shared)
    assert outcome.counter("l2_read_sectors") == n_sectors
    assert outcome.counter("fill_bytes") == 2 * 128
    assert outcome.times(sm=1)[2] == outcome.times(sm=0)[1]


def test_do_reads_that_wait_at_a_port_merge() -> None:
    """Two SMs read 64 lines, one 150 cycles later: too late for what is in flight beyond the port, not for what waits."""
    stream = [load(line(n), write=0) for n in range(64)] + [nop(wait=(0,))]
    read_sectors = {}
    for service in (0, 4):
        memory = {"merge_transit": NEAR + DRAM - 100, "coalescer_sector": service}
        machine = replace(TWO_PARTITIONS, partition_of=(0, 0), domain_of=(0, 0), memory=memory)
        outcome = run_on_two(stream, [nop(stall=15)] * 10 + stream, machine)
        read_sectors[service] = outcome.counter("l2_read_sectors")
    assert read_sectors[0] == 2 * 64 * 4
    assert 64 * 4 < read_sectors[4] < 1.5 * 64 * 4


def test_does_a_read_not_wait_for_one_that_is_made_later() -> None:
    """SMs are simulated out of step: a read that comes in after a later one takes its own time."""
    x = run([[nop()]], BARE).x
    later, earlier = 9000 * CYCLE, 1000 * CYCLE
    for n in (1, 2):
        assert read_line(x, n, 15, AS_ASKED, 0, 0, later) == later + (NEAR + DRAM) * CYCLE
        assert read_line(x, n, 15, AS_ASKED, 0, 0, earlier) == earlier + (NEAR + DRAM) * CYCLE


@pytest.mark.parametrize(("promotion", "n_bytes"), [(0, 64), (64, 64), (128, 128), (256, 256)])
def test_does_a_miss_of_a_bulk_copy_fill_what_its_tensor_map_says(promotion: int, n_bytes: int) -> None:
    tensor = Tensor(shape=(128, 64), strides=(256,), box=(32, 8), promotion=promotion)
    outcome = run([[init(), expect(tensor.box_bytes), load_box(tensor, (0, 0)), try_wait(0), nop(wait=(0,))]], BARE)
    assert outcome.counter("dram_read_bytes") == 8 * n_bytes
    assert outcome.counter("fill_bytes") == 8 * 64


def test_do_coalescers_not_merge_reads_of_each_others_sms() -> None:
    apart = replace(TWO_PARTITIONS, partition_of=(0, 0), domain_of=(0, 1), memory={"merge_transit": NEAR + DRAM - 100})
    outcome = run_on_two(chase(read(5)), [nop(stall=10), *chase(read(5))], apart)
    assert outcome.counter("l2_read_sectors") == 8


def test_is_the_least_recently_used_line_evicted() -> None:
    machine = replace(BARE, l2_sets=1, l2_ways=2)
    outcome = run([chase(read(1), read(2), read(1), read(3), read(1), read(2))], machine)
    miss, hit = NEAR + DRAM, NEAR
    assert latencies(outcome) == [miss, miss, hit, miss, hit, miss]


def test_are_sectors_fetched_one_by_one() -> None:
    outcome = run([chase(read(1, 0b0001), read(1, 0b0010), read(1, 0b0011))], BARE)
    assert latencies(outcome) == [NEAR + DRAM, NEAR + DRAM, NEAR]
    assert outcome.counter("dram_read_bytes") == 2 * 32


def test_does_a_write_need_no_fill_and_leave_its_sectors_readable() -> None:
    outcome = run([[store(line(1), ((0, 0b0110),)), *LATER, *chase(read(1, 0b0110))]], BARE)
    times = outcome.times()
    assert times[-1] - times[-2] - 1 == NEAR
    assert outcome.counter("dram_read_bytes") == 0
    assert outcome.counter("l2_write_sectors") == 2


def test_does_eviction_write_back_exactly_the_dirty_sectors() -> None:
    machine = replace(BARE, l2_sets=1, l2_ways=1)
    outcome = run([[store(line(1), ((0, 0b0111),)), *LATER, *chase(read(2), read(3))]], machine)
    assert outcome.counter("dram_write_bytes") == 3 * 32


def test_does_a_clean_line_leave_without_a_write() -> None:
    machine = replace(BARE, l2_sets=1, l2_ways=1)
    assert run([chase(read(1), read(2), read(3))], machine).counter("dram_write_bytes") == 0


def test_does_a_write_drop_the_copy_in_the_other_partition() -> None:
    """SM 0 has a near copy of a line of partition 1; after SM 1's write it must ask there again."""
    (n, *_) = homes(2, home=1)
    reader = [*chase(read(n), read(n)), *LATER, *chase(read(n), read(n))]
    writer = [*LATER[:50], nop(stall=15), store(line(n))]
    times = run_on_two(reader, writer).times(sm=0)
    before = [times[i + 1] - times[i] - 1 for i in (0, 2)]
    after = [times[i + 1] - times[i] - 1 for i in (len(times) - 4, len(times) - 2)]
    assert before[1] == NEAR
    assert after == [NEAR + FAR, NEAR]


@pytest.mark.parametrize(("parameter", "n_lines"), [("dram_read_sector", 64), ("coalescer_sector", 64)])
def test_does_bandwidth_limit_many_reads(parameter: str, n_lines: int) -> None:
    """Two cycles a sector, four sectors a line."""
    machine = replace(BARE, memory={parameter: 2})
    outcome = run([[load(line(n), write=0) for n in range(n_lines)] + [nop(wait=(0,))]], machine)
    transfer = 2 * 4 * n_lines
    assert transfer <= outcome.times()[-1] <= transfer + NEAR + DRAM + n_lines


def test_do_written_sectors_take_their_bandwidth() -> None:
    machine = replace(BARE, memory={"l2_write_sector": 3}, sm={**BARE.sm, "store_backlog": 0})
    outcome = run([[store(line(n)) for n in range(60)]], machine)
    assert outcome.times()[-1] >= 3 * 4 * 40


def test_do_atomics_on_one_address_follow_one_another() -> None:
    machine = replace(BARE, memory={"atomic_same_address": 10})
    same = run([[atomic(line(1), write=0)] * 8 + [nop(wait=(0,))]], machine)
    apart = run([[atomic(line(n), write=0) for n in range(8)] + [nop(wait=(0,))]], machine)
    assert same.times()[-1] >= 8 * 10 + NEAR
    assert apart.times()[-1] <= 8 + 10 + NEAR + 1
    lanes = run([[atomic(line(1), write=0, same=32), nop(wait=(0,))]], machine)
    assert lanes.times()[-1] == 1 + 32 * 10 + NEAR


def test_are_near_far_and_missed_sectors_all_that_was_read() -> None:
    outcome = run_on_two(chase(*(read(n) for n in range(1, 30))), chase(*(read(n) for n in range(10, 40))))
    read_sectors = outcome.counter("l2_read_sectors")
    hits = outcome.counter("l2_near_hit_sectors") + outcome.counter("l2_far_hit_sectors")
    assert read_sectors == hits + outcome.counter("l2_miss_sectors")


def test_does_each_coalescer_have_a_port_of_its_own() -> None:
    """Two SMs that read 64 lines each: twice as long behind one port as behind one each."""
    stream = [load(line(n), write=0) for n in range(64)] + [nop(wait=(0,))]
    other = [load(line(1000 + n), write=0) for n in range(64)] + [nop(wait=(0,))]
    slow_port = {"coalescer_sector": 4}
    ends = {}
    for domains in ((0, 0), (0, 1)):
        machine = replace(TWO_PARTITIONS, n_domains=2, partition_of=(0, 0), domain_of=domains, memory=slow_port)
        outcome = run_on_two(stream, other, machine)
        ends[domains] = max(outcome.times(sm=0)[-1], outcome.times(sm=1)[-1])
    busy = 4 * 4 * 64
    assert ends[0, 0] >= 2 * busy
    assert busy <= ends[0, 1] <= busy + NEAR + DRAM + FAR + 200


def test_does_a_reader_of_its_own_write_hit_near() -> None:
    """The partition next to the writer keeps what it passes on, whatever the line's home is."""
    lines = range(8)
    outcome = run([[store(line(n)) for n in lines] + [nop(stall=2000)] + chase(*(read(n) for n in lines))], TWO_PARTITIONS)
    times = outcome.times()[-2 * len(lines) :]
    assert [times[i + 1] - times[i] - 1 for i in range(0, len(times), 2)] == [NEAR] * len(lines)
