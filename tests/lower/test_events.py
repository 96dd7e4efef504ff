"""Does each access touch the wavefronts, lines and sectors that its lanes touch, from every CTA's address?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.hw.config import HardwareConfig
from simulator.hw.loader import load_hw
from simulator.hw.timing import Timing
from simulator.isa.effects import LINE_BYTES
from simulator.lower.events import lower_tensors, n_mbarriers, separate_uses
from simulator.lower.instructions import ticks
from simulator.lower.program import lower
from simulator.sm import inputs as at
from simulator.sm.inputs import Program
from simulator.trace.kernel_trace import TensorMap
from tests.lower.traces import Instruction, Lanes, kernel_trace, lanes

SECTOR_BYTES = 32
H200 = load_hw("h200")


def lowered(instructions: Sequence[Instruction], hw: HardwareConfig = H200, **launch: object) -> Program:
    return lower(separate_uses(kernel_trace(instructions, **launch)), hw)  # type: ignore[arg-type]


def event_of(program: Program, position: int) -> np.ndarray:
    """Event row of the ``position``-th instruction."""
    return program.event_table[program.event[position]]


def touched(program: Program, position: int, cta: int) -> dict[int, int]:
    """Line -> sectors of a global access by one CTA, read from the tables as the engine does."""
    event = event_of(program, position)
    column = event[at.E_BASE]
    origin = event[at.E_ADDRESS] + (program.cta_base[cta, column] if column >= 0 else 0)
    slot = program.misalignment_slot[origin % LINE_BYTES]
    variant = event[at.E_PATTERN] * program.misalignment_slot[LINE_BYTES] + slot
    rows = slice(program.variant_start[variant], program.variant_start[variant + 1])
    lines = origin // LINE_BYTES + program.line_offset[rows]
    return dict(zip(lines.tolist(), program.line_mask[rows].tolist(), strict=True))


def expected(pattern: Lanes, width: int, origin: int) -> dict[int, int]:
    """Line -> sectors that the active lanes touch, byte by byte."""
    found: dict[int, int] = {}
    for offset in pattern:
        for byte in range(origin + offset, origin + offset + width) if offset >= 0 else ():
            line, place = divmod(byte, LINE_BYTES)
            found[line] = found.get(line, 0) | 1 << place // SECTOR_BYTES
    return found


offsets = st.lists(st.one_of(st.just(-1), st.integers(0, 300)), min_size=32, max_size=32)


@given(
    where=offsets.filter(lambda found: max(found) >= 0),
    width=st.sampled_from([1, 4, 8, 16]),
    moves=st.lists(st.integers(0, 4096), min_size=1, max_size=4),
)
@settings(max_examples=60, deadline=None)
def test_does_a_global_access_touch_its_lanes_sectors_from_every_cta(
    where: list[int], width: int, moves: list[int]
) -> None:
    pattern = tuple(offset * width if offset >= 0 else -1 for offset in where)
    shifts = [move * width for move in moves]
    load = Instruction("LDG.E", width=width, lanes=pattern, address=1 << 20, base=(0,))
    program = lowered([load], cta_base=[[shift] for shift in shifts])
    for cta, shift in enumerate(shifts):
        assert touched(program, 0, cta) == expected(pattern, width, (1 << 20) + shift)


@pytest.mark.parametrize(("width", "n_lines"), [(4, 1), (8, 2), (16, 4)])
def test_does_a_dense_warp_touch_its_bytes_in_whole_lines(width: int, n_lines: int) -> None:
    program = lowered([Instruction("LDG.E", width=width, lanes=lanes(width), address=1 << 12)])
    assert touched(program, 0, 0) == {32 + n: 15 for n in range(n_lines)}


def test_do_accesses_of_different_width_at_one_place_get_rows_of_their_own() -> None:
    """The trace may share an event between them."""
    wide = Instruction("LDG.E.128", width=16, lanes=lanes(16), address=1 << 12)
    trace = kernel_trace([wide, Instruction("LDG.E", width=4, lanes=lanes(16), address=1 << 12)])
    trace.streams[0][0].event[1] = trace.streams[0][0].event[0]
    program = lower(separate_uses(trace), H200)
    assert touched(program, 0, 0) == expected(lanes(16), 16, 1 << 12)
    assert touched(program, 1, 0) == expected(lanes(16), 4, 1 << 12)


@pytest.mark.parametrize(
    ("opcode", "width", "stride", "wavefronts"),
    [("LDS", 4, 4, 1), ("LDS", 4, 8, 2), ("LDS", 4, 128, 32), ("STS", 4, 128, 32), ("LDS.128", 16, 16, 4), ("STS.64", 8, 8, 2)],
)
def test_does_a_shared_access_take_its_wavefronts(opcode: str, width: int, stride: int, wavefronts: int) -> None:
    program = lowered([Instruction(opcode, width=width, lanes=lanes(stride))])
    assert event_of(program, 0)[at.E_WAVEFRONTS] == wavefronts


def test_does_a_matrix_load_take_a_wavefront_per_matrix() -> None:
    """LDSM.x4: 32 row addresses of 16 bytes, dense."""
    program = lowered([Instruction("LDSM.16.M88.4", width=16, lanes=lanes(16))])
    assert event_of(program, 0)[at.E_WAVEFRONTS] == 4


def test_does_an_asynchronous_copy_have_a_global_and_a_shared_side() -> None:
    copy = Instruction("LDGSTS.E.BYPASS.128", width=16, lanes=lanes(16), shared=lanes(128), address=1 << 12)
    program = lowered([copy])
    assert touched(program, 0, 0) == {32 + n: 15 for n in range(4)}
    assert event_of(program, 0)[at.E_WAVEFRONTS] >= 16


def test_does_a_strided_load_take_a_pass_of_the_data_banks_per_conflict() -> None:
    program = lowered([Instruction("LDG.E", width=4, lanes=lanes(128)), Instruction("LDG.E", width=4, lanes=lanes(4))])
    assert event_of(program, 0)[at.E_WAVEFRONTS] == 32
    assert event_of(program, 1)[at.E_WAVEFRONTS] == 1


def test_are_lanes_on_one_address_counted_for_atomics() -> None:
    same = tuple(0 for _ in range(32))
    pairs = tuple(4 * (lane // 2) for lane in range(32))
    ops = [Instruction("REDG.E.ADD.F32", width=4, lanes=pattern, address=256) for pattern in (same, pairs, lanes(4))]
    program = lowered(ops)
    assert [int(event_of(program, n)[at.E_COUNT]) for n in range(3)] == [32, 2, 1]


def test_are_mbarriers_numbered_by_their_place() -> None:
    places = [4096, 4104, 4096, 8]
    program = lowered([Instruction("SYNCS.ARRIVE.TRANS64", mbarrier=place, count=1) for place in places])
    numbers = [int(event_of(program, n)[at.E_MBARRIER]) for n in range(4)]
    assert numbers[0] == numbers[2]
    assert len(set(numbers)) == n_mbarriers(program.event_table) == 3


def test_does_a_local_access_count_its_words() -> None:
    program = lowered([Instruction("STL.128", width=16, address=32), Instruction("LDL", width=4, address=16)])
    assert [int(event_of(program, n)[at.E_COUNT]) for n in range(2)] == [4, 1]


def tensor(row_bytes: int, pitch: int, rows: int = 8) -> TensorMap:
    return TensorMap("t", 2, (4096, 4096), (pitch,), (row_bytes // 2, rows), 128, 1 << 30)


def test_does_a_tensor_map_keep_its_shape(timing: Timing) -> None:
    (row,) = lower_tensors(kernel_trace([], tensors=(tensor(128, 8192),)), timing)
    assert (row[at.T_ADDRESS], row[at.T_ELEMENT], row[at.T_DIMENSIONS]) == (1 << 30, 2, 2)
    assert row[at.T_SHAPE : at.T_SHAPE + 2].tolist() == [4096, 4096]
    assert row[at.T_STRIDE : at.T_STRIDE + 2].tolist() == [0, 8192]
    assert row[at.T_BOX : at.T_BOX + 2].tolist() == [64, 8]


def test_does_a_box_row_take_the_rate_of_its_width_and_alignment(timing: Timing) -> None:
    bulk = timing.bulk
    maps = (tensor(64, 8192), tensor(128, 8192), tensor(128, 8192 + bulk.aligned_pitch_bytes // 2))
    rows = lower_tensors(kernel_trace([], tensors=maps), timing)
    rates = (bulk.row_cycles, bulk.full_line_row_cycles, bulk.misaligned_row_cycles)
    for row, rate, row_bytes in zip(rows, rates, (64, 128, 128), strict=True):
        assert row[at.T_ROW] == ticks(max(rate, row_bytes / bulk.fill_bytes_per_cycle))


def test_is_a_bulk_copy_without_a_map_a_box_of_one_row() -> None:
    copies = [Instruction("UBLKCP", address=1 << 20, count=size, mbarrier=0) for size in (2048, 512, 2048)]
    program = lowered(copies)
    numbers = [int(event_of(program, n)[at.E_TENSOR]) for n in range(3)]
    assert numbers[0] == numbers[2] != numbers[1]
    assert program.tensor[numbers[0]][at.T_BOX] == 2048
    assert event_of(program, 0)[at.E_COORDINATE] == 1 << 20


def test_does_each_lane_of_an_arrival_count_unless_the_trace_says_otherwise() -> None:
    arrive, expect = "SYNCS.ARRIVE.TRANS64.A1T0", "SYNCS.ARRIVE.TRANS64"
    program = lowered(
        [
            Instruction("SYNCS.EXCH.64", mbarrier=8, count=32),
            Instruction(arrive, mbarrier=8),
            Instruction(arrive, mbarrier=16, count=4),
            Instruction(expect, mbarrier=8, count=4096),
            Instruction("EXIT"),
        ]
    )
    assert [int(event_of(program, position)[at.E_COUNT]) for position in range(4)] == [32, 32, 4, 4096]
