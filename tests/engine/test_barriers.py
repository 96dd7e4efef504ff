"""Named barriers and cluster barriers."""

from __future__ import annotations

import pytest

from tests.engine.instructions import bar, cluster_arrive, cluster_wait, nop
from tests.engine.machine import run
from tests.engine.programs import assemble

COSTS = {"barrier_base": 14, "barrier_warp": 2}


@pytest.mark.parametrize("n_warps", [1, 2, 4, 8, 32])
def test_does_a_barrier_cost_its_base_and_a_part_per_warp(n_warps: int) -> None:
    outcome = run([[bar(), nop()]] * n_warps, sm=COSTS)
    last_arrival = (n_warps - 1) // 4
    first = min(outcome.times(warp)[1] for warp in range(n_warps))
    assert 14 + 2 * n_warps <= first <= last_arrival + 14 + 2 * n_warps


def test_do_all_warps_go_on_when_the_last_has_arrived() -> None:
    outcome = run([[bar(), nop()], [nop(stall=50), bar(), nop()]], sm=COSTS)
    assert outcome.times(0) == [0, 50 + 2 + 14]
    assert outcome.times(1) == [0, 50, 50 + 2 + 14]


def test_does_a_counted_barrier_wait_for_its_threads_alone() -> None:
    pair = [bar(1, threads=64), nop()]
    outcome = run([pair, pair, [nop(stall=500), nop()]])
    assert outcome.times(0) == outcome.times(1) == [0, 1]
    assert outcome.times(2) == [0, 500]


def test_does_an_arrival_that_does_not_wait_go_on() -> None:
    producer = [bar(2, threads=64, waits=False), nop()]
    consumer = [nop(stall=30), bar(2, threads=64), nop()]
    outcome = run([producer, consumer])
    assert outcome.times(0) == [0, 1]
    assert outcome.times(1) == [0, 30, 31]


def test_does_a_waiting_warp_need_the_arrival_that_does_not_wait() -> None:
    producer = [nop(stall=30), bar(2, threads=64, waits=False), nop()]
    consumer = [bar(2, threads=64), nop()]
    outcome = run([producer, consumer], sm=COSTS)
    assert outcome.times(0) == [0, 30, 31]
    assert outcome.times(1) == [0, 30 + 2 + 14]


def test_do_barriers_of_different_numbers_not_mix() -> None:
    outcome = run([[bar(1, threads=64), nop()], [bar(2, threads=64), nop()]])
    assert not outcome.finished
    assert outcome.n_issued == 2


def test_do_exited_warps_count_as_arrived() -> None:
    outcome = run([[bar(), nop()], [nop()], [nop(stall=9), bar(), nop()]], sm=COSTS)
    assert outcome.times(0) == [0, 9 + 2 + 14]


def test_does_the_exit_of_the_last_missing_warp_open_a_barrier() -> None:
    outcome = run([[bar(), nop()], [nop(stall=20), nop()]], sm=COSTS)
    assert outcome.finished
    assert outcome.times(0)[1] >= 20


def test_can_a_barrier_be_used_again() -> None:
    outcome = run([[bar(), bar(), bar()], [bar(), nop(stall=5), bar(), bar()]], sm={"barrier_base": 10})
    assert outcome.times(0) == [0, 10, 25]
    assert outcome.times(1) == [0, 10, 15, 25]


def test_do_ctas_not_share_barriers() -> None:
    program = assemble([[bar(), nop()], [nop(stall=40), bar(), nop()]], n_ctas=2)
    outcome = run(program, n_slots=2, sm={"cta_interval": 100})
    assert outcome.times(0, slot=0)[0] == 0
    assert outcome.times(0, slot=0)[1] == 40
    assert outcome.times(0, slot=1) == [100, 140]


def test_does_a_cluster_barrier_open_a_fixed_time_after_its_last_arrival() -> None:
    body = [cluster_arrive(), cluster_wait(), nop()]
    outcome = run([body, [nop(stall=60), *body]], sm={"cluster_barrier": 300})
    assert outcome.times(0) == [0, 1, 60 + 300]
    assert outcome.times(1) == [0, 60, 61, 60 + 300]


def test_does_work_between_arrival_and_wait_hide_the_cluster_barrier() -> None:
    body = [cluster_arrive(), nop(stall=80), cluster_wait(), nop()]
    assert run([body] * 2, sm={"cluster_barrier": 100}).times() == [0, 1, 81, 100]
    assert run([body] * 2, sm={"cluster_barrier": 50}).times() == [0, 1, 81, 82]


def test_may_a_warp_arrive_again_before_a_slow_one_has_waited() -> None:
    quick = [cluster_arrive(), cluster_wait(), cluster_arrive(), cluster_wait(), nop()]
    slow = [cluster_arrive(), nop(stall=500), cluster_wait(), cluster_arrive(), cluster_wait(), nop()]
    outcome = run([quick, slow], sm={"cluster_barrier": 100})
    assert outcome.finished
    second_arrival = outcome.times(1)[3]
    assert outcome.times(0)[-1] == outcome.times(1)[-1] == second_arrival + 100
