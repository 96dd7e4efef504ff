"""Does a gate hold, fail and refuse as it should, and does it evaluate nothing but comparisons?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.cli.app import run
from simulator.errors import UserError
from simulator.projection.expectation import check_expectations


@pytest.fixture
def file(result: dict[str, Any], tmp_path: Path) -> Path:
    path = tmp_path / "result.json"
    path.write_text(json.dumps(result))
    return path


@pytest.mark.parametrize(
    "expression",
    [
        "cycles <= 100000",
        "cycles<=1e5; smem.bank_conflicts==0",
        "90_000 < cycles < 110_000",
        "bound_by == 'tensor' and not waves > 3",
        "bytes.dram_read + bytes.dram_write <= 48e6",
        "cycles / bounds.tensor < 1.5",
        "max(stalls.wait, stalls.selected) < 0.5 or waves < 1",
        "weakest_inputs[0].confidence == 'assumed'",
        "len(warnings) == 0",
        "abs(cycles - 100000) <= -0",
        "cycle_stack.tensor >= 0.6;",
    ],
)
def test_does_what_holds_pass(result: dict[str, Any], expression: str) -> None:
    assert all(check.passed for check in check_expectations(result, expression))


@pytest.mark.parametrize("expression", ["cycles < 100000", "smem.bank_conflicts > 0", "bound_by == 'dram'", "not waves > 2"])
def test_does_what_does_not_hold_fail_and_show_the_value(result: dict[str, Any], expression: str) -> None:
    (check,) = check_expectations(result, expression)
    assert not check.passed
    assert check.values


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os').system('true')",
        "cycles.__class__ == 1",
        "(lambda: 1)() == 1",
        "[c for c in 'ab'] == 1",
        "open('x') == 1",
        "2 ** 999999999 > 1",
        "'a' * 10000000 == 'b'",
        "cycles if waves else 1",
        "f'{cycles}' == '1'",
        "cycles is cycles",
        "cycles := 3",
        "cycles",
        "cycles <= ",
        "smem < 3",
        "bound_by < 3",
        "cycles / 0 > 1",
        "min() > 1",
        "",
        " ; ",
        "(" * 300 + "1" + ")" * 300 + " < 2",
        "1 < 2 and " * 300 + "1 < 2",
    ],
)
def test_is_everything_else_refused_in_one_sentence(result: dict[str, Any], expression: str) -> None:
    with pytest.raises(UserError) as refused:
        check_expectations(result, expression)
    assert "\n" not in str(refused.value)


@given(text=st.text(alphabet="cyles<=.0123abw()[]'+-*/ andort;", max_size=40))
def test_does_no_text_do_anything_but_pass_fail_or_be_refused(text: str) -> None:
    try:
        checks = check_expectations({"cycles": 3, "waves": 1.5, "smem": {"wavefronts": 2}}, text)
    except UserError:
        return
    assert all(isinstance(check.passed, bool) for check in checks)


def test_is_an_unknown_key_answered_with_the_nearest(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["gate", str(file), "--expect", "smem.bank_conflict == 0"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "smem.bank_conflict'" in captured.err and "'smem.bank_conflicts'" in captured.err


@pytest.mark.parametrize(("limit", "code"), [("200000", 0), ("5", 1)])
def test_is_the_exit_code_the_verdict(file: Path, limit: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["gate", str(file), "--expect", f"cycles <= {limit}", "--expect", "waves > 1", "--json"]) == code
    document = json.loads(capsys.readouterr().out)
    assert document["passed"] is (code == 0)
    assert document["expectations"][0]["values"] == {"cycles": 100_000.0}


def test_does_sarif_name_the_failed_expectation_and_the_file(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "gate.sarif"
    assert run(["gate", str(file), "--expect", "cycles <= 5; waves > 1", "--sarif", str(out)]) == 1
    log = json.loads(out.read_text())
    assert log["version"] == "2.1.0"
    (sarif_run,) = log["runs"]
    failed, passed = sarif_run["results"]
    assert failed["level"] == "error" and passed["kind"] == "pass"
    assert "cycles is 100000.0" in failed["message"]["text"]
    assert sarif_run["tool"]["driver"]["rules"][failed["ruleIndex"]]["id"] == failed["ruleId"]
    assert failed["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == file.as_posix()


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", "3"])
def test_is_a_file_that_holds_no_result_bad_input(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    assert run(["gate", str(path), "--expect", "cycles < 3"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
