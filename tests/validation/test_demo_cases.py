"""Does the demo show what it claims to: real, varied, measured kernels that are all here?"""

from __future__ import annotations

from simulator.validation.demo_cases import describe, load_demo


def test_is_every_case_measured_and_its_kernel_at_hand() -> None:
    demo = load_demo()
    assert len(demo.cases) >= 8
    for item in demo.cases:
        assert item.cycles > 0 and item.time_us > 0
        assert item.case.cubin in demo.cubins


def test_are_most_cases_ones_that_nothing_was_fitted_to() -> None:
    splits = [item.split for item in load_demo().cases]
    assert splits.count("check") > splits.count("fit")


def test_is_a_case_named_by_its_problem_and_tile() -> None:
    config = '{"BM": 128, "BN": 64, "BK": 32, "stages": 1, "warps": 4, "GM": 8, "ws": false}'
    assert describe('{"M": 16, "N": 32, "causal": true}', config) == ("16x32", "tile 128x64x32, 4 warps, 1 stage")
