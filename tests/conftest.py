"""Shared by every test: compiled kernels and trace caches stay out of the user's own cache folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return REPOSITORY


@pytest.fixture(autouse=True)
def private_trace_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trace cache of this test session's own, so that no test sees what an earlier build of the code has left."""
    if "KERNELCAST_CACHE" not in os.environ:
        monkeypatch.setenv("KERNELCAST_CACHE", str(tmp_path_factory.getbasetemp() / "kernelcast-cache"))
