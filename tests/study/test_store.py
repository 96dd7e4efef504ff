"""Are results kept safely, and reused exactly when nothing that they depend on has changed?"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simulator.errors import UserError
from simulator.study import store as store_module
from simulator.study import work
from simulator.study.results import StudyResults
from simulator.study.store import ResultStore, result_key
from tests.study.closed_form import document, project


def test_does_a_result_come_back(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    store.put("ab12", {"cycles": 0.1 + 0.2, "status": "ok"})
    assert store.get("ab12") == {"cycles": 0.1 + 0.2, "status": "ok"}
    assert store.get("cd34") is None
    assert not list(tmp_path.rglob(".partial-*"))


@pytest.mark.parametrize("damage", [lambda b: b[:-3], lambda b: b.replace(b"ok", b"no"), lambda b: b"", lambda b: b"\xff" * 9])
def test_is_damage_noticed(damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    store.put("ab12", {"status": "ok"})
    store.path("ab12").write_bytes(damage(store.path("ab12").read_bytes()))
    assert store.get("ab12") is None
    assert store.n_corrupt == 1
    assert not store.path("ab12").exists()


def test_is_a_result_under_another_name_not_believed(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    store.put("ab12", {"status": "ok"})
    store.path("ab12").rename(store.path("ab13"))
    assert store.get("ab13") is None


def test_does_the_key_hold_all_that_a_result_depends_on(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {
        result_key("chip", "trace", 10),
        result_key("chip2", "trace", 10),
        result_key("chip", "t2", 10),
        result_key("chip", "trace", 11),
    }
    monkeypatch.setattr(store_module, "simulator_version", lambda: "another")
    assert len(keys | {result_key("chip", "trace", 10)}) == 5


def test_is_a_full_disk_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*unused: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    store = ResultStore(tmp_path)
    store.put("ab11", {"status": "ok"})
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(UserError, match="the disk is full; every result so far is kept, go on with --resume"):
        store.put("ab12", {"status": "ok"})
    assert store.get("ab11") == {"status": "ok"}
    assert not list(tmp_path.rglob(".partial-*"))


def test_do_two_studies_share_results(run_study: Callable[..., StudyResults], monkeypatch: pytest.MonkeyPatch) -> None:
    n_projections = 0

    def counted(*arguments: Any, **options: Any) -> Any:
        nonlocal n_projections
        n_projections += 1
        return project(*arguments, **options)

    monkeypatch.setattr(work, "project_trace", counted)
    first = run_study()
    computed, n_projections = n_projections, 0
    run_study(name="another", axes=document()["axes"][:1], objectives=["cost"])
    assert computed > 50
    assert n_projections == 0
    assert first.n_corrupt == 0


def test_is_a_damaged_entry_computed_again(run_study: Callable[..., StudyResults], tmp_path: Path) -> None:
    first = run_study()
    entry = sorted((tmp_path / "store").rglob("*.json"))[3]
    entry.write_bytes(entry.read_bytes()[:40])
    again = run_study()
    assert again.n_corrupt == 1
    assert again.frame.equals(first.frame)
