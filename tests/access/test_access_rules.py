"""Do the rules hold in closed form, under symmetry, and against a plain restatement?"""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from simulator.lower.access_kinds import INACTIVE, KIND_RULES, AccessKind, alignment_bytes
from simulator.lower.bank_use import bank_use
from simulator.lower.global_access import global_lines, global_sectors, ideal_sectors, l1_data_wavefronts, sector_use
from simulator.lower.shared_access import BankRules, phase_plan, shared_cost, shared_wavefronts, shared_wavefronts_batch

LANE = np.arange(32)
RULES = BankRules(32, 4)
SHARED_KINDS = [kind for kind in AccessKind if KIND_RULES[kind].is_shared]


@st.composite
def patterns(draw: st.DrawFn, kinds: list[AccessKind] = SHARED_KINDS) -> tuple[AccessKind, int, np.ndarray]:
    """A kind, a width and 32 lane offsets: scattered, strided, or agreeing in pairs, some lanes inactive."""
    kind = draw(st.sampled_from(kinds))
    width = draw(st.sampled_from(KIND_RULES[kind].widths))
    unit = alignment_bytes(kind, width)
    reach = draw(st.sampled_from([4, 32, 256]))
    cells = np.array(draw(st.lists(st.integers(0, reach - 1), min_size=32, max_size=32)))
    keep = draw(st.sampled_from([31, 30, 29, 16]))
    offsets = cells[LANE & keep] * unit
    active = np.array(draw(st.lists(st.booleans(), min_size=32, max_size=32)))
    return kind, width, np.where(active | draw(st.booleans()), offsets, INACTIVE)


def cost_of(kind: AccessKind, width: int, offsets: np.ndarray, rules: BankRules = RULES) -> tuple[int, int, int]:
    cost = shared_cost(kind, width, offsets[None, :], rules)
    return int(cost.wavefronts[0]), int(cost.ideal_wavefronts[0]), int(cost.bank_conflicts[0])


@pytest.mark.parametrize(
    ("width", "stride", "wavefronts"),
    [(4, 4, 1), (4, 8, 2), (4, 12, 1), (4, 128, 32), (4, 132, 1), (8, 8, 2), (8, 128, 32), (16, 16, 4), (16, 144, 4)],
)
def test_is_a_strided_access_what_arithmetic_says(width: int, stride: int, wavefronts: int) -> None:
    for kind in (AccessKind.LDS, AccessKind.STS):
        assert shared_wavefronts(kind, width, LANE * stride, 32, 4) == wavefronts


@pytest.mark.parametrize(("width", "load", "store"), [(1, 1, 1), (4, 1, 1), (8, 1, 2), (16, 2, 4)])
def test_is_a_broadcast_merged_for_loads_only(width: int, load: int, store: int) -> None:
    assert shared_wavefronts(AccessKind.LDS, width, LANE * 0, 32, 4) == load
    assert shared_wavefronts(AccessKind.STS, width, LANE * 0, 32, 4) == store


def test_does_an_instruction_without_lanes_cost_one_wavefront() -> None:
    assert cost_of(AccessKind.LDS, 16, np.full(32, INACTIVE)) == (1, 1, 0)


def test_do_atomics_on_one_address_wait_for_each_other() -> None:
    one_address = LANE * 0
    assert cost_of(AccessKind.ATOMS, 4, one_address) == (1, 1, 0)
    assert cost_of(AccessKind.ATOMS_RMW, 4, one_address) == (32, 1, 31)
    assert cost_of(AccessKind.ATOMS_CAS, 4, one_address) == (64, 2, 31)


def test_are_patterns_of_different_kinds_answered_in_one_call() -> None:
    kinds = [AccessKind.LDS, AccessKind.LDSM, AccessKind.ATOMS_CAS]
    cost = shared_wavefronts_batch(kinds, [4, 4, 8], np.stack([LANE * 128, LANE % 16 * 128, LANE * 8]), 32, 4)
    assert cost.wavefronts.tolist() == [32, 32, 4]


@settings(max_examples=300, deadline=None)
@given(patterns(), st.sampled_from([RULES, BankRules(32, 4, False), BankRules(16, 4), BankRules(32, 8)]))
def test_do_compiled_and_plain_rules_agree(question: tuple[AccessKind, int, np.ndarray], rules: BankRules) -> None:
    use = bank_use(*question, rules)
    assert cost_of(*question, rules) == (use.wavefronts, use.ideal_wavefronts, use.bank_conflicts)


@settings(max_examples=150, deadline=None)
@given(patterns(), st.integers(1, 64))
def test_does_a_shift_by_whole_rows_of_banks_change_nothing(
    question: tuple[AccessKind, int, np.ndarray], rows: int
) -> None:
    kind, width, offsets = question
    moved = np.where(offsets == INACTIVE, INACTIVE, offsets + rows * 128)
    assert cost_of(kind, width, moved) == cost_of(kind, width, offsets)


@settings(max_examples=150, deadline=None)
@given(patterns(), st.randoms(use_true_random=False))
def test_does_the_order_of_lanes_in_a_phase_not_matter(question: tuple[AccessKind, int, np.ndarray], shuffler) -> None:  # type: ignore[no-untyped-def]
    kind, width, offsets = question
    rules = BankRules(32, 4, merges_paired_loads=False)
    span = int(phase_plan(kind, width, (1, 32), rules).phase_lanes[0])
    order = np.concatenate([shuffler.sample(range(first, first + span), span) for first in range(0, 32, span)])
    assert cost_of(kind, width, offsets[order], rules) == cost_of(kind, width, offsets, rules)


@settings(max_examples=150, deadline=None)
@given(patterns())
def test_do_wavefronts_stay_between_ideal_and_one_per_lane_word(question: tuple[AccessKind, int, np.ndarray]) -> None:
    kind, _, offsets = question
    wavefronts, ideal, conflicts = cost_of(*question)
    per_visit = KIND_RULES[kind].wavefronts_per_visit
    lanes = max(int((offsets != INACTIVE).sum()), 1)
    assert ideal <= wavefronts <= lanes * per_visit
    assert wavefronts == ideal + conflicts * per_visit
    assert wavefronts <= ideal * bank_use(*question, RULES).words.max(initial=1)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from([1, 2, 4, 8, 16]),
    st.lists(st.integers(-1, 400), min_size=32, max_size=32),
    st.integers(0, 127),
    st.sampled_from([(32, 128), (64, 128), (32, 64)]),
)
def test_do_lines_and_sectors_match_byte_by_byte_counting(
    width: int, cells: list[int], misalignment: int, sizes: tuple[int, int]
) -> None:
    sector_bytes, line_bytes = sizes
    offsets = np.array([INACTIVE if cell < 0 else cell * width for cell in cells])
    table = global_lines(width, offsets[None, :], misalignment, sector_bytes, line_bytes)
    touched = {misalignment + offset + byte for offset in offsets.tolist() if offset >= 0 for byte in range(width)}
    wanted: dict[int, int] = {}
    for byte in touched:
        line = byte // line_bytes
        wanted[line] = wanted.get(line, 0) | 1 << byte % line_bytes // sector_bytes
    assert table.line_offset.tolist() == sorted(wanted)
    assert table.sector_mask.tolist() == [wanted[line] for line in sorted(wanted)]
    assert table.start.tolist() == [0, len(wanted)]


def test_are_sectors_counted_per_pattern() -> None:
    counts = global_sectors([4, 16, 4], np.stack([LANE * 4, LANE * 16, LANE * 0 + INACTIVE]), 32, 128)
    assert counts.sectors.tolist() == [4, 16, 0]
    assert counts.lines.tolist() == [1, 4, 0]
    lines, used = sector_use(4, LANE * 12, 32, 128)
    assert lines.tolist() == [0, 1, 2] and used.sum() == 128
    assert ideal_sectors(4, LANE * 12, 32) == 4


def test_does_a_load_from_the_l1_see_the_banks_of_its_lines() -> None:
    wavefronts = l1_data_wavefronts([4, 16, 16], np.stack([LANE * 4, LANE % 4 * 128 + LANE // 4 * 16, LANE * 0]), 32, 4)
    assert wavefronts.tolist() == [1, 16, 4]


def test_is_a_line_of_more_sectors_than_a_mask_refused() -> None:
    with pytest.raises(ValueError, match="sectors"):
        global_lines(4, LANE[None, :] * 4, 0, 8, 128)


def test_are_wide_phases_taken_in_the_order_that_the_chip_says() -> None:
    order = (*range(0, 4), *range(20, 24), *range(4, 20), *range(24, 32))
    offsets = np.empty(32, np.int64)
    offsets[list(order)] = LANE * 16
    plain, chip = BankRules(32, 4, False), BankRules(32, 4, False, order)
    assert cost_of(AccessKind.LDS, 16, offsets, chip) == (4, 4, 0)
    assert cost_of(AccessKind.LDS, 16, offsets, plain) == (6, 4, 2)
    assert cost_of(AccessKind.STS, 16, offsets, chip) == (6, 4, 2)


def test_are_fifty_thousand_patterns_a_second_answered() -> None:
    n_patterns, per_second = (200, 50) if config.DISABLE_JIT else (20_000, 50_000)
    table = np.random.default_rng(0).integers(0, 256, (n_patterns, 32)) * 16
    shared_wavefronts_batch(AccessKind.LDS, 16, table[:1], 32, 4)
    began = time.perf_counter()
    shared_wavefronts_batch(AccessKind.LDS, 16, table, 32, 4)
    assert len(table) / (time.perf_counter() - began) > per_second
