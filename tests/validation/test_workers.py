"""Does a run over worker processes keep its order, and survive a worker that dies?"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from simulator.validation.workers import run_all

WORK = """
import os

def square(n):
    return n * n

def die_on_three(n):
    if n == 3:
        os.kill(os.getpid(), 9)
    return n * n
"""


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """Functions that a fresh worker process can import."""
    (tmp_path / "case_work.py").write_text(WORK)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("case_work")
    sys.modules.pop("case_work", None)


def test_is_the_order_that_of_the_tasks(work: ModuleType) -> None:
    seen: list[int] = []
    assert run_all(range(6), work.square, 2, lost=lambda n: -1, on_done=seen.append) == [0, 1, 4, 9, 16, 25]
    assert sorted(seen) == [0, 1, 4, 9, 16, 25]


def test_does_a_dead_worker_cost_its_own_case_alone(work: ModuleType) -> None:
    assert run_all(range(6), work.die_on_three, 2, lost=lambda n: -n) == [0, 1, 4, -3, 16, 25]


def test_does_an_empty_run_end() -> None:
    assert run_all([], str, 2, lost=str) == []
