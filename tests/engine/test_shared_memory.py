"""Shared memory: the interface of a sub-partition, the port of the SM, the queue in front of them."""

from __future__ import annotations

import pytest

from tests.engine.instructions import alu, nop, shared
from tests.engine.machine import run

LATENCY = 20
PORT_WINDOW_CYCLES = 16
"""The port's bandwidth is kept over windows of this length."""


def completion(n_warps: int, n_accesses: int, wavefronts: int = 1) -> float:
    """When the last result of ``n_accesses`` of each of ``n_warps`` warps is usable."""
    access = shared(wavefronts, LATENCY, write=0)
    outcome = run([[*[access] * n_accesses, alu(wait=(0,))]] * n_warps, sm={"shared_queue": 60})
    return max(outcome.times(warp)[-1] for warp in range(n_warps))


def test_does_a_lone_access_take_its_latency() -> None:
    assert completion(1, 1) == LATENCY


@pytest.mark.parametrize("wavefronts", [2, 4, 32])
def test_does_each_further_wavefront_take_one_cycle_of_the_port(wavefronts: int) -> None:
    assert completion(1, 1, wavefronts) == LATENCY + wavefronts - 1


@pytest.mark.parametrize("n", [2, 10, 50])
def test_does_one_sub_partition_get_a_wavefront_every_second_cycle(n: int) -> None:
    assert completion(1, n) == 2 * (n - 1) + LATENCY


@pytest.mark.parametrize("n_warps", [2, 4, 8])
def test_do_several_sub_partitions_together_get_one_wavefront_a_cycle(n_warps: int) -> None:
    n = 240 // n_warps
    ideal = n * n_warps - 1 + LATENCY
    assert ideal - PORT_WINDOW_CYCLES <= completion(n_warps, n) <= ideal + PORT_WINDOW_CYCLES


def test_do_two_warps_of_one_sub_partition_not_exceed_its_interface() -> None:
    warps = [[shared(latency=LATENCY, write=0)] * 25 + [alu(wait=(0,))] if lane % 4 == 0 else [nop()] for lane in range(5)]
    outcome = run(warps, sm={"shared_queue": 60})
    assert max(outcome.times(0)[-1], outcome.times(4)[-1]) == 2 * 49 + LATENCY


def test_does_a_cross_lane_instruction_hold_the_interface_for_its_interval() -> None:
    shuffle = shared(1, LATENCY, interval=8, write=0)
    outcome = run([[*[shuffle] * 10, alu(wait=(0,))]])
    assert outcome.times()[-1] == 9 * 8 + LATENCY
    four = run([[*[shuffle] * 10, alu(wait=(0,))]] * 4)
    assert max(four.times(warp)[-1] for warp in range(4)) <= 9 * 8 + LATENCY + PORT_WINDOW_CYCLES


def test_does_the_queue_take_accesses_until_it_is_full() -> None:
    """Depth 2: the third waits until the first has left (after 2 cycles), the fourth for the second (after 4)."""
    outcome = run([[shared()] * 6], sm={"shared_queue": 2})
    assert outcome.times() == [0, 1, 2, 4, 6, 8]


def test_does_a_deeper_queue_take_more_at_once() -> None:
    """Access n leaves after 2 (n + 1) cycles; access n + 8 needs its place."""
    outcome = run([[shared()] * 24], sm={"shared_queue": 8})
    assert outcome.times() == [max(n, 2 * (n - 8 + 1)) for n in range(24)]


def test_does_a_full_queue_hold_only_accesses() -> None:
    outcome = run([[shared(16), shared(16), alu(), shared(16)]], sm={"shared_queue": 1})
    first, second, other, third = outcome.times()
    assert (first, second, other) == (0, 32, 33)
    assert third == 64


def test_are_operands_read_when_the_last_wavefront_starts() -> None:
    outcome = run([[shared(8, LATENCY, read=1), alu(wait=(1,))]], sm={"operand_release": 3})
    assert outcome.times() == [0, 7 + 3]


def test_are_wavefronts_counted() -> None:
    assert run([[shared(3), shared(5), shared(7, active=0)]] * 2).counter("shared_wavefronts") == 16
