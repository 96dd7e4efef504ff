"""Do the answers of a study agree with kernels whose times are formulas?"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from simulator.hw.loader import load_hw, with_overrides
from simulator.study import work
from simulator.study.pareto import pareto_front
from simulator.study.results import StudyResults
from simulator.study.sensitivity import SUITE
from simulator.study.uncertainty import is_distinguishable
from tests.study.closed_form import CLASSES, DRAM, KERNELS, L2, SMS, UNFELT, project, time_us

Run = Callable[..., StudyResults]


def test_do_elasticities_agree_with_finite_differences(run_study: Run) -> None:
    results = run_study()
    chip = load_hw("h200")
    for _, row in results.tornado.iterrows():
        if row["kernel"] == SUITE:
            continue
        ends = []
        for point in results.points:
            if point.parameter == row["parameter"]:
                ends.append((point.factor, time_us(row["kernel"], with_overrides(chip, point.overrides))))
        (low, slow), (high, fast) = sorted(ends)
        assert row["elasticity"] == pytest.approx(math.log(fast / slow) / math.log(high / low), abs=1e-9)


def test_is_a_pure_bound_an_elasticity_of_minus_one(run_study: Run) -> None:
    table = run_study().tornado.pivot(index="parameter", columns="kernel", values="elasticity")
    assert table.loc[DRAM, "copy"] == pytest.approx(-1)
    assert table.loc[SMS, "math"] == pytest.approx(-1)
    assert table.loc[UNFELT].abs().max() == 0
    assert table.loc[DRAM, "math"] == 0


def test_is_the_suite_weighted_by_its_share_of_base_time(run_study: Run) -> None:
    results = run_study()
    point = results.point("DRAM=x2")
    copy, math_, mixed = (results.time_over_base(point, name) for name in KERNELS)
    assert copy == pytest.approx(0.5)
    assert results.time_over_base(point, SUITE) == pytest.approx((2 * copy + math_ + mixed) / 4)


def test_is_the_knee_the_smallest_value_that_is_nearly_best(run_study: Run) -> None:
    knees = run_study().knees.set_index(["axis", "kernel"])
    assert knees.loc[("DRAM", "copy"), "knee"] == "x8"
    assert knees.loc[("DRAM", "math"), "knee"] == "x1"
    assert knees.loc[("L2", "math"), "knee"] == "x1"
    assert knees.loc[("L2", "mixed"), "knee"] == "x4"


def test_is_the_best_design_best(run_study: Run) -> None:
    results = run_study()
    best = results.best("time * cost")
    assert (results.designs["objective time * cost"] >= best["objective time * cost"]).all()
    assert results.designs["is_on_front"].any()


@given(arrays.arrays(float, st.tuples(st.integers(1, 12), st.just(2)), elements=st.integers(0, 5).map(float)))
def test_is_nothing_on_the_front_beaten(costs: np.ndarray) -> None:
    on_front = pareto_front(costs)
    beaten = [any((b <= a).all() and (b < a).any() for b in costs) for a in costs]
    assert on_front.tolist() == [not x for x in beaten]
    assert on_front.any()


def test_are_small_differences_marked(run_study: Run) -> None:
    results = run_study(axes=[{"path": DRAM, "values": ["x1.01", "x4"]}])
    marks = results.designs.set_index("point")["is_distinguishable"]
    assert not marks[f"{DRAM}=x1.01"]
    assert marks[f"{DRAM}=x4"]
    assert not is_distinguishable(1.0, 0.0)


def test_does_the_class_of_a_kernel_decide_its_interval(run_study: Run) -> None:
    results = run_study()
    assert {name: found.kernel_class for name, found in results.uncertainties.items()} == CLASSES
    for name, found in results.uncertainties.items():
        assert found.low <= 1 <= found.high and f"{CLASSES[name]} kernels" in found.basis
    assert set(results.frame["class"]) == set(CLASSES.values())


def test_is_the_interval_of_a_projection_used_when_there_is_one(run_study: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def with_interval(*arguments: Any, **options: Any) -> Any:
        found = project(*arguments, **options)
        object.__setattr__(found, "interval", {"low": found.cycles * 0.8, "high": found.cycles * 1.2})
        return found

    monkeypatch.setattr(work, "project_trace", with_interval)
    assert run_study().half_width == pytest.approx(0.2)


def test_does_a_failing_point_cost_itself_alone(run_study: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from simulator.errors import UserError

    def sometimes(trace: Any, chip: Any, *unused: Any, **unused_options: Any) -> Any:
        if chip.l2.capacity_bytes > 100_000_000 and trace.kernel == "math":
            raise UserError("this kernel deadlocks here")
        if chip.sm.count == 264:
            raise RuntimeError("boom")
        return project(trace, chip)

    monkeypatch.setattr(work, "project_trace", sometimes)
    results = run_study()
    reasons = {(point, kernel): reason for point, kernel, reason in results.failed}
    assert reasons["L2=x4", "math"] == "this kernel deadlocks here"
    assert "internal error, RuntimeError" in reasons["and more SMs", "copy"]
    assert "L2=x4" not in set(results.designs["point"])
    assert "DRAM=x4" in set(results.designs["point"])
    assert set(results.frame["status"]) == {"ok", "failed"}


def test_does_optimisation_find_the_corner_and_repeat_itself(run_study: Run) -> None:
    axes = [{"path": DRAM, "range": {"from": "x1", "to": "x4"}}, {"path": SMS, "values": [66, 132, 264]}]
    changes: dict[str, Any] = {"axes": axes, "sampling": {"method": "optimize", "points": 24}, "objectives": ["time"]}
    first, again = run_study(**changes), run_study(**changes)
    found = [point.id for point in first.points if point.id.startswith("optimize")]
    assert len(found) == 24
    assert first.frame.equals(again.frame)
    best = first.point(first.best("time")["point"])
    assert best.numbers[SMS] == 264
    assert first.best("time")["time"] < 0.6


@pytest.mark.parametrize("method", ["morris", "sobol"])
def test_does_the_second_order_see_an_interaction(method: str, run_study: Run) -> None:
    second = {"method": method, "top": 3, "samples": 8}
    results = run_study(axes=[], sensitivity={"parameters": [DRAM, SMS, L2, UNFELT], "second_order": second})
    assert [item.parameter for item in results.interactions] == [DRAM, SMS, L2]
    assert results.interactions[0].effect > results.interactions[2].effect
