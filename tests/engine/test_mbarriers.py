"""mbarriers: arrivals, expected bytes, phases, and the waits on them."""

from __future__ import annotations

import pytest

from tests.engine.instructions import alu, arrive, bar, expect, init, load_box, nop, try_wait
from tests.engine.machine import run
from tests.engine.programs import Tensor

RELEASE = {"mbarrier_release": 10}
TILE = Tensor(shape=(64, 64), strides=(128,), box=(64, 8))
"""Eight rows of 128 bytes."""
AFTER = nop(wait=(0,))
L2_CYCLES = 200
WARM = {"near": L2_CYCLES, "dram": 0}


def test_does_a_wait_on_a_finished_phase_pass_with_its_latency() -> None:
    outcome = run([[init(), arrive(stall=20), try_wait(0, latency=5), AFTER]])
    assert outcome.times() == [0, 1, 21, 26]


@pytest.mark.parametrize("late", [1, 40])
def test_does_a_wait_end_a_release_time_after_the_last_arrival(late: int) -> None:
    consumer = [init(), bar(), try_wait(0), AFTER]
    producer = [bar(), nop(stall=late), arrive()]
    outcome = run([consumer, producer], sm=RELEASE)
    at = outcome.times(1)[-1]
    assert outcome.times(0)[-1] == at + 10


def test_does_a_phase_need_every_arrival() -> None:
    consumer = [init(count=3), bar(), try_wait(0), AFTER]
    outcome = run([consumer, [bar(), arrive(), nop(stall=30), arrive()], [bar(), nop(stall=90), arrive()]], sm=RELEASE)
    assert outcome.times(0)[-1] == outcome.times(2)[-1] + 10


def test_does_one_instruction_arrive_several_times() -> None:
    assert run([[init(count=3), arrive(count=3, stall=20), try_wait(0), AFTER]]).times() == [0, 1, 21, 22]


def test_does_a_phase_need_its_expected_bytes() -> None:
    """The last of eight rows is requested seven cycles after the first."""
    body = [init(), expect(TILE.box_bytes), load_box(TILE, (0, 0)), try_wait(0), AFTER]
    outcome = run([body], sm=RELEASE, memory=WARM)
    issued = outcome.times()[2]
    assert outcome.times()[-1] == issued + 7 + L2_CYCLES + 10


def test_may_bytes_come_before_their_expectation() -> None:
    body = [init(), load_box(TILE, (0, 0)), nop(stall=500), expect(TILE.box_bytes), try_wait(0), AFTER]
    outcome = run([body], sm=RELEASE, memory=WARM)
    expected_at = outcome.times()[3]
    assert outcome.times()[-1] == expected_at + 10


def test_do_bytes_alone_not_end_a_phase() -> None:
    body = [init(count=2), expect(TILE.box_bytes), load_box(TILE, (0, 0)), try_wait(0), AFTER]
    outcome = run([body])
    assert not outcome.finished
    assert outcome.n_issued == 4


def test_does_an_arrival_alone_not_end_a_phase_with_missing_bytes() -> None:
    body = [init(), expect(2 * TILE.box_bytes), load_box(TILE, (0, 0)), try_wait(0), AFTER]
    assert not run([body]).finished


def test_do_two_copies_fill_one_expectation() -> None:
    copies = [load_box(TILE, (0, 0)), load_box(TILE, (0, 8))]
    outcome = run([[init(), expect(2 * TILE.box_bytes), *copies, try_wait(0), AFTER]], memory=WARM)
    assert outcome.finished
    assert outcome.times()[-1] == outcome.times()[2] + 15 + L2_CYCLES


def test_does_parity_tell_phases_apart() -> None:
    """The wait for parity 1 ends with the second phase."""
    body = [init(), arrive(stall=20), try_wait(0), nop(wait=(0,), stall=40), arrive(stall=5), try_wait(1), AFTER]
    outcome = run([body], sm=RELEASE)
    second_arrival = outcome.times()[4]
    assert outcome.times()[-1] == second_arrival + 10


def test_is_the_phase_before_the_first_one_over() -> None:
    """A producer's first wait for an empty buffer asks for parity 1 of a fresh barrier."""
    assert run([[init(), try_wait(1), AFTER]]).finished


def test_does_a_wait_for_the_running_phase_block() -> None:
    outcome = run([[init(), arrive(stall=20), try_wait(1), AFTER]])
    assert not outcome.finished


def test_do_all_waiting_warps_go_on_together() -> None:
    consumer = [bar(), try_wait(0), AFTER]
    outcome = run([[init(), bar(), nop(stall=60), arrive()], consumer, consumer, consumer], sm=RELEASE)
    at = outcome.times(0)[-1]
    assert [outcome.times(warp)[-1] for warp in (1, 2, 3)] == [at + 10] * 3


def test_does_work_go_on_while_a_wait_is_open() -> None:
    consumer = [init(), bar(), try_wait(0), alu(), alu(), AFTER]
    outcome = run([consumer, [bar(), nop(stall=50), arrive()]])
    _, _, asked, first, second, passed = outcome.times(0)
    assert (first, second) == (asked + 1, asked + 2)
    assert passed == outcome.times(1)[-1]


def test_does_a_second_wait_come_after_the_first_is_answered() -> None:
    consumer = [init(0), init(1), bar(), try_wait(0, 0, write=0), try_wait(0, 1, write=1), nop(wait=(1,))]
    outcome = run([consumer, [bar(), arrive(1), nop(stall=50), arrive(0)]])
    assert outcome.finished
    assert outcome.times(0)[4] == outcome.times(1)[-1]


def test_do_barriers_at_different_places_not_mix() -> None:
    outcome = run([[init(0), init(1), arrive(1), try_wait(0, 0), AFTER]])
    assert not outcome.finished


def test_does_a_barrier_operation_take_the_shared_memory_port() -> None:
    """Operations of four sub-partitions follow one another through the port."""
    body = [bar(), arrive(write=1), nop(wait=(1,))]
    outcome = run([[init(), *body], body, body, body], sm={"mbarrier_port": 4})
    lasts = sorted(outcome.times(warp)[-1] for warp in range(4))
    assert lasts[-1] - lasts[0] >= 2 * 4
