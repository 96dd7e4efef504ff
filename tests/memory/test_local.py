"""Local memory: each word of a thread's frame is a line of its warp, stored through to the L2."""

from __future__ import annotations

from dataclasses import replace

from simulator.isa import effects as fx
from tests.engine.instructions import nop
from tests.engine.machine import Machine, run
from tests.engine.programs import Event, Op, assemble

NEAR = 200
HIT = 30
MACHINE = Machine(
    sm={"l1_hit": HIT, "l1_tag": 0, "wavefront": 1, "fill_byte": 0, "store_byte": 0},
    memory={"near": NEAR, "dram": 0},
    l1_ways=8,
)
PASS = 2
"""Cycles from issue through the data path: one word is one wavefront."""


def spill(word: int, n_words: int = 1, **fields: object) -> Op:
    event = Event(address=4 * word, count=n_words)
    return Op(fx.LOCAL_STORE, fx.PIPE_GLOBAL, event=event, **fields)  # type: ignore[arg-type]


def fill(word: int, n_words: int = 1) -> Op:
    return Op(fx.LOCAL_LOAD, fx.PIPE_GLOBAL, write=0, event=Event(address=4 * word, count=n_words))


AFTER = nop(wait=(0,))
LATER = nop(stall=500)


def latency(*before: Op) -> float:
    """Of a load of word 3 after other accesses."""
    times = run([[*before, LATER, fill(3), AFTER]], MACHINE).times()
    return times[-1] - times[-2]


def test_does_a_spilled_word_come_back_from_the_l2() -> None:
    assert latency(spill(3)) == PASS + NEAR + HIT


def test_does_a_word_that_was_loaded_before_hit_the_l1() -> None:
    assert latency(spill(3), fill(3)) == PASS + HIT


def test_does_a_second_spill_take_a_loaded_word_out_of_the_l1() -> None:
    assert latency(spill(3), fill(3), spill(3)) == PASS + NEAR + HIT
    assert latency(spill(3), fill(3), spill(2)) == PASS + HIT


def test_are_words_lines_of_their_own() -> None:
    assert latency(spill(3), fill(2)) == PASS + NEAR + HIT


def test_does_a_wide_access_move_a_line_per_word() -> None:
    outcome = run([[spill(0, 4), LATER, fill(0, 4), AFTER]], MACHINE)
    assert outcome.counter("l2_write_sectors") == 4 * 4
    assert outcome.counter("fill_bytes") == 4 * 128
    assert outcome.counter("dram_read_bytes") == 0


def test_do_warps_and_members_have_frames_of_their_own() -> None:
    """Four warps on two chip SMs that one simulated SM stands for, two CTAs each."""
    program = assemble([[spill(0), LATER, fill(0), AFTER]] * 4, n_ctas=4)
    outcome = run(program, replace(MACHINE, members=((0, 1),), n_slots=2, l2_sets=256))
    assert outcome.counter("l2_write_sectors") == 4 * 4 * 4
    assert outcome.counter("fill_bytes") == 4 * 4 * 128
    assert outcome.counter("dram_read_bytes") == 0
