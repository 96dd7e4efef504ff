"""Does every suggested layout do what it says, and is a reason given where none can help?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.hw.loader import load_hw
from simulator.kernels.families import family_of, parse_design
from simulator.lower.access_advice import Advice, Suggestion, advise
from simulator.lower.access_kinds import INACTIVE, AccessKind
from simulator.lower.shared_access import BankRules, shared_cost
from simulator.projection.tile_accesses import shared_accesses
from simulator.projection.tile_card import ready_to_build

LANE = np.arange(32)
RULES = BankRules(32, 4)


def laid_out(formula: str, offsets: np.ndarray) -> np.ndarray:
    """``offsets`` moved by a suggestion's formula, as a reader would apply it."""
    scope = {"byte": np.where(offsets == INACTIVE, 0, offsets)}
    exec(formula, {}, scope)
    return np.where(offsets == INACTIVE, INACTIVE, scope["byte"])


def wavefronts(kind: AccessKind, width: int, offsets: np.ndarray) -> int:
    return int(shared_cost(kind, width, offsets[None, :], RULES).wavefronts[0])


def every(advice: Advice) -> list[Suggestion]:
    return [*([advice.suggestion] if advice.suggestion else []), *advice.alternatives]


@pytest.mark.parametrize(
    ("kind", "width", "offsets", "formula", "wavefronts_after"),
    [
        (AccessKind.LDS, 4, LANE * 128, "byte = (byte // 128) * 132 + byte % 128", 1),
        (AccessKind.LDS, 4, LANE // 4 * 128 + LANE % 4 * 4, "byte = (byte // 128) * 144 + byte % 128", 1),
        (AccessKind.LDSM, 4, LANE % 16 * 128 + LANE // 16 * 16, "byte = (byte // 128) * 144 + byte % 128", 4),
        (AccessKind.LDSM, 4, LANE % 16 * 64 + LANE // 16 * 16, "byte ^= ((byte >> 7) & 3) << 4", 4),
        (AccessKind.STS, 8, LANE * 256, "byte = (byte // 256) * 264 + byte % 256", 2),
    ],
)
def test_is_the_textbook_layout_found(
    kind: AccessKind, width: int, offsets: np.ndarray, formula: str, wavefronts_after: int
) -> None:
    suggestion = advise(kind, width, offsets, RULES).suggestion
    assert suggestion is not None
    assert (suggestion.formula, suggestion.wavefronts) == (formula, wavefronts_after)


def test_is_the_128_byte_swizzle_offered_beside_padding() -> None:
    advice = advise(AccessKind.LDSM, 4, LANE % 16 * 128 + LANE // 16 * 16, RULES)
    assert [other.formula for other in advice.alternatives] == ["byte ^= ((byte >> 7) & 7) << 4"]
    assert "144 instead of 128" in every(advice)[0].text


@pytest.mark.parametrize("columns", [16, 32, 64, 128, 256])
@pytest.mark.parametrize("rows", [32, 64, 128])
def test_is_a_layout_found_for_a_transpose_of_16_bits_by_matrix_loads(rows: int, columns: int) -> None:
    chip = load_hw("h200")
    design = {"kind": "streaming", "operation": "transpose", "rows": 1024, "columns": 1024, "dtype": "bf16", "layout": "shared"}
    design |= {"vector_bytes": 16, "tile": {"rows": rows, "columns": columns}}
    ready, _, _ = ready_to_build(parse_design(design, "test"), chip)
    found = shared_accesses(family_of(ready).build(ready, chip.identity.instruction_set), chip)
    (access,) = (one for one in found if one.bank_conflicts)
    assert access.name.startswith("LDSM") and access.suggestion is not None
    moved = laid_out(access.suggestion.formula, np.array(access.lane_offsets))
    assert wavefronts(AccessKind.LDSM, 4, moved) == access.ideal_wavefronts == 4
    tile = np.arange(rows * columns * 2)
    assert sorted(laid_out(access.suggestion.formula, tile)) == tile.tolist() or access.suggestion.family == "padding"


def test_is_nothing_suggested_without_conflicts() -> None:
    advice = advise(AccessKind.LDS, 4, LANE * 4, RULES)
    assert advice.suggestion is None and advice.reason is not None and "no bank conflict" in advice.reason


def test_is_the_reason_given_when_atomics_meet_on_one_address() -> None:
    advice = advise(AccessKind.ATOMS_RMW, 4, LANE % 2 * 4, RULES)
    assert (
        advice.suggestion is None and advice.reason is not None and "16 lanes update the same address" in advice.reason
    )


def test_are_atomics_spread_as_far_as_their_addresses_allow() -> None:
    advice = advise(AccessKind.ATOMS_RMW, 4, LANE // 2 * 128, RULES)
    assert advice.suggestion is not None and advice.suggestion.wavefronts == 2


def test_is_the_reason_given_when_no_layout_helps() -> None:
    scattered = np.random.default_rng(3).permutation(512)[:32] * 4
    advice = advise(AccessKind.LDS, 4, scattered, RULES)
    assert advice.suggestion is None and advice.reason is not None and "no padding" in advice.reason


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from([(AccessKind.LDS, 4), (AccessKind.LDS, 8), (AccessKind.LDS, 16), (AccessKind.STS, 16)]),
    st.integers(1, 40),
    st.integers(0, 3),
    st.sampled_from([1, 2, 4, 8, 16, 32]),
    st.integers(0, 31),
)
def test_does_every_suggestion_do_what_it_says(
    question: tuple[AccessKind, int], pitch_cells: int, column_step: int, rows: int, idle: int
) -> None:
    kind, width = question
    offsets = (LANE % rows * max(pitch_cells, 32 // rows * column_step) + LANE // rows * column_step) * width
    offsets = np.where(idle == LANE, INACTIVE, offsets)
    advice = advise(kind, width, offsets, RULES)
    cost = shared_cost(kind, width, offsets[None, :], RULES)
    assert (advice.suggestion is None) == (advice.reason is not None)
    for suggestion in every(advice):
        moved = laid_out(suggestion.formula, offsets)
        assert wavefronts(kind, width, moved) == suggestion.wavefronts == cost.ideal_wavefronts[0]
        active = offsets != INACTIVE
        assert len(np.unique(moved[active])) == len(np.unique(offsets[active]))
        assert not (moved[active] % width).any()
