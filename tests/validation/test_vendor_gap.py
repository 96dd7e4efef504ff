"""Are library and compiled kernels of the same problem paired, and are the gaps what the times say?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from simulator.hw.loader import load_hw
from simulator.report.vendor_gap import figure
from simulator.validation.measured import read_measured
from simulator.validation.vendor_gap import COLUMNS, gap_table, pairs

ROOT = Path(__file__).resolve().parents[2]
BUFFERS = {"args": [{"buffer": 1 << 21, "name": "a"}, {"buffer": 1 << 21, "name": "c"}]}


def row(kernel: str, us: float, more: dict[str, Any] | None = None, **columns: str) -> dict[str, str]:
    shape = json.dumps({"M": 1024, "N": 1024, "K": 1024} | (more or {}))
    common = {"id": f"{kernel}-{us}", "kernel": kernel, "dtype": "bf16", "shape": shape, "config": "{}", "split": "check"}
    common |= {"ncu_time_ns": str(1e3 * us), "flops": str(2.0 * 1024**3), "tensor_active_pct": "50", "waves_per_sm": "1"}
    return common | {"cubin": "x", "launch": json.dumps(BUFFERS)} | columns


MEASURED = [
    row("lib_cublas_gemm", 10.0, split="fit"),
    row("lib_cublas_gemm", 12.0),
    row("matmul_tma", 15.0),
    row("matmul_ptr", 14.0),
    row("matmul_tma", 11.0, split="fit"),
    row("matmul_tma", 9.0, {"K": 512}),
    row("matmul_ptr", 20.0, dtype="fp32"),
    row("lib_cublas_gemm", 16.0, {"math": "tf32"}, dtype="fp32"),
    row("lib_cublas_gemm", 99.0, {"math": "fp32"}, dtype="fp32"),
]


def test_the_fastest_of_each_problem_and_split_are_paired() -> None:
    found = pairs([pd.DataFrame(MEASURED)], "check")
    assert [(pair.kernel["id"], pair.library["id"], pair.library_name) for pair in found] == [
        ("matmul_ptr-14.0", "lib_cublas_gemm-10.0", "cublas_gemm"),
        ("matmul_ptr-20.0", "lib_cublas_gemm-16.0", "cublas_gemm tf32"),
    ]
    [again, _] = pairs([pd.DataFrame(MEASURED)], "check", left_out=["matmul_ptr-14.0"])
    assert again.kernel["id"] == "matmul_tma-15.0"


def test_hand_written_fp32_kernels_meet_the_library_without_tensor_cores() -> None:
    hand = pd.DataFrame([row("cuda_sgemm_vec", 120.0, dtype="fp32")])
    [one] = [pair for pair in pairs([pd.DataFrame(MEASURED), hand], "check") if pair.source == 1]
    assert one.library["id"] == "lib_cublas_gemm-99.0"


def test_gaps_are_shares_of_the_librarys_time() -> None:
    hw = load_hw("h200")
    found = pairs([pd.DataFrame(MEASURED)], "check")
    table = gap_table(found, [13.0, 18.0], hw)
    assert list(table.columns) == list(COLUMNS)
    first = table.iloc[0]
    assert first.measured_gap_pct == pytest.approx(40) and first.projected_gap_pct == pytest.approx(30)
    seconds = 2 * 1024**3 / (132 * 4096 * hw.execution_sections().clock.boost_hz)
    assert first.roofline_us == pytest.approx(max(seconds, 2**22 / 4.8e12) * 1e6, rel=0.02)
    assert first.library_over_roofline_pct == pytest.approx(100 * (10 / first.roofline_us - 1))


def test_the_figure_has_a_row_and_three_marks_for_each_problem() -> None:
    table = gap_table(pairs([pd.DataFrame(MEASURED)], "check"), [13.0, 18.0], load_hw("h200"))
    ax = figure(table, "h200").figure.axes[0]
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == ["matmul_ptr bf16 1024x1024x1024", "matmul_ptr fp32 1024x1024x1024"]
    assert {line.get_label() for line in ax.lines} >= {"roofline", "measured", "projected"}


def test_the_kept_table_is_of_the_measured_files() -> None:
    table = pd.read_csv(ROOT / "projections/vendor_gap/gap.csv")
    folder = ROOT / "projections/validation"
    measured = pd.concat([read_measured(folder / name) for name in ("kernels.csv.gz", "ladder.csv.gz")]).set_index("id")
    assert len(table) and list(table.columns) == list(COLUMNS)
    rows = measured.loc[table["id"].astype(str)]
    assert (rows["split"] == "check").all()
    assert table.measured_us.to_numpy() == pytest.approx(rows["ncu_time_ns"].astype(float).to_numpy() / 1e3, rel=1e-3)
    assert (table.roofline_us <= table.library_us * 1.02).all()
