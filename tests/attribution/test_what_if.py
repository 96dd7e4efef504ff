"""Do what-if answers come from replays, in order of gain, and agree with the cycle stack?"""

from __future__ import annotations

import pytest

from simulator.hw.config import HardwareConfig
from simulator.hw.loader import load_hw
from simulator.projection.ideals import IDEALS, Ideal, with_value
from simulator.projection.projection import Projection
from simulator.projection.run import project_replay, replay_trace
from simulator.projection.what_if import WhatIf, candidates, stack_share, what_if
from tests.attribution.planted import conflicts_32_ways, partial_wave, scattered_loads

FEW_SMS = 1


@pytest.fixture(scope="module")
def chip() -> HardwareConfig:
    return load_hw("h200")


def answers(planted, chip: HardwareConfig) -> tuple[Projection, list[WhatIf]]:  # type: ignore[no-untyped-def]
    trace = planted()[0]
    found = project_replay(replay_trace(trace, chip, FEW_SMS), chip, 0.0)
    return found, what_if(trace, chip, found.cycle_stack, found.cycles, FEW_SMS)


@pytest.mark.parametrize(
    ("planted", "best"),
    [
        (conflicts_32_ways, ("endless_shared_memory", "no_bank_conflicts")),
        (scattered_loads, ("endless_hbm", "hidden_memory_latency", "no_hbm_latency")),
        (partial_wave, ("results_at_once", "perfect_tail")),
    ],
)
def test_is_the_planted_resource_worth_most(planted, best: tuple[str, ...], chip: HardwareConfig) -> None:  # type: ignore[no-untyped-def]
    found, ranked = answers(planted, chip)
    assert ranked[0].name in best
    assert [answer.gain for answer in ranked] == sorted((answer.gain for answer in ranked), reverse=True)
    for answer in ranked:
        assert answer.gain >= 0 or answer.is_anomaly or answer.gain > -0.002
        assert answer.gain_cycles == pytest.approx(found.cycles - answer.cycles)
        assert answer.stack_share == pytest.approx(answer.gain + answer.remainder)


def test_is_what_takes_no_time_not_replayed() -> None:
    assert [ideal.name for ideal in candidates({"tensor": 0.995, "launch": 0.005})] == ["endless_tensor_cores"]


@pytest.mark.parametrize("ideal", IDEALS, ids=lambda ideal: ideal.name)
def test_does_an_ideal_chip_differ_only_where_it_says(ideal: Ideal, chip: HardwareConfig) -> None:
    changed = ideal.chip(chip)
    values, ideals = chip.values(), changed.values()
    for path in ideal.values:
        section, *rest = path.split(".")
        assert section == "timing" and getattr(changed.timing, rest[0]) is not None
    assert (values == ideals) is not bool(ideal.values)
    assert stack_share(ideal, dict.fromkeys(ideal.causes, 0.25)) == pytest.approx(0.25 * len(ideal.causes))
    assert chip.values() == values


def test_is_one_value_replaced_and_the_rest_kept(chip: HardwareConfig) -> None:
    changed = with_value(chip, ["timing", "issue", "taken_branch_cycles"], 99.0)
    assert changed.timing.issue.taken_branch_cycles == 99.0
    assert changed.timing.shared == chip.timing.shared
