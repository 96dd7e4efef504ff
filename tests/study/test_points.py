"""Are the chips of a study the ones that its file describes, and are impossible ones told apart?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.hw.loader import load_hw, with_overrides
from simulator.study.chips import make_rules
from simulator.study.levels import level_at, levels_of, scaled
from simulator.study.points import BASE, SAMPLE, SCENARIO, SLICE, STEP, DesignPoint, PointMaker
from simulator.study.run import Study
from simulator.study.spec import Axis, parse_spec
from tests.study.closed_form import DRAM, L2, SMS, document, save_kernels

CHIP = load_hw("h200")
DRAM_NOW = CHIP.provenance[DRAM].value


def axis(**fields: Any) -> Axis:
    return Axis.model_validate(fields)


def points_of(tmp_path: Path, **changes: Any) -> list[DesignPoint]:
    save_kernels(tmp_path)
    return Study(parse_spec(document(**changes)), tmp_path).points()


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"path": SMS, "values": [66, "x2"]}, [66, 264]),
        ({"path": DRAM, "values": ["5TB/s", "x0.5"]}, [5e12, DRAM_NOW / 2]),
        ({"path": SMS, "range": {"from": 100, "to": 200, "steps": 3}}, [100, 150, 200]),
        ({"path": DRAM, "log_range": {"from": "x1", "to": "x4", "steps": 3}}, [DRAM_NOW, 2 * DRAM_NOW, 4 * DRAM_NOW]),
        (
            {"path": "timing.clock.tensor_hz", "values": ["x2"]},
            [[2 * hz for hz in CHIP.provenance["timing.clock.tensor_hz"].value]],
        ),
        ({"path": "timing.tensor_async.queue_depth", "values": ["x1.5"]}, [10]),
    ],
)
def test_is_a_value_what_the_axis_says(fields: dict[str, Any], expected: list[Any]) -> None:
    found = [level.settings[0][1] for level in levels_of(axis(**fields), CHIP)]
    assert found == pytest.approx(expected) if isinstance(expected[0], float) else found == expected


def test_do_linked_paths_move_together() -> None:
    levels = levels_of(axis(name="both", linked={SMS: [100, 200], L2: ["x1", "x2"]}), CHIP)
    assert [level.settings for level in levels] == [((SMS, 100), (L2, 62914560)), ((SMS, 200), (L2, 125829120))]
    together = levels_of(axis(paths=[DRAM, "timing.dram.write_bytes_per_second"], values=["x2"]), CHIP)[0]
    assert [value / CHIP.provenance[path].value for path, value in together.settings] == [2, 2]


@given(st.floats(0, 1))
def test_does_a_continuous_range_stay_inside_its_ends(share: float) -> None:
    value = level_at(axis(path=DRAM, log_range={"from": "x0.5", "to": "x2"}), CHIP, share).number
    assert value is not None
    assert DRAM_NOW * 0.4999 <= value <= DRAM_NOW * 2.0001


@settings(deadline=None)
@given(st.floats(0.3, 3))
def test_do_whole_numbers_stay_whole(factor: float) -> None:
    value = scaled(CHIP, "timing.tensor_async.queue_depth", factor)
    assert isinstance(value, int)
    assert isinstance(scaled(CHIP, DRAM, factor), float)


def test_are_all_kinds_of_points_there(tmp_path: Path) -> None:
    kinds = [point.kind for point in points_of(tmp_path)]
    assert kinds[0] == BASE
    assert {kind: kinds.count(kind) for kind in (SCENARIO, SLICE, SAMPLE, STEP)} == {SCENARIO: 2, SLICE: 6, SAMPLE: 8, STEP: 8}


def test_does_a_scenario_build_on_the_one_before(tmp_path: Path) -> None:
    second = next(point for point in points_of(tmp_path) if point.id == "and more SMs")
    chip = with_overrides(CHIP, second.overrides)
    assert chip.sm.count == 264
    assert chip.timing is not None
    assert chip.timing.dram.read_bytes_per_second == 2 * DRAM_NOW


@pytest.mark.parametrize("method", ["lhs", "sobol"])
def test_does_sampling_fill_the_space_and_repeat_itself(method: str, tmp_path: Path) -> None:
    changes = {"axes": [{"path": DRAM, "range": {"from": "x1", "to": "x2"}}, {"path": SMS, "range": {"from": 64, "to": 192}}]}
    sampling = {"method": method, "points": 12, "seed": 3}
    first, again = (
        [p.overrides for p in points_of(tmp_path, sampling=sampling, **changes) if p.kind == SAMPLE] for _ in range(2)
    )
    assert first == again
    assert len(set(first)) == 12


def test_is_an_impossible_chip_listed_with_its_reason(tmp_path: Path) -> None:
    points = points_of(tmp_path, axes=[{"path": "shared_memory.n_banks", "values": [16, 48, 64]}])
    bad = [point for point in points if point.rejected]
    assert {point.id for point in bad} == {"shared_memory.n_banks=48"}
    assert "n_banks" in bad[0].rejected
    assert "power of two" in bad[0].rejected


def test_is_a_broken_constraint_a_reason(tmp_path: Path) -> None:
    points = points_of(tmp_path, constraints=["cost <= 5", f"{SMS} * shared_memory.capacity_bytes + {L2} <= 200 * MiB"])
    reasons = {point.id: point.rejected for point in points if point.rejected}
    assert reasons["DRAM=x8"] == "constraint cost <= 5 does not hold"
    assert "MiB" in reasons["L2=x4"]
    assert not any(point.rejected for point in points if point.kind in (BASE, STEP))


def test_are_several_bases_each_studied(tmp_path: Path) -> None:
    other = tmp_path / "wide.yaml"
    other.write_text("extends: h200\nsm: {count: {value: 264, source: assumption, confidence: assumed}}\n")
    points = points_of(tmp_path, base=["h200", "wide.yaml"])
    assert [point.id for point in points[:2]] == ["h200/base", "wide/base"]
    assert {point.base for point in points if point.kind == SLICE} == {"h200", "wide"}


def test_does_a_step_that_changes_nothing_say_so() -> None:
    from simulator.study.sensitivity import step

    spec = parse_spec(document())
    maker = PointMaker(spec, CHIP, make_rules(spec, CHIP))
    assert step(maker, "timing.tensor_async.queue_depth", 1.01).factor == pytest.approx(8 / 7)
    assert step(maker, DRAM, 1.25).factor == pytest.approx(1.25)
