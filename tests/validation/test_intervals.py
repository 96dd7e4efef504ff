"""Are intervals as wide as the errors of measured kernels of the same class, and wider where nothing was measured?"""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.hw.loader import load_hw
from simulator.projection import interval as intervals
from simulator.projection.interval import ALL, DESIGN, KERNEL, Spread, choose, interval_of, kernel_class, read_spreads
from simulator.validation.intervals import cases, coverage, spreads, to_yaml
from simulator.validation.measured import read_measured
from simulator.validation.predictions import read_predictions
from tests.validation.runs import many_cases

TENSOR_BOUNDS = {"tensor": 900.0, "dram": 950.0, "issue": 100.0}
SPREADS = (
    Spread(KERNEL, "tensor", "< 15 us", 40, 0.95, 1.1),
    Spread(KERNEL, "tensor", "> 300 us", 9, 0.5, 2.0),
    Spread(KERNEL, "tensor", ALL, 49, 0.9, 1.2),
    Spread(KERNEL, ALL, ALL, 90, 0.8, 1.3),
    Spread(DESIGN, ALL, ALL, 20, 0.7, 1.25),
)


@pytest.fixture
def measured_chip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intervals, "measured_spreads", lambda: {"h200": SPREADS})


def test_does_the_projection_alone_decide_the_class() -> None:
    assert kernel_class(TENSOR_BOUNDS) == "tensor"
    assert kernel_class({"tensor": 0.0, "l2": 5.0, "dram": 1.0, "issue": 4.0, "launch": 99.0}) == "memory"
    assert kernel_class({"l2": 5.0, "dram": 1.0, "shared_memory": 6.0}) == "other"


def test_does_a_small_group_use_a_wider_one() -> None:
    assert choose(SPREADS, "tensor", "< 15 us").high == 1.1
    assert choose(SPREADS, "tensor", "> 300 us").high == 1.2
    assert choose(SPREADS, "memory", "> 300 us").high == 1.3
    assert choose(SPREADS, "tensor", "< 15 us", DESIGN).high == 1.25


@pytest.mark.usefixtures("measured_chip")
def test_is_a_chip_that_was_never_measured_wider_and_told() -> None:
    chip = load_hw("h200")
    own = interval_of(1000.0, 10.0, TENSOR_BOUNDS, chip)
    assert (own["low"], own["high"], own["n"]) == (950.0, 1100.0, 40)
    assert own["basis"] == "80 % of 40 measured tensor kernels of < 15 us on h200"
    changed = interval_of(1000.0, 10.0, TENSOR_BOUNDS, load_hw("h200", ("sm.count=140",)))
    other = interval_of(1000.0, 10.0, TENSOR_BOUNDS, load_hw("b200"))
    for found in (changed, other):
        assert found["low"] == pytest.approx(250.0) and found["high"] == pytest.approx(4000.0)
        assert found["n"] == 0 and "was never measured" in found["basis"]


def test_is_there_no_interval_without_measurements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intervals, "measured_spreads", dict)
    assert interval_of(1000.0, 10.0, TENSOR_BOUNDS, load_hw("h200")) == {}


def test_are_the_quantiles_those_of_each_class() -> None:
    found = {(row.kernel_class, row.duration): row for row in spreads(cases(*many_cases(4000)))}
    tensor, memory = found["tensor", ALL], found["memory", ALL]
    assert (tensor.low, tensor.high) == pytest.approx((0.938, 1.066), abs=0.01)
    assert (memory.low, memory.high) == pytest.approx((0.774, 1.292), abs=0.03)
    assert found["memory", "15-50 us"].n + found["memory", "50-300 us"].n == memory.n


def test_do_intervals_made_from_one_split_hold_on_the_other() -> None:
    found = coverage(cases(*many_cases(4000)), "fit", "check")
    assert found is not None and found.n == found.n_made_from == 2000
    assert found.inside == pytest.approx(80, abs=3)
    assert all(share == pytest.approx(80, abs=4) for share in found.classes.values())
    assert coverage(cases(*many_cases()), "nothing", "check") is None


def test_is_the_file_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "intervals.yaml"
    path.write_text(to_yaml(list(SPREADS), {"chip": "a"}))
    assert read_spreads(path) == SPREADS


def test_are_the_committed_intervals_those_of_the_committed_predictions(repository: Path) -> None:
    folder = repository / "projections" / "validation"
    measured = read_measured(folder / "kernels.csv.gz")
    predicted = read_predictions([folder / "h200" / "predictions.csv.gz"], measured)
    measured = measured[measured["id"].isin(predicted["id"])].reset_index(drop=True)
    committed = [row for row in read_spreads(folder / "h200" / "intervals.yaml") if row.of == KERNEL]
    table = cases(measured, predicted)
    assert committed == spreads(table), "run: make accuracy"
    found = coverage(table, "fit", "check")
    assert found is not None and found.inside == pytest.approx(80, abs=6)
