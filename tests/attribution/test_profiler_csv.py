"""Are measured counters read right, whatever their notation, and is the figure that explains a time named?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from simulator.cli.app import run
from simulator.data_files import data_folder
from simulator.errors import UserError
from simulator.validation.measured import numbers, read_measured, select
from simulator.validation.profiler_comparison import choose_launch, compare_with_profiler
from simulator.validation.profiler_csv import parse_number, read_launches, unit_factor
from simulator.validation.profiler_metrics import METRICS, STALLS_PER_ISSUE

STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
RAW = f"""==PROF== Connected to process 4711
==PROF== Profiling "matmul_tma": 0%....100% - 9 passes
"ID","Process ID","Kernel Name","Block Size","dram__bytes_read.sum","gpu__time_duration.sum","sm__cycles_elapsed.max",\
"smsp__inst_executed.sum","smsp__cycles_elapsed.avg.per_second","{STALL.format("long_scoreboard")}","unrelated__metric.sum"
"","","","","Mbyte","us","cycle","inst","cycle/nsecond","inst",""
"0","4711","fill(float*)","(256, 1, 1)","0.1","2.00","3,000","1,000","1.50","1.0","7"
"1","4711","matmul_tma","(256, 1, 1)","48.00","75.00","125,000","1,000,000","1.70","2.00","7"
"""
DETAILS = """"ID","Process ID","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value"
"1","4711","matmul_tma","GPU Speed Of Light Throughput","Duration","us","60.50"
"1","4711","matmul_tma","GPU Speed Of Light Throughput","Elapsed Cycles","cycle","101,234"
"1","4711","matmul_tma","GPU Speed Of Light Throughput","SM Frequency","Ghz","1.70"
"1","4711","matmul_tma","Occupancy","Achieved Occupancy","%","12.10"
"1","4711","matmul_tma","Occupancy","Theoretical Occupancy","%","12.50"
"1","4711","matmul_tma","Launch Statistics","Waves Per SM","","2.50"
"1","4711","matmul_tma","Memory","Memory Throughput","Tbyte/s","1.25"
"1","4711","matmul_tma","Memory","Memory Throughput","%","26.00"
"1","4711","matmul_tma","Launch Statistics","Function Cache Configuration","","CachePreferNone"
"""


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("1,234,567", 1_234_567),
        ("1,234.5", 1234.5),
        ("12", 12),
        ("0.95", 0.95),
        ("1.234,5", 1234.5),
        ("0,95", 0.95),
        ("12\u00a0345", 12345),
        ("-3.5", -3.5),
        ("1e+06", 1e6),
        ("CachePreferNone", None),
        ("", None),
        ("nan", None),
        ("inf", None),
    ],
)
def test_is_a_number_read_in_every_notation(cell: str, value: float | None) -> None:
    assert parse_number(cell) == value


@pytest.mark.parametrize(
    ("unit", "factor", "base"),
    [
        ("byte", 1, "byte"),
        ("Kbyte", 1e3, "byte"),
        ("Gbyte", 1e9, "byte"),
        ("Tbyte/s", 1e12, "byte/s"),
        ("Gbyte/second", 1e9, "byte/s"),
        ("byte/us", 1e6, "byte/s"),
        ("us", 1e-6, "second"),
        ("usecond", 1e-6, "second"),
        ("nsecond", 1e-9, "second"),
        ("ms", 1e-3, "second"),
        ("second", 1, "second"),
        ("Ghz", 1e9, "hertz"),
        ("MHz", 1e6, "hertz"),
        ("cycle/nsecond", 1e9, "hertz"),
        ("cycle/second", 1, "hertz"),
        ("%", 1, "%"),
        ("inst", 1, "inst"),
        ("inst/cycle", 1, "inst/cycle"),
        ("register/thread", 1, "register/thread"),
        ("sector", 1, "sector"),
        ("", 1, ""),
    ],
)
def test_is_every_unit_brought_to_its_base(unit: str, factor: float, base: str) -> None:
    assert unit_factor(unit) == (pytest.approx(factor), base)


def test_are_launches_of_the_raw_page_read_with_their_units() -> None:
    first, second = read_launches(RAW, "raw.csv")
    assert first.kernel == "fill(float*)" and second.id == "1"
    assert second.values["dram__bytes_read.sum"] == pytest.approx(48e6)
    assert second.values["gpu__time_duration.sum"] == pytest.approx(75e-6)
    assert second.values["sm__cycles_elapsed.max"] == 125_000
    assert second.values["smsp__cycles_elapsed.avg.per_second"] == pytest.approx(1.7e9)


def test_are_figures_of_the_details_page_read_by_their_labels() -> None:
    (launch,) = read_launches(DETAILS, "details.csv")
    assert launch.values["Elapsed Cycles"] == 101_234
    assert launch.values["Memory Throughput"] == pytest.approx(1.25e12)
    assert launch.values["Memory Throughput [%]"] == 26
    assert "Function Cache Configuration" not in launch.values


def test_is_the_launch_of_the_projected_kernel_compared(result: dict[str, Any]) -> None:
    launches = read_launches(RAW, "raw.csv")
    assert choose_launch(launches, result, None).id == "1"
    assert choose_launch(launches, result, "0").kernel == "fill(float*)"
    assert choose_launch(launches, {**result, "kernel": "fill"}, None).id == "0"
    with pytest.raises(UserError, match="--id"):
        choose_launch(launches, {**result, "kernel": "other"}, None)
    with pytest.raises(UserError, match="ID 9"):
        choose_launch(launches, result, "9")


def test_is_the_first_figure_that_explains_the_time_named(result: dict[str, Any]) -> None:
    found = compare_with_profiler(result, read_launches(RAW, "raw.csv")[1])
    rows = {row.projection: row for row in found.rows}
    assert rows["time_us"].error == pytest.approx(60 / 75 - 1)
    assert rows["warp_instructions"].error == pytest.approx(0)
    assert [row.projection for row in found.rows if row.explains] == ["bytes.dram_read"]
    assert "bytes.dram_read" in found.explanation
    assert found.unknown == ["unrelated__metric.sum"]


def test_are_waits_blamed_when_all_work_agrees(result: dict[str, Any]) -> None:
    same_work = RAW.replace('"48.00"', '"32.00"')
    found = compare_with_profiler(
        {**result, "stalls": {"selected": 0.5, "long_scoreboard": 0.5}}, read_launches(same_work, "r")[1]
    )
    assert "stalls.long_scoreboard" in found.explanation


def test_needs_an_agreeing_time_no_explanation(result: dict[str, Any]) -> None:
    found = compare_with_profiler(result, read_launches(DETAILS, "details.csv")[0])
    assert "agrees" in found.explanation
    assert not any(row.explains for row in found.rows)
    assert {row.projection for row in found.rows} >= {"cycles", "time_us", "clock_mhz", "occupancy.achieved", "waves"}


def test_does_the_command_write_a_document_and_a_table(
    result: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "r.json").write_text(json.dumps(result))
    (tmp_path / "m.csv").write_text("\ufeff" + RAW)
    line = ["ncu", str(tmp_path / "m.csv"), "--result", str(tmp_path / "r.json")]
    assert run([*line, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kernel"] == "matmul_tma"
    assert run(line) == 0
    assert "bytes.dram_read" in capsys.readouterr().out


@pytest.mark.parametrize(
    "text", ["", "a,b\n1,2\n", RAW[: RAW.index('"0","4711"')], '"ID","Kernel Name","Metric Name"\n"0","k","m"\n']
)
def test_is_a_file_of_another_kind_bad_input(
    result: dict[str, Any], text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "r.json").write_text(json.dumps(result))
    (tmp_path / "m.csv").write_text(text)
    assert run(["ncu", str(tmp_path / "m.csv"), "--result", str(tmp_path / "r.json")]) == 2
    assert "profiler" in capsys.readouterr().err


@pytest.mark.parametrize(("conflicts", "explains"), [(186, False), (90_000, True)])
def test_explain_bank_conflicts_a_time_only_if_they_are_many(result: dict[str, Any], conflicts: int, explains: bool) -> None:
    names = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum,l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"
    text = f"ID,Kernel Name,gpu__time_duration.sum,{names}\n,,us,,\n1,matmul_tma,75,100000,{conflicts}\n"
    document = {**result, "smem": {"bank_conflicts": 0}, "counters": {"smem_wavefronts": 100_000}, "stalls": {}}
    found = compare_with_profiler(document, read_launches(text, "m.csv")[0])
    assert ("bank_conflicts" in found.explanation) == explains
    assert list(found.frame["projection"]) == [row.projection for row in found.rows]
    assert "bank_conflicts" in found._repr_html_()


def test_is_the_profile_beside_the_cubins_what_was_measured() -> None:
    measured = read_measured(data_folder("projections") / "validation" / "kernels.csv.gz")
    launches = read_launches((data_folder("kernel_traces") / "cubins" / "profile.csv").read_text(), "profile.csv")
    assert [launch.kernel for launch in launches] == ["softmax_row", "transpose2d"]
    for launch in launches:
        row = select(measured, ids=[launch.id])
        assert launch.kernel == row["kernel"][0]
        assert launch.values["gpu__time_duration.sum"] == pytest.approx(numbers(row, "ncu_time_ns")[0] * 1e-9)
        columns = {names[0]: path[-1] for path, names in ((m.path, m.names) for m in METRICS) if path[0] == "counters"}
        columns |= {"sm__cycles_elapsed.max": "cycles", "smsp__inst_executed.sum": "warp_insts"}
        columns |= {"dram__bytes_read.sum": "dram_read_bytes", "dram__bytes_write.sum": "dram_write_bytes"}
        columns |= {STALLS_PER_ISSUE.format(name): f"stall_{name}" for name in ("long_scoreboard", "barrier", "selected")}
        for metric, column in columns.items():
            assert launch.values[metric] == pytest.approx(numbers(row, column)[0]), metric
