"""Studies of closed-form kernels, run in this process with a store of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simulator.study import work
from simulator.study.results import StudyResults
from simulator.study.run import Study
from simulator.study.spec import parse_spec
from simulator.study.store import ResultStore
from tests.study import closed_form


@pytest.fixture
def run_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., StudyResults]:
    """Run the closed-form study with changes to its document."""
    monkeypatch.setattr(work, "project_trace", closed_form.project)
    closed_form.save_kernels(tmp_path)

    def run(**changes: Any) -> StudyResults:
        return Study(parse_spec(closed_form.document(**changes)), tmp_path).run(store=ResultStore(tmp_path / "store"))

    return run
