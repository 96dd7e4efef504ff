"""Does ``kernelcast tune`` rank, keep, answer and export in its contract, and refuse in one sentence?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from simulator.cli.app import run

SMALL = ["--m", "128", "--n", "128", "--k", "128", "--hw", "h200", "--simulate", "3", "--top", "2"]


def document(capsys: pytest.CaptureFixture[str], *line: str, code: int = 0) -> dict[str, Any]:
    assert run(["tune", *line, "--json"]) == code
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def without_times(found: dict[str, Any]) -> dict[str, Any]:
    found.pop("seconds")
    found["screened"].pop("seconds")
    return found


def test_is_the_answer_the_same_in_one_process_and_in_two(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "gemm", *SMALL)
    assert [one["simulated"] for one in found["ranked"]] == ["whole", "whole"]
    assert found["ranked"][0]["time_us"] <= found["ranked"][1]["time_us"]
    assert {"design", "time_us", "tflops", "share_of_bound", "occupancy", "bound_by"} <= found["ranked"][0].keys()
    assert found["simulated"] == {"designs": 3, "whole": 2} and found["screened"]["designs"] > 100
    assert without_times(document(capsys, "gemm", *SMALL, "--jobs", "2")) == without_times(found)


def test_is_a_tuned_problem_kept_answered_and_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    db = ["--db", str(tmp_path / "d.db")]
    found = document(capsys, "gemm", *SMALL, *db)
    assert found["envelope"]["loss"] == 0.1 and found["envelope"]["low"]["m"] <= 128 <= found["envelope"]["high"]["m"]
    asked = document(capsys, "--query", "--m", "128", "--n", "128", "--k", "128", *db)
    assert (asked["from"], asked["design"]) == ("exact", found["ranked"][0]["design"])
    assert document(capsys, "gemm", *SMALL, *db) == asked  # kept, not tuned again
    elsewhere = document(capsys, "--query", "--m", "40000", "--n", "999", "--k", "512", "--dtype", "bf16", *db)
    assert elsewhere["from"] == "fallback" and elsewhere["design"]["m"] == 40000
    assert run(["tune", "--export", str(tmp_path / "d.py"), *db]) == 0
    compile((tmp_path / "d.py").read_text(), "d.py", "exec")


def test_does_a_table_fit_on_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simulator.cli.output.PIPED_WIDTH", 100)
    assert run(["tune", "gemm", *SMALL]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "gemm 128x128x128 bf16 on h200" and "TFLOP/s" in lines[1]
    assert "screened, 3 simulated in parts, the best 2 whole" in lines[-1]


def test_are_many_shapes_tuned_and_kept_one_by_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shapes = tmp_path / "shapes.csv"
    shapes.write_text("m,n,k,dtype\n64,64,128,bf16\n64,64,129,bf16\n64,64,128,bf16\n128,64,128,fp16\n")
    line = ["gemm", "--shapes", str(shapes), "--hw", "h200", "--simulate", "2", "--top", "1", "--db", str(tmp_path / "d.db")]
    found = document(capsys, *line, code=1)
    assert [one["problem"]["m"] for one in found["tuned"]] == [64, 128]
    assert "129" in found["failed"][0]["reason"]
    again = document(capsys, *line, code=1)
    assert (again["tuned"], again["held"]) == ([], 2)


def test_are_the_problems_of_a_suite_tuned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite = tmp_path / "suite.yaml"
    suite.write_text("kernels:\n  - {name: one, tile: {kind: gemm, m: 64, n: 64, k: 128}}\n")
    found = document(capsys, "--suite", str(suite), "--hw", "h200", "--simulate", "2", "--top", "1")
    assert [one["problem"]["k"] for one in found["tuned"]] == [128]


BAD = [
    (["gemm", "--m", "-1", "--n", "1", "--k", "8", "--hw", "h200"], "m is -1"),
    (["gemm", "--m", "8", "--n", "8", "--k", "8", "--dtype", "fp12", "--hw", "h200"], "dtype is 'fp12'"),
    (["gemm", "--m", "8", "--n", "8", "--hw", "h200"], "'k' is missing"),
    (["gemm", "--m", "8", "--n", "8", "--k", "7", "--hw", "h200"], "pad k to 8"),
    (["gemm", "--m", "8", "--n", "8", "--k", "8"], "--hw"),
    (["gemm", "--m", "8", "--n", "8", "--k", "8", "--tile", "1x1x1", "--hw", "h200"], "--tile"),
    (["gemv", "--m", "8", "--hw", "h200"], "'gemv' is not a family"),
    (["--query", "--m", "8", "--n", "8", "--k", "8"], "--db"),
    (["--query", "--m", "8", "--n", "8", "--k", "8", "--db", "none.db"], "none.db does not exist"),
    (["--export", "d.py", "--db", "none.db"], "none.db does not exist"),
    (["--shapes", "none.csv", "--hw", "h200"], "none.csv cannot be read"),
    (["--suite", "none.yaml", "--hw", "h200"], "none.yaml does not exist"),
    (["gemm", "--m", "8", "--n", "8", "--k", "8", "--hw", "l4"], "l4"),
    (["gemm", "--m", "8", "--n", "8", "--k", "8", "--hw", "h200", "--db", "none/d.db"], "none does not exist"),
]


@pytest.mark.parametrize(("line", "said"), BAD, ids=[said for _, said in BAD])
def test_is_bad_input_one_sentence(
    line: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["tune", *line]) == 2
    error = capsys.readouterr().err
    assert said in error and error.splitlines()[-1].startswith("Error: ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("m,n\n1,1\n", "lacks the column k"),
        ("m,n,k,tile\n1,1,8,9\n", "column 'tile' is not known"),
        ("m,n,k\n", "holds no shapes"),
        ("m,n,k\n1,1,8\n1,x,8\n", "line 3: n is 'x'"),
        ("m,n,k\n1,1\n", "line 2 does not have as many fields"),
    ],
)
def test_is_a_bad_shapes_file_one_sentence(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s.csv"
    path.write_text(text)
    assert run(["tune", "gemm", "--shapes", str(path), "--hw", "h200"]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
