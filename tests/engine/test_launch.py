"""CTAs onto SMs: launch latency and interval, slots, turnaround, order."""

from __future__ import annotations

from tests.engine.instructions import alu, mma, nop, shared, try_wait, wait_mma
from tests.engine.machine import run
from tests.engine.programs import assemble


def test_does_the_first_cta_start_after_the_launch_latency() -> None:
    assert run([[nop()]], sm={"launch_latency": 700}).times() == [700]


def test_do_the_ctas_of_an_sm_start_an_interval_apart() -> None:
    outcome = run(assemble([[nop()]], n_ctas=3), n_slots=3, sm={"launch_latency": 100, "cta_interval": 40})
    assert [start for start, _ in outcome.spans()] == [100, 140, 180]


def test_does_each_sm_have_its_own_interval() -> None:
    outcome = run(assemble([[nop()]], n_ctas=4), members=((0,), (1,)), n_slots=2, sm={"cta_interval": 40})
    assert [start for start, _ in outcome.spans()] == [0, 0, 40, 40]


def test_are_ctas_dealt_in_rounds_over_the_sms() -> None:
    outcome = run(assemble([[nop()]], n_ctas=5), members=((0,), (1,)), n_slots=4)
    assert [(issue.sm, issue.slot) for issue in sorted(outcome.log, key=lambda i: (i.slot, i.sm))] == [
        (0, 0), (1, 0), (0, 1), (1, 1), (0, 2),
    ]  # fmt: skip


def test_does_a_slot_take_the_next_cta_after_its_turnaround() -> None:
    outcome = run(assemble([[nop(), nop(stall=10), nop()]], n_ctas=3), sm={"cta_turnaround": 100})
    assert outcome.spans() == [(0, 11), (111, 122), (222, 233)]


def test_does_a_slot_wait_for_its_slowest_warp() -> None:
    outcome = run(assemble([[nop()], [nop(stall=50), nop()]], n_ctas=2), sm={"cta_turnaround": 10})
    assert outcome.spans() == [(0, 50), (60, 110)]


def test_does_the_interval_also_space_the_ctas_that_follow() -> None:
    """Both slots are free at 1, their next CTAs start 30 apart."""
    program = assemble([[nop(), nop()]], n_ctas=4)
    outcome = run(program, n_slots=2, sm={"cta_interval": 30, "launch_latency": 0})
    starts = [start for start, _ in outcome.spans()]
    assert starts == [0, 30, 60, 90]


def test_does_the_sm_that_is_free_first_take_the_next_cta() -> None:
    program = assemble(classes=[[[nop(stall=100), nop()]], [[nop(stall=7), nop()]]], cta_class=[0, 1, 1, 1])
    outcome = run(program, members=((0,), (1,)), sm={"cta_turnaround": 1})
    assert [issue.sm for issue in outcome.log if issue.position == 0] == [0, 1, 1, 1]
    assert outcome.spans() == [(0, 100), (0, 7), (8, 15), (16, 23)]


def test_does_each_class_run_its_own_streams() -> None:
    program = assemble(classes=[[[nop()]], [[nop(), nop(), nop()]]], cta_class=[0, 1, 0])
    outcome = run(program, n_slots=3)
    assert [len(outcome.times(slot=slot)) for slot in range(3)] == [1, 3, 1]


def test_do_slots_fill_the_sub_partitions_in_turn() -> None:
    """CTAs of two warps: the second slot's warps sit on the other two sub-partitions."""
    outcome = run(assemble([[alu(8)], [alu(8)]], n_ctas=3), n_slots=3)
    firsts = [outcome.times(warp, slot)[0] for slot in range(3) for warp in range(2)]
    assert firsts == [0, 0, 0, 0, 8, 8]


def test_does_the_older_cta_come_first_on_a_shared_sub_partition() -> None:
    outcome = run(assemble([[nop(), nop()]] * 4, n_ctas=2), n_slots=2)
    assert outcome.times(slot=0) == [0, 1]
    assert outcome.times(slot=1) == [2, 3]


def test_do_ctas_of_an_sm_share_its_tensor_cores_and_its_port() -> None:
    outcome = run(assemble([[mma(32), wait_mma()]] * 4, n_ctas=2), n_slots=2)
    assert sorted(outcome.times(slot=slot)[-1] for slot in range(2)) == [32, 64]
    outcome = run(assemble([[shared(32, write=0), alu(wait=(0,))]], n_ctas=2), n_slots=2)
    assert sorted(outcome.times(slot=slot)[-1] for slot in range(2)) == [51, 83]


def test_does_a_new_cta_find_fresh_scoreboards_and_barriers() -> None:
    """The first CTA leaves a result in flight; an mbarrier of the next one is in its first phase again."""
    body = [alu(latency=1000, write=0), nop()]
    outcome = run(assemble([[*body, nop(wait=(1,))]], n_ctas=2), sm={"cta_turnaround": 1})
    assert outcome.spans() == [(0, 2), (3, 5)]
    outcome = run(assemble([[try_wait(1, write=1), nop(wait=(1,))]], n_ctas=2))
    assert outcome.finished


def test_does_an_empty_warp_not_hold_its_cta() -> None:
    outcome = run(assemble([[nop(), nop()], []], n_ctas=2), sm={"cta_turnaround": 1})
    assert outcome.finished
    assert outcome.spans() == [(0, 1), (2, 3)]
