"""Are the suites that are shipped whole: every file a suite, every design of a known family legal?"""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.hw.loader import load_hw
from simulator.kernels.families import FAMILIES, parse_design
from simulator.projection.tile_card import check_design
from simulator.study.spec import load_suite_file
from simulator.study.suite import problems_of_suite
from simulator.tuning.families import title

SUITES = sorted((Path(__file__).resolve().parents[2] / "kernel_traces" / "suites").glob("*.yaml"))


@pytest.mark.parametrize("path", SUITES, ids=lambda path: path.stem)
def test_is_every_entry_a_named_and_legal_design(path: Path) -> None:
    suite = load_suite_file(path)
    names = [entry.name for entry in suite.kernels]
    assert suite.about and len(set(names)) == len(names)
    chip = load_hw("h200")
    for entry in suite.kernels:
        assert isinstance(entry.tile, dict)
        if entry.tile["kind"] in FAMILIES:
            assert check_design(parse_design(entry.tile, str(entry.name)), chip) == []


@pytest.mark.parametrize("name", ["llm_training_gemm", "llm_decode_gemm"])
def test_does_a_suite_give_the_problems_to_tune(name: str) -> None:
    path = next(path for path in SUITES if path.stem == name)
    problems = problems_of_suite(path)
    assert len(problems) == len(load_suite_file(path).kernels)
    assert all(title(problem).startswith("gemm ") for problem in problems)
