"""Asynchronous MMA: four warps start one together, the SM runs one at a time, warps wait for groups of them."""

from __future__ import annotations

import pytest

from tests.engine.instructions import alu, mma, nop, shared, wait_mma
from tests.engine.machine import run

GROUP = 4


def test_does_a_group_end_its_latency_after_its_interval() -> None:
    outcome = run([[mma(32, latency=10), wait_mma()]] * GROUP)
    assert [outcome.times(warp) for warp in range(GROUP)] == [[0, 42]] * GROUP


@pytest.mark.parametrize("late", [1, 7, 100])
def test_does_an_mma_start_with_the_last_of_its_four_warps(late: int) -> None:
    body = [mma(32, latency=10), wait_mma()]
    outcome = run([body, body, body, [nop(stall=late), *body]])
    assert [outcome.times(warp)[-1] for warp in range(GROUP)] == [late + 42] * GROUP


def test_does_the_sm_run_one_mma_at_a_time() -> None:
    outcome = run([[mma(32, latency=10), mma(16, latency=10), mma(8, latency=10), wait_mma()]] * GROUP)
    assert outcome.times()[-1] == 32 + 16 + 8 + 10


def test_do_two_warpgroups_share_the_tensor_cores() -> None:
    outcome = run([[mma(32, latency=10), wait_mma()]] * (2 * GROUP))
    assert outcome.times(0)[-1] == 32 + 10
    assert outcome.times(GROUP)[-1] == 32 + 32 + 10


@pytest.mark.parametrize(("pending", "expected"), [(0, 106), (1, 74), (2, 42), (3, 3), (9, 3)])
def test_does_a_wait_leave_that_many_groups_pending(pending: int, expected: int) -> None:
    outcome = run([[mma(32, latency=10), mma(32, latency=10), mma(32, latency=10), wait_mma(pending)]] * GROUP)
    assert outcome.times()[-1] == expected


def test_is_a_group_all_mmas_since_the_last_commit() -> None:
    outcome = run([[mma(32, commits=False), mma(32), wait_mma()]] * GROUP)
    assert outcome.times()[-1] == 64
    outcome = run([[mma(32), mma(32, commits=False), wait_mma()]] * GROUP)
    assert outcome.times()[-1] == 32


def test_does_a_wait_without_groups_pass() -> None:
    assert run([[nop(), wait_mma(), nop()]] * GROUP).times() == [0, 1, 2]


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_does_the_queue_take_its_depth_beside_the_running_mma(depth: int) -> None:
    outcome = run([[mma(32)] * 6] * GROUP, sm={"tensor_queue": depth})
    assert outcome.times() == [n if n <= depth else 32 * (n - depth) for n in range(6)]


def test_does_a_warp_wait_for_room_until_its_group_has_caught_up() -> None:
    """With a queue of one, warp 0 cannot issue its third MMA before warp 3 has issued the second."""
    quick, slow = [mma(4)] * 3, [mma(4), nop(stall=50), mma(4), mma(4)]
    outcome = run([quick, quick, quick, slow], sm={"tensor_queue": 1})
    assert outcome.times(3) == [0, 1, 51, 52]
    assert outcome.times(0) == [0, 1, 51]


def test_does_issue_take_its_interval() -> None:
    outcome = run([[mma(4), mma(4), alu()]] * GROUP, sm={"tensor_issue": 3, "tensor_queue": 8})
    assert outcome.times() == [0, 3, 4]


def test_does_an_mma_take_as_long_as_its_operands_need_the_port() -> None:
    outcome = run([[mma(32, latency=10, port=48), wait_mma()]] * GROUP)
    assert outcome.times()[-1] == 48 + 10


def test_does_an_instruction_beside_an_mma_take_its_contention_longer_to_dispatch() -> None:
    work = [alu(contention=1), alu(contention=2), alu()]
    outcome = run([[mma(10), *work], *[[mma(10)]] * 3])
    assert outcome.times() == [0, 1, 3, 6]


@pytest.mark.parametrize("latency", [0, 2])
def test_does_contention_end_when_the_mma_has_written_its_result(latency: int) -> None:
    outcome = run([[mma(3, latency), *[alu(contention=1)] * 5], *[[mma(3, latency)]] * 3])
    assert outcome.times() == ([0, 1, 3, 4, 5, 6] if latency == 0 else [0, 1, 3, 5, 6, 7])


def test_does_an_instruction_without_contention_not_notice_an_mma() -> None:
    outcome = run([[mma(20), alu(), alu(), alu()], *[[mma(20)]] * 3])
    assert outcome.times() == [0, 1, 2, 3]


def test_does_contention_begin_when_the_mma_starts() -> None:
    """It starts at 3, with the issue of warp 3, which comes after that of warp 0 in the same cycle."""
    work = [alu(contention=1)] * 6
    outcome = run([[mma(50), *work], *[[mma(50)]] * 2, [nop(stall=3), mma(50)]])
    assert outcome.times() == [0, 1, 2, 3, 4, 6, 8]


def test_does_contention_shrink_while_the_mmas_of_one_warpgroup_follow_each_other() -> None:
    body = [mma(50), mma(50), alu(stall=13), *[alu(contention=2)] * 3]
    outcome = run([body, *[[mma(50), mma(50)]] * 3], sm={"same_group": 0.5})
    assert outcome.times()[3:] == [15, 17, 19]
    alternating = run([*[body] * 4, *[[mma(50)]] * 4], sm={"same_group": 0.5})
    assert alternating.times()[3:] == [15, 18, 21]


def test_do_fewer_warps_than_a_warpgroup_start_together() -> None:
    outcome = run([[mma(32), wait_mma()], [nop(stall=9), mma(32), wait_mma()]])
    assert outcome.times(0)[-1] == 9 + 32


def test_do_groups_of_different_warpgroups_not_open_each_other() -> None:
    first = [mma(8), wait_mma()]
    second = [mma(100), mma(8), wait_mma(1)]
    outcome = run([*[first] * GROUP, *[second] * GROUP])
    assert outcome.times(0)[-1] == 8
    assert outcome.times(GROUP)[-1] == 108


def test_is_the_busy_time_of_the_tensor_cores_counted() -> None:
    outcome = run([[mma(32), mma(16, port=24), wait_mma(), shared()]] * GROUP)
    assert outcome.counter("tensor_busy_ticks") == (32 + 24) << 16


def test_does_a_long_run_of_mmas_keep_its_order() -> None:
    """More MMAs than the engine's rings have entries."""
    n = 200
    outcome = run([[mma(2)] * n + [wait_mma()]] * GROUP)
    assert outcome.times()[-1] == 2 * n
