"""Do the formulas that we print beside our own error do what they claim?"""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from simulator.hw.loader import load_hw
from simulator.validation.baselines import (
    WaveModel,
    Work,
    compulsory_bytes,
    fit_wave_model,
    formula_predictions,
    roofline,
)


def work(n: int = 40) -> Work:
    generator = np.random.default_rng(1)
    compute, memory = 10 ** generator.uniform(3, 6, (2, n))
    return Work(compute, memory, generator.uniform(0.2, 8.0, n))


def test_does_every_operand_count_once() -> None:
    tensor = {"name": "b", "shape": [64, 32], "strides_bytes": [256], "dtype": "bf16"}
    arguments = [{"buffer": 100, "name": "a"}, {"i32": 7}, {"tensormap": tensor}, {"buffer": 100, "name": "a"}]
    assert compulsory_bytes(json.dumps({"args": arguments})) == 100 + 256 * 32


@pytest.mark.parametrize("launch", ["", "{", "{}", '{"args": [{"tensormap": {}}]}'])
def test_is_an_unclear_launch_unknown_and_not_zero(launch: str) -> None:
    assert np.isnan(compulsory_bytes(launch))


def test_is_the_roofline_the_larger_of_its_two_roofs() -> None:
    found = roofline(Work(np.array([5.0, 1.0, np.nan]), np.array([2.0, 3.0, 4.0]), np.ones(3)))
    assert list(found) == [5.0, 3.0, 4.0]


def test_does_the_fit_find_the_parameters_that_made_the_data() -> None:
    truth = WaveModel(0.7, 0.85, 4000.0)
    cases = work()
    found = fit_wave_model(cases, truth.cycles(cases))
    assert found.efficiency == pytest.approx(0.7, abs=0.026)
    assert found.bandwidth == pytest.approx(0.85, abs=0.026)
    assert found.overhead_cycles == pytest.approx(4000.0, rel=0.05)
    assert np.abs(found.cycles(cases) / truth.cycles(cases) - 1).mean() < 0.01


def test_does_a_partial_wave_cost_a_whole_one() -> None:
    model = WaveModel(1.0, 1.0, 0.0)
    assert model.cycles(Work(np.array([100.0]), np.array([0.0]), np.array([1.25]))) == pytest.approx([160.0])


def test_is_a_family_without_fit_rows_without_a_wave_model() -> None:
    def rows(kernel: str, cycles: list[float]) -> pd.DataFrame:
        launch = json.dumps({"args": [{"buffer": 1 << 24, "name": "a"}]})
        frame = pd.DataFrame({"cycles": cycles}).astype(str)
        return frame.assign(kernel=kernel, dtype="fp32", flops="0", waves_per_sm="1", launch=launch)

    fit = rows("copy", [20_000.0, 21_000.0])
    measured = pd.concat([rows("copy", [20_500.0]), rows("other", [20_500.0])], ignore_index=True)
    found = formula_predictions(measured, fit, load_hw("h200"))
    assert found["wave model"][0] == pytest.approx(20_500.0, rel=0.05)
    assert np.isnan(found["wave model"][1])
    assert np.isfinite(found["roofline"]).all()
