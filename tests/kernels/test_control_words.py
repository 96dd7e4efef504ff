"""Do control words hold consumers back as long as they must, and no longer?"""

from __future__ import annotations

from simulator.kernels.control_words import DISTANCE, GUARD_DISTANCE, Pending, Value, place, schedule
from simulator.kernels.writer import Block
from simulator.trace.kernel_trace import NO_SCOREBOARD


def scheduled(block: Block, passes: int = 1) -> Block:
    pending = Pending()
    for _ in range(passes):
        schedule(block.instructions, pending)
    return block


def test_a_consumer_of_fixed_latency_waits_by_stall_counts() -> None:
    block, x, y = Block("b", False), Value("x"), Value("y")
    block.op("IADD3", [x], [])
    block.op("MOV", [y], [])
    block.op("FADD", [y], [x])
    first, second, _ = scheduled(block).instructions
    assert first.stall + second.stall == DISTANCE


def test_a_guard_waits_longer_than_an_operand() -> None:
    block, p, x = Block("b", False), Value("p", kind="P"), Value("x")
    block.op("ISETP.NE.AND", [p], [])
    block.op("FADD", [x], [], guard=p)
    assert scheduled(block).instructions[0].stall == GUARD_DISTANCE


def test_loads_of_one_run_share_a_scoreboard_and_the_consumer_waits_for_it() -> None:
    block, x, y, z = Block("b", False), Value("x"), Value("y"), Value("z")
    block.op("LDS.128", [x], [])
    block.op("LDS.128", [y], [])
    block.op("FADD", [z], [x])
    load, other, use = scheduled(block).instructions
    assert load.write_scoreboard == other.write_scoreboard != NO_SCOREBOARD
    assert use.wait_mask == 1 << load.write_scoreboard


def test_who_overwrites_a_source_of_a_store_waits_until_it_was_read() -> None:
    block, x = Block("b", False), Value("x")
    block.op("STS.128", [], [x])
    block.op("MOV", [x], [])
    store, move = scheduled(block).instructions
    assert move.wait_mask == 1 << store.read_scoreboard


def test_a_loop_waits_at_its_start_for_what_its_end_loaded() -> None:
    block, x, y = Block("b", True), Value("x"), Value("y")
    block.op("FADD", [y], [x])
    block.op("LDG.E", [x], [])
    use, load = scheduled(block, passes=2).instructions
    assert use.wait_mask == 1 << load.write_scoreboard


def test_are_the_control_words_of_a_code_seen_before_those_of_a_new_one() -> None:
    def words(kind: str, guarded: bool) -> list[tuple[int, int, int, int]]:
        block, x, y, p = Block("b", True), Value("x"), Value("y"), Value("p", kind=kind)
        block.op("LDG.E", [x], [y])
        block.op("ISETP.NE.AND", [p], [y])
        block.op("FADD", [y], [x], guard=p if guarded else None)
        place([(block.instructions, block.is_loop)])
        return [(one.stall, one.write_scoreboard, one.read_scoreboard, one.wait_mask) for one in block.instructions]

    assert words("P", True) == words("P", True)
    assert words("P", False) != words("P", True)
    assert words("R", False) != words("P", True)
