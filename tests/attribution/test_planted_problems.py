"""Is a planted problem found, named first, and its gain predicted?"""

from __future__ import annotations

from typing import Any

import pytest

from simulator.hw.config import HardwareConfig
from simulator.hw.loader import load_hw
from simulator.kernels.families import family_of, parse_design
from simulator.projection.advice import Case, advise_on
from simulator.projection.annotated_code import annotate, hottest
from simulator.projection.run import project_replay, replay_trace
from simulator.projection.tile_card import ready_to_build
from simulator.trace.kernel_trace import KernelTrace
from tests.attribution.planted import PLANTED, RULE, TRUE_SHARE, long_epilogue

FEW_SMS = 1
"""Instruction budget: the fewest SMs that the planner allows are simulated."""
CULPRIT = {
    "bank_conflicts": ("LDS", "FADD"),
    "missing_swizzle": ("LDS.128", "FADD"),
    "too_few_stages": ("DEPBAR.LE",),
    "uncoalesced": ("LDG.E", "FADD"),
    "spills": ("LDL", "STL", "FFMA"),
    "exposed_softmax": ("MUFU.EX2",),
    "small_boxes": ("BRA",),
}
"""Instructions of which one has most stall cycles: the slow one, or the first that waits for it."""


@pytest.fixture(scope="module")
def chip() -> HardwareConfig:
    return load_hw("h200")


def look_at(name: str, chip: HardwareConfig) -> tuple[Case, float]:
    """(what the rules see, cycles without the problem)."""
    bad, good = PLANTED[name]()
    replay = replay_trace(bad, chip, FEW_SMS, profile=True)
    found = project_replay(replay, chip, 0.0)
    truth = project_replay(replay_trace(good, chip, FEW_SMS), chip, 0.0).cycles
    if name in TRUE_SHARE:
        launch = chip.execution_sections().timing.launch
        fixed = launch.latency_cycles + launch.drain_cycles
        truth = fixed + (truth - fixed) * TRUE_SHARE[name]
    return Case(found, replay, annotate(replay, chip), chip, FEW_SMS), truth


@pytest.mark.parametrize("name", PLANTED)
def test_is_a_planted_problem_named_first_with_its_gain(name: str, chip: HardwareConfig) -> None:
    case, truth = look_at(name, chip)
    advice = advise_on(case)
    assert advice, f"no advice: {case.projection.cycle_stack}"
    assert advice[0].rule == RULE[name]
    assert advice[0].gain == pytest.approx(1 - truth / case.projection.cycles, rel=0.2)
    assert advice[0].gain_cycles > 0 and advice[0].threshold and advice[0].evidence


@pytest.mark.parametrize("name", CULPRIT)
def test_does_the_hot_list_begin_with_the_culprit(name: str, chip: HardwareConfig) -> None:
    case, _ = look_at(name, chip)
    assert hottest(case.code, 1)[0].text in CULPRIT[name]


@pytest.mark.parametrize("name", PLANTED)
def test_is_the_cured_kernel_left_alone(name: str, chip: HardwareConfig) -> None:
    _, good = PLANTED[name]()
    replay = replay_trace(good, chip, FEW_SMS, profile=True)
    case = Case(project_replay(replay, chip, 0.0), replay, annotate(replay, chip), chip, FEW_SMS)
    assert RULE[name] not in [advice.rule for advice in advise_on(case)]


def test_do_the_stall_cycles_of_all_instructions_sum_to_all_stalls(chip: HardwareConfig) -> None:
    bad, _ = long_epilogue()
    replay = replay_trace(bad, chip, FEW_SMS, profile=True)
    code = annotate(replay, chip)
    stalls = project_replay(replay, chip, 0.0).stalls
    issues = sum(line.issues for line in code)
    assert issues == bad.warp_instructions
    assert sum(line.share for line in code) == pytest.approx(1)
    assert sum(line.stall_cycles for line in code) / issues == pytest.approx((1 - stalls["selected"]) / stalls["selected"])


def generated(chip: HardwareConfig, **parameters: Any) -> KernelTrace:
    """A GEMM of 128x128 tiles by 4 warps."""
    design = {"kind": "gemm", "m": 2048, "n": 2048, "k": 1024, "dtype": "fp16", "warps": 4} | parameters
    ready, _, _ = ready_to_build(parse_design(design, "test"), chip)
    return family_of(ready).build(ready, chip.identity.instruction_set)


WAITING = {"multiply": "mma_sync", "loads": "cp_async", "tile": {"m": 128, "n": 128, "k": 32}}
BULK = {"stages": 3, "tile": {"m": 128, "n": 128, "k": 64}}
COPIER = {"producer_warps": 4, "warps": 8, "tile": {"m": 128, "n": 256, "k": 32}, "k": 2048}
MENDED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "two stages": (WAITING | {"stages": 2}, WAITING | {"stages": 4}, "too_few_stages"),
    "two stages of bulk copies": (BULK | {"stages": 2}, BULK | {"stages": 3}, "too_few_stages"),
    "two stages of a warp that copies": (COPIER | {"stages": 2}, COPIER | {"stages": 5}, "too_few_stages"),
    "boxes of 16 bytes": (BULK | {"swizzle_bytes": 0}, BULK | {"swizzle_bytes": 128}, "small_boxes"),
    "boxes of 32 bytes": (BULK | {"swizzle_bytes": 32}, BULK | {"swizzle_bytes": 128}, "small_boxes"),
}
"""A design, the design that does as advised, and the rule that should say so."""


@pytest.mark.parametrize("name", MENDED)
def test_is_the_gain_that_of_the_design_that_does_as_advised(name: str, chip: HardwareConfig) -> None:
    bad, good, rule = MENDED[name]
    replay = replay_trace(generated(chip, **bad), chip, FEW_SMS, profile=True)
    case = Case(project_replay(replay, chip, 0.0), replay, annotate(replay, chip), chip, FEW_SMS)
    first = advise_on(case)[0]
    assert first.rule == rule
    truth = project_replay(replay_trace(generated(chip, **good), chip, FEW_SMS), chip, 0.0).cycles
    assert first.cycles == pytest.approx(truth, rel=0.05)
