"""Does the engine do the same as plain Python, and with every array index checked?"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from simulator.numba_cache import cache_root
from tests.engine.leg import digest

ROOT = Path(__file__).resolve().parents[2]
CHECKED_CACHE = cache_root() / "checked"
"""Compiled code with index checks is kept apart: numba does not tell the two from each other."""
FILES = (
    "tests/engine/test_issue_gates.py",
    "tests/engine/test_shared_memory.py",
    "tests/engine/test_tensor_core.py",
    "tests/engine/test_barriers.py",
    "tests/engine/test_mbarriers.py",
    "tests/engine/test_async_copies.py",
    "tests/engine/test_launch.py",
    "tests/memory/test_l1.py",
    "tests/memory/test_l2.py",
)
LEGS = {
    "plain Python": {"NUMBA_DISABLE_JIT": "1"},
    "checked indices": {"NUMBA_BOUNDSCHECK": "1", "KERNELCAST_CACHE": str(CHECKED_CACHE)},
}


@pytest.mark.parametrize("leg", LEGS)
def test_does_the_engine_pass_and_agree_in_every_leg(leg: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"} | LEGS[leg]
    command = [sys.executable, "-m", "tests.engine.leg", *FILES]
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.splitlines()[-1] == digest()
