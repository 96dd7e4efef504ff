"""Does each instruction become the effect, pipe and time that the chip file gives it?"""

from __future__ import annotations

import numpy as np
import pytest

from simulator.errors import Unsupported
from simulator.hw.timing import Timing
from simulator.isa import effects as fx
from simulator.isa.table import opcodes
from simulator.lower.instructions import lower_static, ticks
from simulator.sm import inputs as at
from simulator.sm.inputs import CYCLE
from tests.lower.traces import Instruction, static_table


def row_of(timing: Timing, opcode: str, **fields: object) -> np.ndarray:
    """The lowered row of one instruction."""
    return lower_static(static_table([Instruction(opcode, **fields)]), timing)[0]  # type: ignore[arg-type]


def test_are_control_words_taken_over(timing: Timing) -> None:
    row = row_of(timing, "FADD", stall=7, write=2, read=5, wait=0b101)
    assert row[at.I_STALL] == 7 * CYCLE
    assert (row[at.I_WRITE], row[at.I_READ], row[at.I_WAIT]) == (2, 5, 0b101)


def test_does_a_stall_count_of_zero_still_take_a_cycle(timing: Timing) -> None:
    assert row_of(timing, "FADD", stall=0)[at.I_STALL] == CYCLE


@pytest.mark.parametrize(
    ("opcode", "pipe", "entry"),
    [
        ("FADD", fx.PIPE_FMA, "fma"),
        ("FFMA", fx.PIPE_FMA, "fma"),
        ("LOP3.LUT", fx.PIPE_ALU, "alu"),
        ("IMAD.WIDE.U32", fx.PIPE_FMA_HEAVY, "fma_heavy"),
        ("HFMA2", fx.PIPE_FMA_HALF, "fma_half"),
        ("MUFU.EX2", fx.PIPE_TRANSCENDENTAL, "transcendental"),
        ("DFMA", fx.PIPE_FP64, "fp64"),
        ("UIADD3", fx.PIPE_UNIFORM, "uniform"),
    ],
)
def test_does_a_fixed_instruction_take_its_pipes_times(timing: Timing, opcode: str, pipe: int, entry: str) -> None:
    row = row_of(timing, opcode)
    assert (row[at.I_EFFECT], row[at.I_PIPE]) == (fx.FIXED, pipe)
    assert row[at.I_INTERVAL] == ticks(timing.pipes[entry].interval_cycles)
    assert row[at.I_LATENCY] == ticks(timing.pipes[entry].latency_cycles)


def test_does_the_longest_named_prefix_refine_a_pipe(timing: Timing) -> None:
    assert "IMAD.HI" in timing.opcodes
    assert row_of(timing, "IMAD.HI.U32")[at.I_INTERVAL] == ticks(timing.opcodes["IMAD.HI"].interval_cycles)
    assert row_of(timing, "IMAD.MOV")[at.I_INTERVAL] == ticks(timing.pipes["fma_heavy"].interval_cycles)


@pytest.mark.parametrize("opcode", sorted(opcodes()))
def test_does_every_known_instruction_lower_or_say_that_it_is_not_modelled(timing: Timing, opcode: str) -> None:
    try:
        row = row_of(timing, opcode, argument=(16, 8, 16, 16))
    except Unsupported as refusal:
        assert opcode in str(refusal)
        return
    assert 0 <= row[at.I_EFFECT] < fx.N_EFFECTS
    assert 0 <= row[at.I_PIPE] < fx.N_PIPES
    assert 0 <= row[at.I_REASON] < fx.N_REASONS
    assert row[at.I_INTERVAL] >= 0
    assert row[at.I_LATENCY] >= 0


def test_is_an_unknown_instruction_named(timing: Timing) -> None:
    with pytest.raises(Unsupported, match="FROBNICATE"):
        row_of(timing, "FROBNICATE.X")


def test_does_an_mma_take_the_smallest_measured_size_that_holds_it(timing: Timing) -> None:
    sizes = sorted(timing.mma.values(), key=lambda entry: entry.operand_bits)
    small = next(entry for entry in sizes if entry.operand_bits >= 16 * 8 * 8 * 16)
    large = next(entry for entry in sizes if entry.operand_bits >= 16 * 8 * 16 * 16)
    assert row_of(timing, "HMMA.1688.F32", argument=(16, 8, 8, 16))[at.I_INTERVAL] == ticks(small.interval_cycles)
    row = row_of(timing, "HMMA.16816.F32.BF16", argument=(16, 8, 16, 16))
    assert row[at.I_PIPE] == fx.PIPE_TENSOR
    assert (row[at.I_INTERVAL], row[at.I_LATENCY]) == (ticks(large.interval_cycles), ticks(large.latency_cycles))


@pytest.mark.parametrize("argument", [(0, 0, 0, 0), (256, 256, 64, 16)])
def test_is_an_mma_of_a_size_that_was_never_measured_refused(
    timing: Timing, argument: tuple[int, int, int, int]
) -> None:
    with pytest.raises(Unsupported, match="no measured MMA"):
        row_of(timing, "HMMA.16816.F32", argument=argument)


@pytest.mark.parametrize("n", [8, 64, 128, 256])
@pytest.mark.parametrize("is_a_shared", [0, 1])
def test_does_an_asynchronous_mma_take_its_columns_and_its_operands_time(
    timing: Timing, n: int, is_a_shared: int
) -> None:
    row = row_of(timing, "HGMMA.64x128x16.F32", argument=(n, 32, is_a_shared, 1))
    t = timing.tensor_async
    columns = n / t.columns_per_cycle
    floor = 0 if is_a_shared else t.register_operand_floor_cycles
    operand_bytes = (n + 64 * is_a_shared) * 32
    assert row[at.I_EFFECT] == fx.TENSOR_ASYNC
    assert row[at.I_INTERVAL] == ticks(max(columns, floor))
    assert row[at.I_PORT] == ticks(operand_bytes / t.operand_bytes_per_cycle)
    assert row[at.I_ARGUMENT] == 1


@pytest.mark.parametrize(
    ("opcode", "effect"),
    [
        ("LDG.E.128", fx.GLOBAL_LOAD),
        ("LD.E", fx.GLOBAL_LOAD),
        ("STG.E", fx.GLOBAL_STORE),
        ("LDGSTS.E.128", fx.GLOBAL_COPY),
        ("ATOMG.E.ADD", fx.GLOBAL_ATOMIC),
        ("REDG.E.ADD.F32", fx.GLOBAL_ATOMIC),
        ("LDL.64", fx.LOCAL_LOAD),
        ("STL", fx.LOCAL_STORE),
    ],
)
def test_do_memory_accesses_take_the_global_pipe(timing: Timing, opcode: str, effect: int) -> None:
    row = row_of(timing, opcode)
    assert (row[at.I_EFFECT], row[at.I_PIPE]) == (effect, fx.PIPE_GLOBAL)


def test_does_a_bypassing_copy_not_use_the_l1(timing: Timing) -> None:
    assert row_of(timing, "LDGSTS.E.BYPASS.LTC128B.128")[at.I_KIND] == 0
    assert row_of(timing, "LDGSTS.E.128")[at.I_KIND] == 1


@pytest.mark.parametrize(
    ("opcode", "kind"),
    [
        ("SYNCS.EXCH.64", fx.MBARRIER_INIT),
        ("SYNCS.ARRIVE.TRANS64.A1T0", fx.MBARRIER_ARRIVE),
        ("SYNCS.ARRIVE.TRANS64", fx.MBARRIER_EXPECT),
        ("SYNCS.PHASECHK.TRANS64.TRYWAIT", fx.MBARRIER_WAIT),
    ],
)
def test_are_mbarrier_operations_told_apart(timing: Timing, opcode: str, kind: int) -> None:
    row = row_of(timing, opcode)
    assert (row[at.I_EFFECT], row[at.I_KIND]) == (fx.MBARRIER, kind)


def test_does_a_barrier_know_whether_it_waits(timing: Timing) -> None:
    assert row_of(timing, "BAR.SYNC.DEFER_BLOCKING")[at.I_KIND] == 1
    assert row_of(timing, "BAR.RED.POPC")[at.I_KIND] == 1
    assert row_of(timing, "BAR.ARV")[at.I_KIND] == 0


def test_does_a_cluster_barrier_know_whether_it_arrives(timing: Timing) -> None:
    assert row_of(timing, "UCGABAR_ARV")[at.I_KIND] == 1
    assert row_of(timing, "UCGABAR_WAIT")[at.I_KIND] == 0


@pytest.mark.parametrize("opcode", ["WARPGROUP.DEPBAR.LE", "DEPBAR.LE"])
def test_does_a_group_wait_carry_how_many_may_stay_pending(timing: Timing, opcode: str) -> None:
    assert row_of(timing, opcode, argument=(2, 0, 0, 0))[at.I_ARGUMENT] == 2


def test_does_a_chip_wide_fence_take_longer_than_one_of_a_cta(timing: Timing) -> None:
    assert row_of(timing, "MEMBAR.SC.GPU")[at.I_LATENCY] == ticks(timing.barrier.chip_fence_cycles)
    assert row_of(timing, "MEMBAR.ALL.CTA")[at.I_LATENCY] == ticks(timing.barrier.fence_cycles)


@pytest.mark.parametrize(
    ("opcode", "reason"),
    [
        ("LDG.E", fx.LONG_SCOREBOARD),
        ("LDL", fx.LONG_SCOREBOARD),
        ("LDS", fx.SHORT_SCOREBOARD),
        ("MUFU.RCP", fx.SHORT_SCOREBOARD),
        ("UTMALDG.2D", fx.LONG_SCOREBOARD),
    ],
)
def test_does_a_wait_carry_the_profilers_reason(timing: Timing, opcode: str, reason: int) -> None:
    assert row_of(timing, opcode)[at.I_REASON] == reason


@pytest.mark.parametrize(("opcode", "entry"), [("SHFL.BFLY", "shuffle"), ("REDUX.SUM", "redux")])
def test_do_cross_lane_instructions_take_their_own_interval_and_latency(
    timing: Timing, opcode: str, entry: str
) -> None:
    row = row_of(timing, opcode)
    assert (row[at.I_EFFECT], row[at.I_PIPE]) == (fx.SHARED_ACCESS, fx.PIPE_SHARED)
    assert row[at.I_INTERVAL] == ticks(timing.pipes[entry].interval_cycles)
    assert row[at.I_LATENCY] == ticks(timing.pipes[entry].latency_cycles)
