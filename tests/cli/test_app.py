"""Does every command line end in an exit code and at most one sentence, and every output appear whole?"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
import typer

from simulator.cli import app as application
from simulator.cli.output import atomic_path, atomic_write, emit_json, require_columns, to_json
from simulator.errors import UserError


@pytest.mark.parametrize("arguments", [["bogus"], ["--bogus"], ["hw", "show"], ["hw", "show", "h200", "a", "b"]])
def test_is_a_wrong_command_line_one_sentence(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert application.run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("Error: ")
    assert captured.err.count("\n") == 1
    assert "--help)" in captured.err


@pytest.mark.parametrize("arguments", [[], ["--help"], ["hw", "--help"]])
def test_is_help_no_error(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert application.run(arguments) == 0
    assert "Usage: kernelcast" in capsys.readouterr().out


def test_does_a_command_end_with_its_own_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    app = typer.Typer()

    @app.command("fail")
    def fail(kind: str) -> None:
        if kind == "gate":
            raise typer.Exit(1)
        if kind == "interrupt":
            raise KeyboardInterrupt
        raise UserError("the file x\nhas no y")

    app.command("other")(lambda: None)
    monkeypatch.setattr(application, "app", app)
    assert application.run(["fail", "gate"]) == 1
    assert application.run(["fail", "interrupt"]) == 130
    assert application.run(["fail", "input"]) == 2
    assert "Error: the file x has no y\n" in capsys.readouterr().err
    assert application.run(["other"]) == 0


def test_does_a_command_that_is_not_installed_leave_the_others_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(application, "COMMAND_MODULES", ("no_such_command", "hw"))
    app = typer.Typer()
    application.register_commands(app)
    assert [group.name for group in app.registered_groups] == ["hw"]


def test_does_main_hand_the_exit_code_to_the_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["kernelcast", "bogus"])
    with pytest.raises(SystemExit) as exit_:
        application.main()
    assert exit_.value.code == 2


def test_is_a_defect_of_ours_no_traceback_unless_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> int:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(application, "run", fail)
    with pytest.raises(SystemExit) as exit_:
        application.main()
    assert exit_.value.code == 70
    assert "kernelcast itself failed (ZeroDivisionError: by zero)" in capsys.readouterr().err
    monkeypatch.setenv(application.TRACEBACK_VARIABLE, "1")
    with pytest.raises(ZeroDivisionError):
        application.main()


def test_is_json_plain_and_free_of_nan(capsys: pytest.CaptureFixture[str]) -> None:
    emit_json({"a": np.int64(3), "b": np.array([1.5, 2.0]), "c": (True, None), "d": Path("x")})
    assert json.loads(capsys.readouterr().out) == {"a": 3, "b": [1.5, 2.0], "c": [True, None], "d": "x"}
    for number in (math.nan, math.inf, np.float64("nan")):
        with pytest.raises(ValueError, match="which JSON cannot carry"):
            to_json({"a": number})


def test_is_an_output_whole_or_absent(tmp_path: Path) -> None:
    target = tmp_path / "result.csv"
    atomic_write(target, "old\n")
    with pytest.raises(RuntimeError), atomic_path(target) as temporary:
        temporary.write_text("half")
        assert temporary.suffix == ".csv"
        raise RuntimeError
    assert target.read_text() == "old\n"
    atomic_write(target, b"new\n")
    assert target.read_bytes() == b"new\n"
    assert list(tmp_path.iterdir()) == [target]


def test_is_a_place_that_cannot_be_written_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"the folder .*absent does not exist"):
        atomic_write(tmp_path / "absent" / "x.json", "")
    with pytest.raises(UserError, match="it is a folder"):
        atomic_write(tmp_path, "")


def test_are_missing_columns_named_with_those_that_are_there() -> None:
    with pytest.raises(UserError, match=r"f\.csv lacks the column b; it needs a, b and has a, c"):
        require_columns("f.csv", ["a", "c"], ["a", "b"])
