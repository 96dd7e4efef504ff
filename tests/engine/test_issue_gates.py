"""When may an instruction issue? Every gate is tight: not a cycle early, not a cycle late."""

from __future__ import annotations

import pytest

from simulator.isa import effects as fx
from tests.engine.instructions import alu, branch, fence, load, nop, shared
from tests.engine.machine import Issue, run


@pytest.mark.parametrize("stall", [1, 2, 5, 15])
def test_does_the_stall_count_hold_the_next_instruction_for_exactly_its_cycles(stall: int) -> None:
    assert run([[alu(stall=stall), alu()]]).times() == [0, stall]


@pytest.mark.parametrize("latency", [1, 2, 23, 24])
def test_does_a_write_scoreboard_open_with_the_result(latency: int) -> None:
    assert run([[alu(latency=latency, write=0), alu(wait=(0,))]]).times() == [0, max(1, latency)]


def test_does_a_scoreboard_count_every_operation_in_flight() -> None:
    slow, fast = alu(latency=30, write=2), alu(latency=10, write=2)
    assert run([[slow, fast, alu(wait=(2,))]]).times() == [0, 1, 30]
    assert run([[fast, slow, alu(wait=(2,))]]).times() == [0, 1, 31]


def test_does_a_read_scoreboard_open_when_operands_were_read() -> None:
    outcome = run([[alu(latency=50, read=1), alu(wait=(1,))]], sm={"scoreboard_release": 7})
    assert outcome.times() == [0, 7]


def test_does_a_wait_mask_wait_for_all_its_scoreboards() -> None:
    first, second, third = (alu(latency=n, write=b) for n, b in ((20, 0), (40, 3), (30, 5)))
    assert run([[first, second, third, alu(wait=(0, 3, 5))]]).times()[-1] == 41
    assert run([[first, second, third, alu(wait=(0, 5))]]).times()[-1] == 32
    assert run([[first, second, third, alu(wait=(0,))]]).times()[-1] == 20


def test_does_a_scoreboard_that_is_not_waited_for_hold_nothing() -> None:
    assert run([[alu(latency=99, write=0), alu(wait=(1,))]]).times() == [0, 1]


def test_do_scoreboards_belong_to_one_warp() -> None:
    assert run([[alu(latency=99, write=0)], [alu(wait=(0,))]]).times(warp=1) == [0]


@pytest.mark.parametrize("interval", [1, 2, 4, 6.0625])
def test_is_a_pipe_busy_for_its_initiation_interval(interval: float) -> None:
    assert run([[alu(interval), alu(interval), alu(interval)]]).times() == [0, interval, 2 * interval]


def test_do_different_pipes_take_instructions_side_by_side() -> None:
    both = [alu(8), alu(8, pipe=fx.PIPE_FMA), alu(8)]
    assert run([both]).times() == [0, 1, 8]


def test_do_the_warps_of_one_sub_partition_share_a_pipe_and_others_not() -> None:
    warps = [[alu(8)] for _ in range(5)]
    outcome = run(warps)
    assert [outcome.times(warp)[0] for warp in range(5)] == [0, 0, 0, 0, 8]


def test_does_a_sub_partition_issue_one_instruction_a_cycle() -> None:
    outcome = run([[nop()] for _ in range(12)])
    assert [outcome.times(warp)[0] for warp in range(12)] == [0] * 4 + [1] * 4 + [2] * 4


def test_does_a_fully_predicated_instruction_issue_without_doing_anything() -> None:
    off = alu(9, latency=50, write=0, read=1, active=0)
    assert run([[off, off, alu(wait=(0, 1))]]).times() == [0, 1, 2]
    assert run([[alu(latency=20, write=0), alu(active=0, stall=3, wait=(0,)), alu()]]).times() == [0, 20, 23]


def test_does_the_scheduler_stay_with_a_warp_that_can_go_on() -> None:
    """Warps 0, 4 and 8 share a sub-partition."""
    warps = [[nop(), nop(), nop()] if lane % 4 == 0 else [nop()] for lane in range(9)]
    outcome = run(warps)
    assert [outcome.times(lane) for lane in (0, 4, 8)] == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]


def test_does_the_oldest_ready_warp_follow_when_the_last_one_waits() -> None:
    warps = [[nop(stall=2)] * 3 if lane % 4 == 0 else [nop()] for lane in range(9)]
    outcome = run(warps)
    assert [outcome.times(lane) for lane in (0, 4, 8)] == [[0, 2, 4], [1, 3, 5], [6, 8, 10]]


def test_does_an_older_warp_that_becomes_ready_not_interrupt_a_running_one() -> None:
    warps = [[alu(latency=3, write=0), alu(wait=(0,))], *[[nop()]] * 3, [nop()] * 6]
    outcome = run(warps)
    assert outcome.times(4) == [1, 2, 3, 4, 5, 6]
    assert outcome.times(0) == [0, 7]


def test_does_only_a_taken_branch_cost_its_redirection() -> None:
    loop = [alu(), branch()]
    assert run([[*loop, *loop, nop()]], sm={"taken_branch": 12}).times() == [0, 1, 13, 14, 15]


def test_does_a_stall_count_beyond_the_branch_cost_win() -> None:
    loop = [alu(), branch(stall=15)]
    assert run([[*loop, *loop]], sm={"taken_branch": 12}).times() == [0, 1, 16, 17]


def test_does_a_fence_hold_its_warp_alone() -> None:
    outcome = run([[fence(latency=30), nop()], [nop(), nop()]])
    assert outcome.times(0) == [0, 30]
    assert outcome.times(1) == [0, 1]


def test_is_the_log_in_time_order_with_every_instruction_once() -> None:
    outcome = run([[shared(write=0), alu(wait=(0,)), nop()], [load(0, write=0), alu(wait=(0,))]])
    assert [issue.at for issue in outcome.log] == sorted(issue.at for issue in outcome.log)
    places = sorted((issue.warp, issue.position) for issue in outcome.log)
    assert places == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]
    assert outcome.log[0] == Issue(0, 0, 0, 0, 0)
