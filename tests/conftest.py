"""Shared by every test: traces are built anew, compiled simulator code is kept between runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import simulator  # noqa: F401  names the folder of compiled code, which worker processes of a test inherit
from simulator.validation.warm_up import ensure_compiled

REPOSITORY = Path(__file__).resolve().parents[1]


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile before the workers of a parallel run start, so that they do not all compile the same."""
    is_parallel = bool(getattr(session.config.option, "numprocesses", None))
    if is_parallel and not hasattr(session.config, "workerinput"):
        ensure_compiled("h200")


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option that rewrites what golden tests compare with."""
    parser.addoption("--update-golden", action="store_true", help="Write golden files anew; prints old, new, change in %%.")


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return REPOSITORY


@pytest.fixture(autouse=True)
def private_trace_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trace cache of this test session's own, so that no test sees what an earlier build of the code has left."""
    if "KERNELCAST_CACHE" not in os.environ:
        monkeypatch.setenv("KERNELCAST_CACHE", str(tmp_path_factory.getbasetemp() / "kernelcast-cache"))
