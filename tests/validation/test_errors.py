"""Are errors what their names say?"""

from __future__ import annotations

import math

import numpy as np
import pytest

from simulator.projection.interval import duration_bucket, duration_buckets
from simulator.validation.errors import (
    agreement,
    grouped,
    signed_errors,
    summarize,
)


def test_is_a_slow_prediction_a_positive_error() -> None:
    assert signed_errors(np.array([110.0, 90.0]), np.array([100.0, 100.0])) == pytest.approx([10.0, -10.0])


def test_is_a_missing_value_no_error_at_all() -> None:
    errors = signed_errors(np.array([np.nan, 5.0, 5.0]), np.array([1.0, np.nan, 5.0]))
    assert np.isnan(errors[:2]).all() and errors[2] == 0.0


def test_is_a_measured_zero_right_only_when_predicted() -> None:
    assert list(signed_errors(np.array([0.0, 3.0]), np.array([0.0, 0.0]))) == [0.0, math.inf]


def test_does_a_summary_hold_every_statistic() -> None:
    summary = summarize(np.array([-30.0, -10.0, 0.0, 10.0, 20.0, np.nan]))
    assert summary is not None
    assert (summary.n, summary.mape, summary.median, summary.bias) == (5, 14.0, 10.0, -2.0)
    assert (summary.within_10, summary.within_20) == (60.0, 80.0)
    assert summary.p90 == pytest.approx(26.0)


def test_is_a_summary_of_nothing_nothing() -> None:
    assert summarize(np.array([np.nan])) is None
    assert agreement("x", np.array([]), np.array([]), 1.0) is None


def test_does_agreement_count_the_cases_inside_the_tolerance() -> None:
    found = agreement("x", np.array([100.0, 101.0, 103.0, 7.0]), np.array([100.0, 100.0, 100.0, 0.0]), 2.0)
    assert found is not None
    assert (found.n, found.within) == (4, 50.0)
    assert found.median == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("time_us", "name"),
    [(1.0, "< 15 us"), (15.0, "15-50 us"), (49.9, "15-50 us"), (50.0, "50-300 us"), (300.0, "> 300 us")],
)
def test_does_each_duration_have_its_class(time_us: float, name: str) -> None:
    assert duration_bucket(time_us) == name
    assert name in duration_buckets()


def test_does_every_group_get_its_own_summary() -> None:
    tables = grouped(np.array([1.0, -3.0, np.nan]), ["gemm", "gemm", "softmax"])
    assert list(tables) == ["gemm"]
    assert tables["gemm"].mape == 2.0


def test_is_a_missed_zero_no_number() -> None:
    found = agreement("x", np.array([5.0, 5.0]), np.array([0.0, 0.0]), 2.0)
    assert found is not None and found.within == 0.0 and found.median is None
