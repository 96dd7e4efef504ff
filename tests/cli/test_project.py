"""Does ``kernelcast project`` answer for a cubin and for a trace, and refuse bad input in one sentence?"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from simulator.cli.app import run
from simulator.isa import table

CUBINS = Path(__file__).resolve().parents[2] / "kernel_traces" / "cubins"
KERNEL = CUBINS / "softmax_bf16.cubin"
LAUNCH = CUBINS / "softmax_bf16.yaml"
CONTRACT = {
    "kernel", "hw", "hw_digest", "cycles", "time_us", "clock_mhz", "bound_by", "bounds", "occupancy", "waves",
    "tail_fraction", "warp_instructions", "smem", "bytes", "stalls", "weakest_inputs", "simulated",
}  # fmt: skip


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    capsys.readouterr()
    assert run(["project", *arguments, "--hw", "h200", "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_does_a_cubin_give_every_key_of_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, str(KERNEL), "--launch", str(LAUNCH))
    assert set(found) >= CONTRACT
    assert set(found["smem"]) >= {"wavefronts", "bank_conflicts"}
    assert set(found["bytes"]) >= {"l2_read", "l2_write", "dram_read", "dram_write"}
    assert set(found["simulated"]) >= {"fraction", "seconds"}
    assert sum(found["stalls"].values()) == pytest.approx(1.0)
    assert found["cycles"] >= max(found["bounds"].values()) > 0
    assert found["bound_by"] in found["bounds"]
    assert found["time_us"] == pytest.approx(found["cycles"] / found["clock_mhz"])


def test_is_a_trace_the_same_kernel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "t.npz"
    assert run(["trace", "build", str(KERNEL), "--launch", str(LAUNCH), "-o", str(trace)]) == 0
    from_cubin = document(capsys, str(KERNEL), "--launch", str(LAUNCH))
    from_trace = document(capsys, str(trace))
    for found in (from_cubin, from_trace):
        del found["simulated"]["seconds"]
    assert from_trace == from_cubin


def test_does_the_text_answer_and_the_page_stand_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    assert run(["project", str(KERNEL), "--launch", str(LAUNCH), "--hw", "h200", "--report", str(page)]) == 0
    text = capsys.readouterr().out
    assert "softmax_row on h200" in text and "Lower bounds" in text
    html = page.read_text()
    assert "softmax_row" in html and not re.search(r"(?:src|href)=|<script|@import|url\(", html)


def test_does_an_override_change_the_chip(capsys: pytest.CaptureFixture[str]) -> None:
    plain = document(capsys, str(KERNEL), "--launch", str(LAUNCH))
    fewer = document(capsys, str(KERNEL), "--launch", str(LAUNCH), "--set", "sm.count=66")
    assert fewer["cycles"] > plain["cycles"]
    assert fewer["hw_digest"] != plain["hw_digest"]


@pytest.fixture
def bad_files(tmp_path: Path) -> Path:
    """Files that a hurried user could hand over."""
    (tmp_path / "text.cubin").write_text("not a cubin")
    (tmp_path / "cut.cubin").write_bytes(KERNEL.read_bytes()[:3000])
    (tmp_path / "text.txt").write_text("hello")
    (tmp_path / "text.npz").write_text("hello")
    (tmp_path / "few.yaml").write_text(re.sub(r"(?m)^- .*\n?", "", LAUNCH.read_text()).replace("args:", "args: []"))
    (tmp_path / "many.yaml").write_text(re.sub(r"block: \[\d+", "block: [2000", LAUNCH.read_text()))
    (tmp_path / "name.yaml").write_text(re.sub(r"kernel: \w+", "kernel: other", LAUNCH.read_text()))
    (tmp_path / "typo.yaml").write_text(LAUNCH.read_text().replace("grid:", "gird:"))
    return tmp_path


@pytest.mark.parametrize(
    ("source", "launch", "more", "said"),
    [
        ("none.cubin", "", [], "none.cubin does not exist"),
        ("text.cubin", str(LAUNCH), [], "text.cubin"),
        ("cut.cubin", str(LAUNCH), [], "cut.cubin"),
        ("text.txt", "", [], "neither a trace"),
        ("text.npz", "", [], "text.npz"),
        (str(KERNEL), "", [], "--launch"),
        (str(KERNEL), "none.yaml", [], "none.yaml"),
        (str(KERNEL), "few.yaml", [], "takes 5 arguments"),
        (str(KERNEL), "many.yaml", [], "2000"),
        (str(KERNEL), "name.yaml", [], "softmax_row"),
        (str(KERNEL), "typo.yaml", [], "grid"),
        (str(KERNEL), str(LAUNCH), ["--kernel", "other"], "softmax_row"),
        (str(KERNEL), str(LAUNCH), ["--set", "sm.count=-1"], "sm.count"),
        (str(KERNEL), str(LAUNCH), ["--hw", "a100_sxm"], "a100_sxm"),
        (str(KERNEL), str(LAUNCH), ["--hw", "t4"], "t4"),
        (str(KERNEL), str(LAUNCH), ["--report", "no-folder/page.html"], "no-folder does not exist"),
    ],
)
def test_is_bad_input_told_in_one_sentence(
    bad_files: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    source: str,
    launch: str,
    more: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(bad_files)
    arguments = ["project", source, "--hw", "h200", *(["--launch", launch] if launch else []), *more]
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("Error: ") and captured.err.count("\n") == 1
    assert said in captured.err and "Traceback" not in captured.err


def test_is_an_unknown_opcode_named_and_let_through_on_demand(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table without MUFU: the address is told, and --allow-unknown gives the rest of the answer, flagged."""
    known = {name: row for name, row in table.opcodes().items() if name != "MUFU"}
    monkeypatch.setattr(table, "opcodes", lambda: known)
    monkeypatch.setattr("simulator.validation.traces._cache_entry", lambda *_: None)
    table.find_opcode.cache_clear()
    arguments = ["project", str(KERNEL), "--launch", str(LAUNCH), "--hw", "h200"]
    try:
        assert run(arguments) == 2
        said = capsys.readouterr().err
        assert "address 0x" in said and "opcode MUFU" in said and said.count("\n") == 1
        assert run([*arguments, "--allow-unknown", "--json"]) == 0
        answer = json.loads(capsys.readouterr().out)
        assert answer["cycles"] > 0
        assert any("opcode MUFU" in warning and "issue slot" in warning for warning in answer["warnings"])
    finally:
        table.find_opcode.cache_clear()
