"""Is attention tuned as GEMM is: legal rows, a screen that knows what binds, a database that keeps heads apart?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from simulator.errors import UserError
from simulator.hw.loader import load_hw
from simulator.projection.tile_card import check_design
from simulator.study.suite import problems_of_suite
from simulator.tuning import attention_space
from simulator.tuning.attention_space import AttentionProblem, design_of, estimate, row_of, space
from simulator.tuning.families import parse_problem, precision_of, problem_of, shape_of
from simulator.tuning.search import Effort, tune

HW = load_hw("h200")
SUITES = Path(__file__).resolve().parents[2] / "kernel_traces" / "suites"
PREFILL = AttentionProblem(batch=2, heads=16, seq_q=2048, head_dim=64, causal=True)
DECODE = AttentionProblem(batch=16, heads=32, heads_kv=8, seq_q=1, seq_kv=4096, head_dim=64)


@pytest.fixture(autouse=True)
def _few_designs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registers come from generated code, which takes its time."""
    monkeypatch.setattr(attention_space, "KEY_BLOCKS", (64, 128))
    monkeypatch.setattr(attention_space, "STAGES", (2,))


@pytest.mark.parametrize("asked", [PREFILL, DECODE], ids=["prefill", "decode"])
def test_is_every_row_a_legal_design(asked: AttentionProblem) -> None:
    designs = space(asked, HW)
    for row in np.random.default_rng(0).choice(len(designs), 12, replace=False).tolist():
        design = design_of(asked, designs.row(row))
        assert check_design(design, HW) == [] and problem_of(design) == asked
        assert row_of(design) == designs.row(row)


def test_does_the_screen_know_what_binds() -> None:
    """A prefill wants specialised warps; a decode packs the heads that share keys."""
    prefill, decode = space(PREFILL, HW), space(DECODE, HW)
    assert prefill["producer_warps"][np.argmin(estimate(PREFILL, prefill, HW).time_us)] > 0
    assert decode["pack_gqa"][np.argmin(estimate(DECODE, decode, HW).time_us)] == 1


def test_is_a_small_problem_tuned() -> None:
    asked = AttentionProblem(batch=1, heads=4, seq_q=256, head_dim=64)
    found = tune(asked, HW, Effort(3, 1))
    assert found.best.time_us > 0 and problem_of(found.best.design) == asked


def test_are_heads_part_of_what_is_looked_up() -> None:
    assert shape_of(DECODE) == {"batch": 16, "seq_q": 1, "seq_kv": 4096}
    assert precision_of(DECODE) == "bf16 heads=32 heads_kv=8 head_dim=64"


def test_are_the_suites_problems_of_the_family() -> None:
    for name in ("attention_prefill", "attention_decode"):
        assert all(isinstance(one, AttentionProblem) for one in problems_of_suite(SUITES / f"{name}.yaml"))


def test_is_bad_input_one_sentence() -> None:
    with pytest.raises(UserError, match="heads 6 is not a multiple of heads_kv 4"):
        parse_problem({"kind": "attention", "batch": 1, "heads": 6, "heads_kv": 4, "seq_q": 8}, "test")
