"""A kernel that cannot go on ends with a sentence: which warps wait where."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from simulator.device.machine import collect
from simulator.projection.stuck import describe_deadlock
from tests.engine.instructions import arrive, bar, cluster_wait, init, mma, nop, try_wait, wait_mma
from tests.engine.machine import Machine, run
from tests.engine.programs import Op, assemble

AFTER = nop(wait=(0,))


def sentence(warps: list[list[Op]], n_ctas: int = 1, n_slots: int = 1) -> str:
    """What the user reads about a program that gets stuck. Instruction n is at address 16 n and reads 'OP n'."""
    program = assemble(warps, n_ctas=n_ctas)
    machine = Machine(n_slots=n_slots)
    outcome = run(program, machine)
    result = collect(outcome.x, machine.shape(program), outcome.n_issued)
    assert not result.finished
    static = SimpleNamespace(
        address=[16 * n for n in range(len(program.static))], text=[f"OP {n}" for n in range(len(program.static))]
    )
    trace = SimpleNamespace(kernel="stuck", launch=SimpleNamespace(n_warps=len(warps)), static=static)
    return describe_deadlock(trace, program, result)  # type: ignore[arg-type]


def test_is_a_missing_arrival_at_an_mbarrier_named() -> None:
    text = sentence([[init(count=2), arrive(), try_wait(0), AFTER]])
    assert text == "kernel 'stuck' deadlocks: warp 0 on mbarrier at 0x30 (OP 3)"


def test_is_a_barrier_with_a_missing_warp_named() -> None:
    text = sentence([[bar(3, threads=96), nop()], [bar(3, threads=96), nop()], [nop(), nop()]])
    assert "warp 0 on named barrier 3" in text
    assert "warp 1 on named barrier 3" in text
    assert "warp 2" not in text


def test_is_an_mma_that_only_some_warps_issue_named() -> None:
    text = sentence([[mma(8), wait_mma(), nop()]] * 3 + [[nop()]])
    assert text.count("on MMA group") == 3


def test_is_a_full_mma_queue_named() -> None:
    text = sentence([[mma(8)] * 12] * 3 + [[nop()]])
    assert text.count("on MMA queue") == 3


def test_are_many_waiting_warps_counted_and_not_all_listed() -> None:
    text = sentence([[bar(1, threads=32 * 30), nop()]] * 20)
    assert text.count("on named barrier 1") == 6
    assert text.endswith("and 14 more")


def test_does_one_stuck_cta_not_hide_that_others_finished() -> None:
    """The second CTA is stuck like the first; the sentence tells about one of them."""
    text = sentence([[bar(1, threads=64), nop()]], n_ctas=2, n_slots=2)
    assert text.count("named barrier") == 1


@pytest.mark.parametrize("n_ctas", [1, 3])
def test_does_a_stuck_machine_not_pretend_to_have_finished(n_ctas: int) -> None:
    outcome = run(assemble([[init(), try_wait(0), AFTER]], n_ctas=n_ctas), n_slots=3)
    assert not outcome.finished
    assert outcome.n_issued == 2 * n_ctas


def test_is_nothing_waited_for_when_all_arrive() -> None:
    assert run([[cluster_wait(), nop()]]).finished
