"""Does the command survive being stopped, and refuse in one sentence what it cannot do?"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from pytest import CaptureFixture, MonkeyPatch

from simulator.cli.app import run
from simulator.study import execute, work
from simulator.validation import warm_up
from tests.study.closed_form import document, project, save_kernels

ROOT = Path(__file__).resolve().parents[2]
TABLES = ("results.parquet", "results.csv", "designs.csv", "tornado.csv", "knees.csv", "report.html")


@pytest.fixture
def study_file(tmp_path: Path, monkeypatch: MonkeyPatch) -> Path:
    """The closed-form study in a folder of its own; its kernels need no compiled engine."""
    monkeypatch.setattr(warm_up, "ensure_compiled", lambda *unused: None)
    save_kernels(tmp_path)
    file = tmp_path / "study.yaml"
    file.write_text(yaml.safe_dump(document()))
    return file


def arguments(file: Path, name: str, *more: str, store: str = "store") -> list[str]:
    return ["study", str(file), "-o", str(file.parent / name), "--store", str(file.parent / store), *more]


def start(args: list[str]) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.study.slow_study", *args]
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def entries(folder: Path) -> int:
    return sum(1 for _ in folder.rglob("*.json"))


def wait_for(count: int, store: Path, process: subprocess.Popen[str]) -> None:
    while entries(store) < count and process.poll() is None:
        time.sleep(0.005)


def tables(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in TABLES}


def test_does_a_killed_study_resume_to_the_same_tables(study_file: Path, monkeypatch: MonkeyPatch) -> None:
    folder = study_file.parent
    process = start(arguments(study_file, "out", "--jobs", "0"))
    for count in (1, 30):
        wait_for(count, folder / "store", process)
        assert process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert entries(folder / "store") >= count
        assert not (folder / "out" / "results.parquet").exists()
        process = start(arguments(study_file, "out", "--jobs", "0", "--resume"))
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    monkeypatch.setattr(work, "project_trace", project)
    assert run(arguments(study_file, "undisturbed/out", "--jobs", "0", store="another")) == 0
    assert tables(folder / "out") == tables(folder / "undisturbed" / "out")


def test_does_an_interrupt_stop_it_at_once_and_resumably(study_file: Path) -> None:
    process = start(arguments(study_file, "out", "--jobs", "0"))
    wait_for(5, study_file.parent / "store", process)
    process.send_signal(signal.SIGINT)
    found = entries(study_file.parent / "store")
    _, errors = process.communicate(timeout=30)
    assert entries(study_file.parent / "store") <= found + 2, "the points in flight and no more"
    assert process.returncode == 130
    assert "--resume" in errors


def test_are_the_results_documented(study_file: Path, monkeypatch: MonkeyPatch, capsys: CaptureFixture[str]) -> None:
    monkeypatch.setattr(work, "project_trace", project)
    assert run(arguments(study_file, "out", "--jobs", "0", "--json")) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["best"]["speedup"] > 1
    assert len(found["answer"]) == 5
    frame = pd.read_parquet(study_file.parent / "out" / "results.parquet")
    assert len(frame) == found["points"] * 3
    assert list(frame.columns) == list(pd.read_csv(study_file.parent / "out" / "results.csv").columns)
    assert (study_file.parent / "out" / "figures" / "tornado.png").exists()


def test_is_a_folder_that_is_not_its_own_left_alone(
    study_file: Path, monkeypatch: MonkeyPatch, capsys: CaptureFixture[str]
) -> None:
    monkeypatch.setattr(work, "project_trace", project)
    out = study_file.parent / "out"
    assert run(arguments(study_file, "out", "--jobs", "0")) == 0
    before = tables(out)
    _refused(study_file, capsys, "holds this study already; go on with --resume")
    assert run(arguments(study_file, "out", "--jobs", "0", "--resume")) == 0
    manifest = json.loads((out / "study.json").read_text())
    (out / "study.json").write_text(json.dumps(manifest | {"simulator": "0.0.1+old"}))
    _refused(study_file, capsys, "was written by kernelcast 0.0.1+old", "--resume")
    (out / "study.json").write_text(json.dumps(manifest | {"study_digest": "0"}))
    _refused(study_file, capsys, "holds another study", "--resume")
    (out / "study.json").write_text("{")
    _refused(study_file, capsys, "is damaged", "--resume")
    (out / "study.json").unlink()
    _refused(study_file, capsys, "holds other files and no study")
    assert tables(out) == before


def _refused(file: Path, capsys: CaptureFixture[str], said: str, *more: str) -> None:
    capsys.readouterr()
    assert run(arguments(file, "out", "--jobs", "0", *more)) == 2
    errors = capsys.readouterr().err
    assert said in errors
    assert errors.count("\n") == 1


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("tcp://127.0.0.1:1", "no Dask scheduler answers at tcp://127.0.0.1:1"),
        ("local:none", "give a number of workers"),
        ("somewhere", "is neither tcp://HOST:PORT nor local:N"),
    ],
)
def test_is_a_bad_cluster_one_sentence(
    address: str, said: str, study_file: Path, monkeypatch: MonkeyPatch, capsys: CaptureFixture[str]
) -> None:
    monkeypatch.setattr(execute, "CONNECT_SECONDS", 1)
    monkeypatch.setattr(work, "project_trace", project)
    assert run(arguments(study_file, "out", "--dask", address)) == 2
    assert said in capsys.readouterr().err


def test_is_a_full_disk_one_sentence(study_file: Path, monkeypatch: MonkeyPatch, capsys: CaptureFixture[str]) -> None:
    monkeypatch.setattr(work, "project_trace", project)
    replaced = os.replace

    def full(source: Any, target: Any) -> None:
        if "store" in str(target):
            raise OSError(28, "No space left on device")
        replaced(source, target)

    monkeypatch.setattr(os, "replace", full)
    assert run(arguments(study_file, "out", "--jobs", "0")) == 2
    assert "the disk is full" in capsys.readouterr().err


def test_is_an_empty_suite_refused(study_file: Path, capsys: CaptureFixture[str]) -> None:
    study_file.write_text(yaml.safe_dump(document(kernels=[])))
    assert run(arguments(study_file, "out")) == 2
    assert "the suite is empty" in capsys.readouterr().err
    assert not (study_file.parent / "out").exists()
