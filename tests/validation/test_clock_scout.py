"""Is a matrix kernel replayed once, at the clock that it settles at?"""

from __future__ import annotations

from typing import Any

import pytest

from simulator.data_files import data_folder
from simulator.hw.loader import load_hw
from simulator.projection import run
from simulator.projection.clock import SETTLED
from simulator.trace.kernel_trace import KernelTrace
from simulator.validation.cubins import locate_cubins
from simulator.validation.measured import read_measured, select
from simulator.validation.traces import cached_trace, launch_from_json

OFF_FIRST_GUESS = "405"
"""A matrix kernel that keeps the tensor cores busy for 22 % of the time: its clock is 10 % above the first guess."""
BUDGET = 400_000


@pytest.fixture(scope="module")
def trace() -> KernelTrace:
    folder = data_folder("projections") / "validation"
    row = select(read_measured(folder / "kernels.csv.gz"), ids=[OFF_FIRST_GUESS])
    return cached_trace(locate_cubins(folder / "cubins.tar.xz")[row["cubin"][0]], launch_from_json(row["launch"][0]))


def replayed(trace: KernelTrace, patch: pytest.MonkeyPatch) -> tuple[run.Replay, int]:
    """(replay, how often it was simulated)."""
    simulate, calls = run.simulate, []

    def counted(*arguments: Any, **named: Any) -> Any:
        calls.append(1)
        return simulate(*arguments, **named)

    patch.setattr(run, "simulate", counted)
    return run.replay_trace(trace, load_hw("h200"), BUDGET, explains=False), len(calls)


def test_the_scout_saves_the_replay_at_the_wrong_clock(trace: KernelTrace) -> None:
    with pytest.MonkeyPatch.context() as patch:
        scouted, n_scouted = replayed(trace, patch)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "cycles_of_start", lambda *unused: None)
        settled, n_settled = replayed(trace, patch)
    assert n_scouted == 1 and n_settled == 2
    assert abs(scouted.clock_hz / settled.clock_hz - 1) <= SETTLED
    assert abs(scouted.run.end_cycles / settled.run.end_cycles - 1) <= SETTLED


def test_a_kernel_that_ends_in_its_start_keeps_the_first_guess(trace: KernelTrace) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "SCOUT_SHARE", 2.0)
        patch.setattr(run, "SCOUT_INSTRUCTIONS", 1 << 40)
        found, n = replayed(trace, patch)
    assert n == 2 and found.run.finished
