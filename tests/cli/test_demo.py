"""Does ``kernelcast demo`` show every kernel beside its measurement?"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from simulator.cli.app import run
from simulator.validation import demo_cases

SHORT_CASES = ("822", "941")


@pytest.fixture
def short_demo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The demo with its two shortest kernels, in an empty folder."""
    whole = demo_cases.load_demo()
    short = replace(whole, cases=[item for item in whole.cases if item.case.id in SHORT_CASES])
    monkeypatch.setattr(demo_cases, "load_demo", lambda: short)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_does_it_print_a_row_a_kernel_and_write_the_page(short_demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo"]) == 0
    text = capsys.readouterr().out
    assert "18,990" in text and "64,031" in text  # measured
    assert "2 kernels: mean error" in text
    page = short_demo / "out" / "demo.html"
    assert str(page) in text.replace("\n", "")
    assert "18,990" in page.read_text()


def test_is_the_document_complete(short_demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", "--json", "--report", "d.html"]) == 0
    cases = json.loads(capsys.readouterr().out)["cases"]
    assert [case["measured_cycles"] for case in cases] == [18990.0, 64031.0]
    assert all(case["cycles"] > 0 and case["reason"] == "" for case in cases)
