"""Is a kernel's design chosen again on every chip, the same by whomever, and kept?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from simulator.errors import UserError
from simulator.hw.loader import with_overrides
from simulator.kernels.families import parse_design
from simulator.projection.tile_card import check_design
from simulator.report.study import StudyReport, answer
from simulator.report.study_software import software
from simulator.study import work
from simulator.study.execute import Backend, Processes, Serial
from simulator.study.results import StudyResults
from simulator.study.run import Study
from simulator.study.spec import parse_spec
from simulator.study.store import ResultStore

SMEM = "shared_memory.max_per_cta_bytes"
DESIGN = {"kind": "gemm", "m": 64, "n": 64, "k": 512, "tile": {"m": 16, "n": 32, "k": 64}, "stages": 2}


def document(**changes: Any) -> dict[str, Any]:
    return {
        "name": "retuned",
        "base": "h200",
        "kernels": [{"name": "fixed", "tile": DESIGN}, {"name": "again", "tile": DESIGN, "retune": True}],
        "axes": [{"path": SMEM, "values": ["x1", "13KiB"]}],
        "sensitivity": None,
        "instruction_budget": 10_000,
    } | changes


def run(folder: Path, backend: Backend | None = None, **changes: Any) -> StudyResults:
    return Study(parse_spec(document(**changes)), folder).run(backend, ResultStore(folder / "store"))


def test_does_each_chip_have_its_own_design_and_is_it_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run(tmp_path)
    rows = first.frame[first.frame.kernel == "again"]
    assert rows["design"].notna().all() and rows["design"].nunique() == 2
    assert first.frame[first.frame.kernel == "fixed"]["design"].isna().all()
    for point in first.points:
        chip = with_overrides(first.chips[point.base], point.overrides)
        design = parse_design(first.outcomes[point.id, "again"]["design"], "test")
        assert check_design(design, chip) == []
        assert first.outcomes[point.id, "again"]["time_us"] <= first.outcomes[point.id, "fixed"]["time_us"]

    def never(*unused: Any) -> Any:
        raise AssertionError("tuned again")

    monkeypatch.setattr(work, "tune", never)
    pd.testing.assert_frame_equal(run(tmp_path).frame, first.frame, check_like=True)


def test_says_the_report_which_design_won_where(tmp_path: Path) -> None:
    results = run(tmp_path, axes=[{"name": "smem", "path": SMEM, "values": ["13KiB", "x1"]}])
    won = results.software
    assert set(won["kernel"]) == {"again"} and set(won["point"]) == {point.id for point in results.points}
    table = software(results)
    assert table is not None and [row[0] for row in table.rows] == ["again", "again"]
    (there,) = (row for row in table.rows if "smem=13 KiB" in row[2])
    assert table.marked == {1 - table.rows.index(there)}
    text = StudyReport(results).page()[0]
    assert "The best software on each chip" in text and there[1] in text
    last = answer(results)[-1]
    assert there[1] in last and "instead of" in last and "smem=13 KiB" in last


def test_says_the_report_nothing_of_software_that_stays(tmp_path: Path) -> None:
    results = run(tmp_path, kernels=document()["kernels"][:1])
    assert software(results) is None and results.software.empty
    assert "best software" not in StudyReport(results).page()[0]


def test_does_the_answer_not_depend_on_who_computes_it(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    kernels = document()["kernels"][1:]
    serial = run(tmp_path / "a", Serial(), kernels=kernels, axes=[])
    assert run(tmp_path / "b", Processes(2), kernels=kernels, axes=[]).frame.equals(serial.frame)


def test_are_the_kernels_of_a_suite_file_taken_over(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(
        "about: two\nkernels:\n"
        "  - {name: one, weight: 3, tile: {kind: gemm, m: 64, n: 64, k: 64}}\n"
        "  - {name: two, tile: {kind: gemm, m: 64, n: 64, k: 128}}\n"
    )
    study = Study(parse_spec(document(kernels=[{"suite": "s.yaml", "weight": 2, "retune": True}])), tmp_path)
    assert [(kernel.name, kernel.weight) for kernel in study.kernels] == [("one", 6), ("two", 2)]
    assert all(kernel.problem is not None for kernel in study.kernels)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kernels: []\n", "kernels"),
        ("kernels:\n  - {tile: {kind: gemm}}\n", "needs a name"),
        ("kernels:\n  - {name: a, trace: t.npz}\nabuot: x\n", "is not a field of a suite"),
        ("kernels:\n  - {name: a, tile: {kind: gemmm, m: 1}}\n", "kind 'gemmm' is not known"),
    ],
)
def test_is_a_bad_suite_one_sentence(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(text)
    with pytest.raises(UserError) as caught:
        Study(parse_spec(document(kernels=[{"suite": "s.yaml"}])), tmp_path)
    assert said in str(caught.value) and "\n" not in str(caught.value)
