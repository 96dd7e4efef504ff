"""Does every command keep the common contract: help, exit codes, one sentence for bad input, clean stdout?"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from simulator.cli.app import app, run

GROUP = typer.main.get_command(app)
COMMANDS = sorted(GROUP.commands)  # type: ignore[attr-defined]

BAD_LINES = [
    ["no-such-command"],
    ["hw", "show", "no-such-chip"],
    ["hw", "show", "h200", "sm.cuont"],
    ["hw", "check", "no-such-file.yaml"],
    ["occupancy", "--hw", "h200", "--regs", "many", "--threads", "128", "--smem", "0"],
    ["occupancy", "--hw", "h200", "--regs", "32", "--threads", "0", "--smem", "0"],
    ["validate", "--measured", "none.csv"],
    ["demo", "--jobs", "0"],
]


@pytest.mark.parametrize("command", COMMANDS)
def test_does_every_command_explain_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command, "--help"]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("Usage: kernelcast " + command)
    assert captured.err == ""


@pytest.mark.parametrize("command", COMMANDS)
def test_is_an_unknown_option_bad_input(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command, "--no-such-option"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1 and "--no-such-option" in captured.err


@pytest.mark.parametrize("line", BAD_LINES, ids=" ".join)
def test_is_bad_input_one_sentence_and_exit_code_two(
    line: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(line) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("Error: ") and captured.err.count("\n") == 1
    assert "Traceback" not in captured.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "line",
    [
        ["hw", "list", "--json"],
        ["hw", "show", "h200", "--json"],
        ["hw", "show", "h200", "sm.count", "--json"],
        ["occupancy", "--hw", "h200", "--regs", "128", "--threads", "256", "--smem", "1024", "--json"],
    ],
    ids=" ".join,
)
def test_is_json_the_only_thing_on_stdout(line: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(line) == 0
    assert isinstance(json.loads(capsys.readouterr().out), dict)


def test_does_the_program_run_from_any_folder_without_a_traceback(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    command = [
        sys.executable,
        "-c",
        f"import sys; sys.path.insert(0, {str(root)!r}); from simulator.cli.app import main; main()",
    ]
    result = subprocess.run(
        [*command, "hw", "show", "nothing"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: ") and "Traceback" not in result.stderr
