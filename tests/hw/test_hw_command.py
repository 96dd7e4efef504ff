"""Does ``kernelcast hw`` list, show and check chips, and refuse what is wrong in one sentence?"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from simulator.cli.app import run
from simulator.hw.consumers import consumers

WriteChip = Callable[..., Path]


def document(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    assert run([*arguments, "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    parsed: dict[str, object] = json.loads(captured.out)
    return parsed


def test_does_list_name_every_chip_and_what_it_answers(capsys: pytest.CaptureFixture[str]) -> None:
    chips = {chip["name"]: chip for chip in document(["hw", "list"], capsys)["chips"]}  # type: ignore[attr-defined]
    assert {"h200", "h100_sxm", "a100_sxm"} <= set(chips)
    assert chips["h200"]["answers"] == ["occupancy", "access", "project"]
    assert "project" not in chips["b300"]["answers"]
    assert run(["hw", "list"]) == 0
    assert "H200 SXM 141 GB" in capsys.readouterr().out


def test_does_show_give_value_unit_source_confidence(capsys: pytest.CaptureFixture[str]) -> None:
    shown = document(["hw", "show", "h200", "dram.peak_bytes_per_second"], capsys)
    assert (shown["value"], shown["unit"]) == (4_800_000_000_000, "B/s")
    assert (shown["source"], shown["confidence"]) == ("ml_engineering", "vendor")
    assert run(["hw", "show", "h200", "dram.peak_bytes_per_second"]) == 0
    text = capsys.readouterr().out
    assert "4.8 TB/s" in text
    assert "github.com/stas00" in text


def test_does_show_say_who_reads_a_value(capsys: pytest.CaptureFixture[str]) -> None:
    shown = document(["hw", "show", "h200", "sm.register_allocation_unit"], capsys)
    assert "projection/residency.py" in shown["consumers"]  # type: ignore[operator]
    assert consumers("sm.no_such_field") == []


def test_does_show_list_a_section_and_an_override(capsys: pytest.CaptureFixture[str]) -> None:
    shown = document(["hw", "show", "h200", "sm", "--set", "sm.count=144"], capsys)
    values = shown["values"]
    assert isinstance(values, dict)
    assert values["sm.count"]["value"] == 144
    assert values["sm.count"]["source"] == "override"
    assert all(path.startswith("sm.") for path in values)
    assert run(["hw", "show", "h200"]) == 0
    assert "timing.opcodes.IMAD.HI.interval_cycles" in capsys.readouterr().out


def test_does_check_pass_a_good_file_and_count_its_values(
    write_chip: WriteChip, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_chip()
    report = document(["hw", "check", str(path)], capsys)
    assert (report["ok"], report["name"]) == (True, "chip")
    assert "timing" in report["missing_for_project"]  # type: ignore[operator]
    assert run(["hw", "check", str(path)]) == 0
    assert "is valid: Test chip" in capsys.readouterr().out


def test_is_what_is_wrong_one_sentence(write_chip: WriteChip, capsys: pytest.CaptureFixture[str]) -> None:
    bare = write_chip(lambda chip: chip["sm"].update(count=132), name="bare.yaml")
    sentences = {
        f"{bare}: sm.count is the bare value 132": ["hw", "check", str(bare)],
        "no value sm.max_warp; did you mean sm.max_warps": ["hw", "show", "h200", "sm.max_warp"],
        "no value smm; sections: identity, sm": ["hw", "show", "h200", "smm"],
        "there is no chip 'h300'; did you mean": ["hw", "show", "h300"],
        "nowhere.yaml does not exist": ["hw", "check", "nowhere.yaml"],
        "Missing command": ["hw"],
        "No such command 'lst'": ["hw", "lst"],
    }
    for sentence, arguments in sentences.items():
        assert run(arguments) == 2
        captured = capsys.readouterr()
        assert sentence in captured.err
        assert captured.out == ""
        assert captured.err.count("\n") == 1
