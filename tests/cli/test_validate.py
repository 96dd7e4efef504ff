"""Does ``kernelcast validate`` keep every case, whatever happens to it, and write what it promises?"""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from simulator.cli.app import run
from simulator.validation.predictions import LEADING_COLUMNS, TRAILING_COLUMNS
from tests.validation.runs import four_cases, many_cases, written

MEASURED = Path(__file__).resolve().parents[2] / "projections" / "validation"
SMALL_IDS = ("980", "982", "1010")
"""Short element-wise kernels."""


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write chosen rows and columns of the measured file."""
    with gzip.open(MEASURED / "kernels.csv.gz", "rt") as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}

    def write_rows(*ids: str, columns: tuple[str, ...] = (), **changes: str) -> Path:
        chosen = [rows[name] | changes for name in ids]
        path = tmp_path / "measured.csv"
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, columns or list(chosen[0]), extrasaction="ignore")
            writer.writeheader()
            writer.writerows(chosen)
        return path

    return write_rows


def validate(measured: Path, output: Path, *more: str) -> int:
    where = ["--measured", str(measured), "--cubins", str(MEASURED / "cubins.tar.xz"), "-o", str(output)]
    return run(["validate", *where, "--hw", "h200", "--jobs", "2", *more])


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_is_every_case_predicted_or_given_a_reason(
    write: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out.csv"
    assert validate(write(*SMALL_IDS), output, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    rows = rows_of(output)
    assert [row["id"] for row in rows] == list(SMALL_IDS)
    assert tuple(rows[0])[: len(LEADING_COLUMNS)] == LEADING_COLUMNS
    assert tuple(rows[0])[-len(TRAILING_COLUMNS) :] == TRAILING_COLUMNS
    for row in rows:
        assert row["status"] == "ok" and row["reason"] == ""
        assert float(row["predicted_cycles"]) > 0
    assert document["n_supported"] == len(SMALL_IDS)
    assert set(document["splits"]) == {"check", "fit"}


def test_are_three_columns_and_text_ids_enough(
    write: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out.csv"
    measured = write(SMALL_IDS[0], columns=("launch", "cubin", "id"), id="my kernel / one")
    assert validate(measured, output) == 0
    row = rows_of(output)[0]
    assert (row["id"], row["status"]) == ("my kernel / one", "ok")
    assert "1 of 1 cases predicted" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"cubin": "", "launch": ""}, "library kernel"),
        ({"cubin": "0123"}, "no file 0123.cubin"),
        ({"launch": ""}, "no launch description"),
        ({"launch": "{"}, "launch"),
        ({"launch": '{"kernel": "nothing", "grid": [1,1,1], "block": [32,1,1], "args": []}'}, "nothing"),
    ],
)
def test_is_a_case_that_cannot_be_simulated_kept_with_its_reason(
    write: Callable[..., Path], tmp_path: Path, changes: dict[str, str], reason: str
) -> None:
    output = tmp_path / "out.csv"
    assert validate(write(SMALL_IDS[0], **changes), output) == 0
    row = rows_of(output)[0]
    assert row["status"] == "unsupported" and reason in row["reason"]
    assert row["predicted_cycles"] == ""


def test_is_the_result_the_same_whatever_the_number_of_workers(write: Callable[..., Path], tmp_path: Path) -> None:
    results = []
    for n_workers in ("1", "3"):
        output = tmp_path / f"out{n_workers}.csv"
        assert validate(write(*SMALL_IDS), output, "--jobs", n_workers) == 0
        results.append([{k: v for k, v in row.items() if k != "seconds"} for row in rows_of(output)])
    assert results[0] == results[1]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--split", "chekc"], "the file has"),
        (["--ids", "nine"], "no case nine"),
        (["--ids", ","], "names no case"),
        (["--set", "sm.cuont=3"], "sm.cuont"),
        (["-o", "no-such-folder/out.csv"], "no-such-folder does not exist"),
    ],
)
def test_is_a_bad_choice_refused_before_any_work(
    write: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], said: str
) -> None:
    output = tmp_path / "out.csv"
    assert validate(write(SMALL_IDS[0]), output, *more) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and said in captured.err and captured.err.count("\n") == 1
    assert not output.exists()


def test_is_a_missing_file_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert validate(tmp_path / "none.csv", tmp_path / "out.csv") == 2
    assert "none.csv does not exist" in capsys.readouterr().err


def test_is_a_chip_without_timing_told_plainly(
    write: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert validate(write(SMALL_IDS[0]), tmp_path / "out.csv", "--hw", "t4") == 2
    assert "lacks the section" in capsys.readouterr().err


def test_is_everything_made_again_from_predictions_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    measured, predicted = written(tmp_path, *many_cases())
    folder = tmp_path / "kept"
    line = ["validate", "--measured", str(measured), "--hw", "h200"]
    assert run([*line, "--from", str(predicted), "--publish", str(folder)]) == 0
    first = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert set(first) == {"predictions.csv.gz", "errors.csv", "intervals.yaml", "index.html"}
    assert run([*line, "--from", str(folder / "predictions.csv.gz"), "--publish", str(folder)]) == 0
    again = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert {name: text for name, text in again.items() if text != first[name]} == {}
    capsys.readouterr()
    assert run([*line, "--from", str(predicted), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["n_supported"] == len(many_cases()[0]) and document["splits"]["check"]["rankings"]


def test_does_the_dashboard_stand_alone_and_say_what_it_rests_on(tmp_path: Path) -> None:
    measured, predicted = written(tmp_path, *many_cases())
    line = ["validate", "--measured", str(measured), "--hw", "h200", "--from", str(predicted)]
    assert run([*line, "--publish", str(tmp_path)]) == 0
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert len(page) < 3 << 20
    outside = page.replace("http://www.w3.org", "")
    assert "http" not in outside and "<script" not in outside and "<link" not in outside
    assert page.count("<img") == page.count('alt="') == 2
    for text in ("Kendall tau", "L2 hit rate", "1+abc", "SHA-256", "kernelcast validate --measured", "lie inside intervals made"):
        assert text in page


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--from", "none.csv", "-o", "o.csv"], "none.csv do not exist"),
        (["--from", "m.csv", "-o", "o.csv"], "m.csv holds no predictions: it lacks the column predicted_cycles"),
        (["--from", "p.csv", "--from", "p.csv"], "case 1 is predicted twice"),
        (["--from", "other.csv"], "has no case 5"),
        (["--from", "p.csv", "--split", "fit", "--ids", "4"], "no case 4"),
        (["--from", "p.csv", "--cubins", "x"], "leave out --cubins"),
        (["--from", "p.csv", "--publish", "m.csv"], "is a file; give a folder"),
        (["--from", "p.csv", "--publish", "d", "--set", "sm.count=140"], "leave out --set"),
        (["-o", "o.csv"], "Missing option '--cubins'"),
        (["--cubins", "x"], "Missing option '--output'"),
    ],
)
def test_is_a_bad_source_of_predictions_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], more: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    _, predicted = written(tmp_path, *four_cases())
    Path("other.csv").write_text(predicted.read_text().replace("\n4,", "\n5,"))
    before = sorted(tmp_path.iterdir())
    assert run(["validate", "--measured", "m.csv", "--hw", "h200", *more]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and said in captured.err and captured.err.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before
