"""Asynchronous copies: groups of a warp's copies, bulk loads through tensor maps, groups of bulk stores."""

from __future__ import annotations

import pytest

from tests.engine.instructions import (
    alu,
    bar,
    commit,
    commit_stores,
    copy,
    copy_arrive,
    expect,
    init,
    load_box,
    nop,
    store_box,
    try_wait,
    wait_copies,
)
from tests.engine.machine import run
from tests.engine.programs import Tensor

L2_CYCLES = 200
WARM = {"near": L2_CYCLES, "dram": 0}
L1_HIT = 30
COPY_LATENCY = 1 + L2_CYCLES + L1_HIT
"""One cycle through the tag stage, to the L2 and back, into shared memory."""
SM = {"l1_hit": L1_HIT, "fill_byte": 0}
AFTER = nop(wait=(0,))


def line(n: int) -> int:
    return n * 128


def test_does_a_copy_not_hold_its_warp() -> None:
    assert run([[copy(line(1)), alu(), alu()]], sm=SM, memory=WARM).times() == [0, 1, 2]


def test_does_a_wait_end_when_its_group_is_in_shared_memory() -> None:
    outcome = run([[copy(line(1)), commit(), wait_copies()]], sm=SM, memory=WARM)
    assert outcome.times()[-1] == 1 + COPY_LATENCY


def test_is_a_group_all_copies_before_its_commit() -> None:
    outcome = run([[copy(line(1)), nop(stall=50), copy(line(2)), commit(), wait_copies()]], sm=SM, memory=WARM)
    assert outcome.times()[-1] == 51 + 1 + COPY_LATENCY


def test_does_a_group_not_contain_later_copies() -> None:
    body = [copy(line(1)), commit(stall=50), copy(line(2)), wait_copies()]
    assert run([body], sm=SM, memory=WARM).times()[-1] == 1 + COPY_LATENCY


@pytest.mark.parametrize(("pending", "group"), [(0, 2), (1, 1), (2, 0)])
def test_does_a_wait_leave_that_many_groups_pending(pending: int, group: int) -> None:
    body = [op for n in range(3) for op in (copy(line(n)), commit(stall=20))]
    outcome = run([[*body, wait_copies(pending)]], sm=SM, memory=WARM)
    issued = outcome.times()[2 * group]
    assert outcome.times()[-1] == max(issued + 1 + COPY_LATENCY, outcome.times()[5] + 20)


def test_does_a_wait_for_more_groups_than_there_are_pass() -> None:
    assert run([[copy(line(1)), commit(), wait_copies(1)]], sm=SM, memory=WARM).times() == [0, 1, 2]


def test_do_groups_belong_to_one_warp() -> None:
    outcome = run([[copy(line(1)), commit()], [nop(), wait_copies()]], sm=SM, memory=WARM)
    assert outcome.times(1) == [0, 1]


def test_does_an_mbarrier_hear_when_a_warps_copies_are_done() -> None:
    body = [init(), copy(line(1)), copy_arrive(), try_wait(0), AFTER]
    outcome = run([body], sm=SM, memory=WARM)
    assert outcome.times()[-1] == outcome.times()[1] + 1 + COPY_LATENCY


def test_does_a_fully_predicated_copy_add_nothing() -> None:
    assert run([[copy(line(1), active=0), commit(), wait_copies()]], sm=SM, memory=WARM).times() == [0, 1, 2]


def wait_for(tensor: Tensor, *boxes: tuple[int, ...], **parameters: float) -> tuple[float, float]:
    """(issue of the first bulk load, when its mbarrier opens) for boxes that are loaded one after another."""
    loads = [load_box(tensor, box) for box in boxes]
    body = [init(), expect(len(boxes) * tensor.box_bytes), *loads, try_wait(0), AFTER]
    outcome = run([body], sm={**SM, **parameters}, memory=WARM)
    return outcome.times()[2], outcome.times()[-1]


def tile(rows: int, row_cycles: float = 2) -> Tensor:
    return Tensor(shape=(64, 1024), strides=(128,), box=(64, rows), row_cycles=row_cycles)


@pytest.mark.parametrize("rows", [1, 8, 64])
def test_are_box_rows_requested_one_after_another(rows: int) -> None:
    """The last row is requested after all others; the engine is busy for the row's time in any case."""
    issued, done = wait_for(tile(rows), (0, 0))
    assert done == issued + 2 * (rows - 1) + L2_CYCLES


def test_do_boxes_queue_in_the_copy_engine() -> None:
    issued, done = wait_for(tile(8), (0, 0), (0, 8), (0, 16))
    assert done == issued + 2 * (3 * 8 - 1) + L2_CYCLES


def test_does_a_bulk_load_have_its_issue_and_completion_times() -> None:
    issued, done = wait_for(tile(8), (0, 0), bulk_issue=30, bulk_extra=50)
    assert done == issued + 30 + 2 * 7 + L2_CYCLES + 50


def test_are_rows_outside_the_tensor_not_read() -> None:
    inside = Tensor(shape=(64, 8), strides=(128,), box=(64, 8))
    body = [init(), expect(inside.box_bytes), load_box(inside, (0, 4)), try_wait(0), AFTER]
    outcome = run([body], sm=SM, memory=WARM)
    assert outcome.finished
    assert outcome.counter("l2_read_sectors") == 4 * 4
    assert outcome.counter("fill_bytes") == inside.box_bytes


def test_does_a_copy_book_the_port_that_mma_operands_use() -> None:
    heavy = Tensor(shape=(64, 1024), strides=(128,), box=(64, 8), row_cycles=1, port_cycles=64)
    issued, done = wait_for(heavy, (0, 0))
    assert done == issued + 7 + L2_CYCLES + 64


def test_does_the_source_scoreboard_of_a_bulk_store_open_after_its_release_time() -> None:
    outcome = run([[store_box(tile(8), (0, 0), read=1), alu(wait=(1,))]], sm={"bulk_release": 40})
    assert outcome.times() == [0, 40]


def test_does_a_wait_for_bulk_stores_end_when_they_are_written() -> None:
    """1024 bytes leave at 64 a cycle; then the store's own latency."""
    body = [store_box(tile(8), (0, 0)), commit_stores(), wait_copies()]
    outcome = run([body], sm={"bulk_store_latency": 100})
    assert outcome.times()[-1] == 1024 / 64 + 100


def test_do_bulk_stores_follow_one_another() -> None:
    body = [store_box(tile(8), (0, 0)), store_box(tile(8), (0, 8)), commit_stores(), wait_copies()]
    assert run([body], sm={"bulk_store_latency": 100}).times()[-1] == 2 * 1024 / 64 + 100


def test_does_a_wait_leave_bulk_store_groups_pending() -> None:
    stores = [op for n in range(2) for op in (store_box(tile(8), (0, 8 * n)), commit_stores())]
    outcome = run([[*stores, wait_copies(1), bar(), wait_copies(0)]], sm={"bulk_store_latency": 100})
    assert outcome.times()[4] == 16 + 100
    assert outcome.times()[6] == 32 + 100
