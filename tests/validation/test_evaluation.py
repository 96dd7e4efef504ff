"""Do the error tables hold every case, each in its place?"""

from __future__ import annotations

import json
from dataclasses import asdict

import pandas as pd
import pytest
from rich.console import Console

from simulator.projection.projection import Projection
from simulator.report.validation_report import render, verdict
from simulator.validation.errors import Worst
from simulator.validation.evaluation import evaluate
from simulator.validation.measured import Case
from simulator.validation.predictions import (
    LEADING_COLUMNS,
    TRAILING_COLUMNS,
    stalls_per_issue,
    supported_row,
    to_frame,
    unsupported_row,
)
from tests.validation.runs import many_cases


def projection(cycles: float, **changes: object) -> Projection:
    values = {
        "kernel": "k",
        "hw": "chip",
        "hw_digest": "d",
        "cycles": cycles,
        "time_us": cycles / 1000,
        "clock_mhz": 1000.0,
        "bound_by": "issue",
        "bounds": {},
        "occupancy": {},
        "waves": 1.0,
        "tail_fraction": 0.0,
        "warp_instructions": 1000,
        "smem": {"wavefronts": 50, "bank_conflicts": 0},
        "bytes": {"l2_read": 3200, "dram_read": 640},
        "stalls": {"selected": 0.25, "long_scoreboard": 0.5, "mbarrier": 0.25},
        "weakest_inputs": [],
        "simulated": {},
        "counters": {"l2_read_sectors": 100.0, "tensor_active_pct": 50.0},
    }
    return Projection(**(values | changes))  # type: ignore[arg-type]


@pytest.fixture
def measured() -> pd.DataFrame:
    rows = [
        {"id": "a", "kernel": "gemm", "cycles": "1000", "ncu_time_ns": "1000", "warp_insts": "1000", "split": "check"},
        {"id": "b", "kernel": "gemm", "cycles": "1000", "ncu_time_ns": "60000", "warp_insts": "1002", "split": "check"},
        {"id": "c", "kernel": "row", "cycles": "1000", "ncu_time_ns": "60000", "warp_insts": "1000", "split": "fit"},
        {"id": "lib", "kernel": "lib", "cycles": "1000", "ncu_time_ns": "", "warp_insts": "", "split": "check"},
    ]
    frame = pd.DataFrame(rows).assign(launch="{}", cubin="x", smem_bank_conflicts="0")
    frame.loc[3, "cubin"] = ""
    return frame


@pytest.fixture
def predicted() -> pd.DataFrame:
    rows = [
        supported_row(Case(0, "a", "x", "{}"), projection(1100.0), 0.5),
        supported_row(Case(1, "b", "x", "{}"), projection(700.0), 0.5),
        unsupported_row(Case(2, "c", "x", "{}"), "an opcode\n is  unknown", 0.1),
        unsupported_row(Case(3, "lib", "", ""), "library kernel"),
    ]
    return to_frame(rows)


def test_does_every_case_have_its_row_and_every_column_its_place(predicted: pd.DataFrame) -> None:
    assert list(predicted["id"]) == ["a", "b", "c", "lib"]
    columns = list(predicted.columns)
    assert tuple(columns[: len(LEADING_COLUMNS)]) == LEADING_COLUMNS
    assert tuple(columns[-len(TRAILING_COLUMNS) :]) == TRAILING_COLUMNS
    assert {"predicted_tensor_active_pct", "predicted_ncu_time_ns", "predicted_stall_long_scoreboard"} < set(columns)
    assert predicted["reason"][2] == "an opcode is unknown"
    assert pd.isna(predicted["predicted_cycles"][2])


def test_are_stalls_in_the_unit_and_under_the_names_of_the_profiler() -> None:
    assert stalls_per_issue({"selected": 0.25, "long_scoreboard": 0.5, "mbarrier": 0.25}) == {
        "selected": 1.0,
        "long_scoreboard": 3.0,
    }
    assert stalls_per_issue({"wait": 1.0}) == {}


def test_is_each_split_summed_up_by_family_and_duration(measured: pd.DataFrame, predicted: pd.DataFrame) -> None:
    evaluation = evaluate(measured, predicted)
    assert (evaluation.n_cases, evaluation.n_supported) == (4, 2)
    assert evaluation.reasons == {"an opcode is unknown": 1, "library kernel": 1}
    check = evaluation.splits["check"]
    assert (check.n_with_cubin, check.n_supported) == (2, 2)
    assert check.total is not None and check.total.mape == pytest.approx(20.0)
    assert list(check.families) == ["gemm"]
    assert {name: summary.n for name, summary in check.buckets.items()} == {"< 15 us": 1, "50-300 us": 1}
    assert evaluation.splits["fit"].total is None


def test_are_counters_held_to_their_own_tolerance(measured: pd.DataFrame, predicted: pd.DataFrame) -> None:
    found = {item.counter: item for item in evaluate(measured, predicted).splits["check"].agreements}
    assert found["warp_insts"].within == 50.0 and found["warp_insts"].tolerance == 0.1
    assert found["smem_bank_conflicts"].within == 100.0
    assert "smem_wavefronts" not in found  # not measured


def test_is_the_worst_case_named_and_the_time_judged(measured: pd.DataFrame, predicted: pd.DataFrame) -> None:
    check = evaluate(measured, predicted).splits["check"]
    assert check.worst["all"] == check.worst["gemm"] == Worst("b", pytest.approx(-30.0))
    assert check.worst["< 15 us"].id == "a"
    assert check.compiled == {"gemm": 2}
    assert check.times["all"].n == 2 and check.times["gemm"].median == pytest.approx(54.4, abs=0.1)
    assert {name: summary.n for name, summary in check.classes.items()} == {"memory": 2}


def test_are_shares_compared_in_points_and_problems_ranked() -> None:
    check = evaluate(*many_cases()).splits["check"]
    found = {item.counter: item for item in check.agreements}
    assert found["l2_hit_rate"].unit == "points" and found["l2_hit_rate"].median == pytest.approx(5.0)
    assert found["stall_wait"].median == pytest.approx(25.0) and found["stall_selected"].p90 == pytest.approx(0.0)
    assert check.rankings and all(row["n"] >= 8 and row["regret"] >= 0 for row in check.rankings)


def test_is_a_file_without_measurements_no_error(measured: pd.DataFrame, predicted: pd.DataFrame) -> None:
    evaluation = evaluate(measured[["id", "cubin", "launch"]], predicted)
    assert evaluation.splits == {}
    assert verdict(evaluation) == "2 of 4 cases predicted"


def test_does_the_table_print_and_the_document_serialise(measured: pd.DataFrame, predicted: pd.DataFrame) -> None:
    evaluation = evaluate(measured, predicted)
    console = Console(width=140, color_system=None)
    with console.capture() as capture:
        console.print(render(evaluation))
    text = capture.get()
    assert "2 of 2 compiled kernels (100.0 %)" in text and "an opcode is unknown" in text
    assert "check: MAPE 20.0 %, median 20.0 % over 2" in text
    json.dumps(asdict(evaluation), allow_nan=False)
