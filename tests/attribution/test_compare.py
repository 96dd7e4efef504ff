"""Does a comparison attribute the whole difference, and say it in words?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from simulator.cli.app import run
from simulator.projection.difference import differ


@pytest.fixture
def faster(result: dict[str, Any]) -> dict[str, Any]:
    stack = {"tensor": 0.75, "hbm_latency": 0.05, "barrier": 0.075, "launch": 0.125}
    smem = {"wavefronts": 500_000, "bank_conflicts": 7}
    return {**result, "cycles": 80_000.0, "time_us": 48.0, "cycle_stack": stack, "smem": smem, "bound_by": "dram"}


def test_do_the_causes_sum_to_the_difference_in_cycles(result: dict[str, Any], faster: dict[str, Any]) -> None:
    found = differ(result, faster)
    assert sum(change.difference for change in found.causes) == pytest.approx(-20_000)
    assert found.causes[0].name == "hbm_latency"
    assert found.causes[0].difference == pytest.approx(-26_000)
    assert "20.0 % faster" in found.sentence() and "hbm latency -26,000" in found.sentence()


def test_is_what_changed_named_and_what_did_not_left_out(result: dict[str, Any], faster: dict[str, Any]) -> None:
    found = differ(result, faster)
    assert [change.name for change in found.figures] == ["smem.bank_conflicts"]
    assert found.texts == {"bound_by": ("tensor", "dram")}
    assert not found.bytes and not found.stalls


def test_is_the_same_result_no_difference(result: dict[str, Any]) -> None:
    found = differ(result, result)
    assert not found.causes and not found.figures and not found.texts
    assert "as long as" in found.sentence()


def test_are_results_without_a_stack_compared_without_one(result: dict[str, Any], faster: dict[str, Any]) -> None:
    old = {key: value for key, value in result.items() if key != "cycle_stack"}
    assert differ(old, faster).causes == []


def test_does_the_command_write_one_document(
    result: dict[str, Any], faster: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, document in (("a.json", result), ("b.json", faster)):
        (tmp_path / name).write_text(json.dumps(document))
    line = ["compare", str(tmp_path / "a.json"), str(tmp_path / "b.json")]
    assert run([*line, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["cycles"]["ratio"] == pytest.approx(0.8)
    assert run(line) == 0
    text = capsys.readouterr().out
    assert "HBM latency" in text and max(map(len, text.splitlines())) <= 120


@pytest.mark.parametrize("text", ['{"kernel": "x"}', '{"cycles": 0}', '{"cycles": "many"}'])
def test_is_a_document_without_cycles_no_projection(
    result: dict[str, Any], tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.json").write_text(text)
    (tmp_path / "b.json").write_text(json.dumps(result))
    assert run(["compare", str(tmp_path / "a.json"), str(tmp_path / "b.json")]) == 2
    assert "a.json" in capsys.readouterr().err
