"""Are all designs of the space legal, is the screen the chip's, and does the search find what simulating everything finds?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from simulator.errors import UserError
from simulator.hw.loader import load_hw, with_overrides
from simulator.projection.tile_card import check_design, ready_to_build
from simulator.tuning import gemm_space
from simulator.tuning.designs import one_row
from simulator.tuning.envelope import Neighbourhood
from simulator.tuning.families import TUNABLE, problem_of, shape_of, tunable
from simulator.tuning.gemm_columns import accumulators, design_of, row_of, smem_bytes, thread_tile, warp_grid
from simulator.tuning.gemm_model import ctas_per_sm
from simulator.tuning.search import Effort, tune
from simulator.tuning.simulate import Job, Simulated, simulate_design
from tests.tuning.entries import problem

HW = load_hw("h200")
PROBLEMS = [
    problem(m=4096, n=4096, k=4096),
    problem(m=16, n=8192, k=8192),
    problem(m=512, n=512, k=4096, dtype="fp8_e4m3"),
    problem(m=512, n=512, k=512, dtype="int8"),
    problem(m=1024, n=1024, k=1024, dtype="tf32"),
    problem(m=1024, n=1024, k=1024, dtype="fp32"),
    problem(m=200, n=138, k=200),
]
N_SAMPLED = 25


@pytest.mark.parametrize("asked", PROBLEMS, ids=lambda p: f"{p.m}x{p.n}x{p.k} {p.dtype}")
def test_is_every_row_a_legal_design_with_the_columns_figures(asked: gemm_space.GemmProblem) -> None:
    designs = gemm_space.space(asked, HW)
    resident, smem, held = ctas_per_sm(asked, designs, HW), smem_bytes(designs, asked), accumulators(designs)
    grid, tile = warp_grid(designs), thread_tile(designs)
    n_same = 0
    rows = np.random.default_rng(0).choice(len(designs), min(len(designs), N_SAMPLED), replace=False).tolist()
    for row in rows:
        design = design_of(asked, designs.row(row))
        assert check_design(design, HW) == [] and problem_of(design) == asked
        assert row_of(design) == designs.row(row)
        assert (design.smem_bytes, design.accumulators) == (smem[row], held[row])
        assert design.method != "mma_sync" or design.warp_grid == (grid[0][row], grid[1][row])
        assert design.method != "ffma" or design.thread_tile == (tile[0][row], tile[1][row])
        n_same += ready_to_build(design, HW)[1].ctas_per_sm == resident[row]
    assert n_same >= 0.6 * len(rows)  # registers of generated code are estimated


def test_is_no_design_in_the_space_twice() -> None:
    designs = gemm_space.space(PROBLEMS[2], HW)
    table = np.stack([designs[name] for name in sorted(designs.columns)])
    assert len(np.unique(table, axis=1).T) == len(designs)


def test_does_the_space_follow_the_chip() -> None:
    less = load_hw("h200", ["shared_memory.max_per_cta_bytes=100KiB"])
    asked = PROBLEMS[0]
    assert smem_bytes(gemm_space.space(asked, HW), asked).max() > 100 * 1024
    assert smem_bytes(gemm_space.space(asked, less), asked).max() <= 100 * 1024


@pytest.mark.parametrize(
    ("path", "asked", "slower"),
    [
        ("timing.dram.read_bytes_per_second", PROBLEMS[1], "x0.25"),
        ("timing.tensor_async.columns_per_cycle", PROBLEMS[0], "x0.25"),
        ("timing.tensor_async.operand_bytes_per_cycle", PROBLEMS[0], "x0.25"),
        ("timing.l2.coalescer_bytes_per_second", PROBLEMS[0], "x0.1"),
        ("timing.launch.latency_cycles", PROBLEMS[2], "x4"),
        ("timing.l2.near_latency_cycles", PROBLEMS[2], "x8"),
        ("sm.count", PROBLEMS[0], "x0.5"),
    ],
)
def test_does_the_screen_feel_every_resource(path: str, asked: gemm_space.GemmProblem, slower: str) -> None:
    def best(chip: object) -> float:
        family = tunable("gemm")
        return float(family.estimate(asked, family.space(asked, chip), chip).time_us.min())  # type: ignore[arg-type]

    factor = float(slower[1:])
    changed = _value(path) * factor
    text = int(changed) if path == "sm.count" else changed
    assert best(with_overrides(HW, (f"{path}={text}",))) > 1.02 * best(HW)


def _value(path: str) -> float:
    found: object = HW
    for name in path.split("."):
        found = getattr(found, name)
    assert isinstance(found, (int, float))
    return float(found)


def test_does_the_search_find_the_optimum_of_a_small_space(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything simulated against a search with a fifth of the simulations."""
    asked = problem(m=256, n=256, k=512)
    whole = gemm_space.space(asked, HW)
    small = whole.take(np.random.default_rng(1).choice(len(whole), 24, replace=False))
    monkeypatch.setitem(TUNABLE, "gemm", replace(TUNABLE["gemm"], space=lambda problem, hw: small))
    everything = [simulate_design(Job(design_of(asked, small.row(row)), HW, False)) for row in range(len(small))]
    optimum = min(one.time_us for one in everything)
    found = tune(asked, HW, Effort(5, 2))
    assert min(one.time_us for one in everything if one.design == found.best.design) <= 1.03 * optimum
    assert (found.n_simulated, found.n_space) == (5, 24)


def test_are_near_copies_not_simulated_in_place_of_others() -> None:
    found = tune(PROBLEMS[2], HW, Effort(10, 1), run=pretended)
    kinds = {(one.design.tile.m, one.design.tile.n) for one in [*found.ranked, *found.others]}  # type: ignore[attr-defined]
    assert len(kinds) >= 4


def pretended(jobs: object) -> list[Simulated]:
    """Times from the screen, so that nothing is simulated."""
    family = tunable("gemm")
    found = []
    for job in jobs:  # type: ignore[attr-defined]
        time = family.estimate(problem_of(job.design), one_row(family.row_of(job.design)), job.hw).time_us[0]
        found.append(Simulated(job.design, float(time), float(time) * 1800, 1800.0, "tensor", 0.5, 0.2, 1, 128, 1024, job.whole))
    return found


def test_does_a_design_hold_inside_its_envelope_and_is_it_in_it() -> None:
    asked = problem(m=2048, n=2048, k=2048)
    best = tune(asked, HW, Effort(4, 1), run=pretended).best.design
    around = Neighbourhood(best, asked, HW, run=pretended)
    found = around.envelope(0.1)
    assert found.holds(shape_of(asked))
    for shape in (found.low, found.high):
        assert around.holds(shape, 0.1)
    assert not found.holds(shape_of(asked) | {"n": 2049})
    assert around.fallback().multiples == {"m": 1, "n": 1, "k": 8}


def test_is_an_impossible_problem_one_sentence() -> None:
    with pytest.raises(UserError, match="pad k to 8") as caught:
        tune(problem(m=3, n=3, k=7), HW)
    assert "\n" not in str(caught.value)


def test_do_designs_that_fail_cost_themselves_alone() -> None:
    def half(jobs: object) -> list[Simulated]:
        found = pretended(jobs)
        return [Simulated(one.design, failure="no") if i % 2 == 0 and not one.whole else one for i, one in enumerate(found)]

    found = tune(PROBLEMS[2], HW, Effort(6, 2), run=half)
    assert len(found.failed) == 3 and all(not one.failure for one in found.ranked)
    with pytest.raises(UserError, match="none of 4 simulated designs runs"):
        tune(PROBLEMS[2], HW, Effort(4, 1), run=lambda jobs: [Simulated(job.design, failure="no") for job in jobs])
