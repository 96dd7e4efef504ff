"""The best design of a problem on a chip: the whole space screened, the most promising simulated, the best of them replayed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import BaseModel

from simulator.errors import UserError
from simulator.hw.config import HardwareConfig
from simulator.tuning.designs import Designs
from simulator.tuning.families import Tunable, family_of_problem, title
from simulator.tuning.simulate import Job, Simulated, as_json, simulate_design

SCREEN_RESOLUTION = 0.005
"""Times of the screen that differ by less count as equal."""
MOST_OF_A_TILE = 2
"""Designs with the same tile extents in the first round."""
FIRST_SHARE = 0.7
"""Of the simulations in parts; the rest goes to neighbours of the best."""
N_CENTRES = 2

Runner = Callable[[Sequence[Job]], list[Simulated]]
"""Simulates jobs, in their order."""


@dataclass(frozen=True)
class Effort:
    """``n_parts`` designs are simulated in parts, the best ``n_whole`` of them replayed whole."""

    n_parts: int = 16
    n_whole: int = 4


@dataclass(frozen=True)
class Tuned:
    """``ranked``: whole replays, fastest first; ``others``: simulated in parts, fastest first; ``failed``: could not run;
    ``n_space``: legal designs, screened in ``screen_seconds``."""

    problem: BaseModel
    hw: str
    hw_digest: str
    ranked: tuple[Simulated, ...]
    others: tuple[Simulated, ...]
    failed: tuple[Simulated, ...]
    n_space: int
    screen_seconds: float
    seconds: float

    @property
    def best(self) -> Simulated:
        return self.ranked[0]

    @property
    def n_simulated(self) -> int:
        return len(self.ranked) + len(self.others) + len(self.failed)

    def to_json(self) -> dict[str, Any]:
        """The contract's document: ``ranked[]`` and what it rests on."""
        return {
            "hw": self.hw,
            "hw_digest": self.hw_digest,
            "problem": self.problem.model_dump(mode="json", exclude_none=True),
            "ranked": [one.to_json() for one in self.ranked],
            "others": [one.to_json() for one in self.others],
            "failed": [{"design": as_json(one.design), "reason": one.failure} for one in self.failed],
            "screened": {"designs": self.n_space, "seconds": self.screen_seconds},
            "simulated": {"designs": self.n_simulated, "whole": len(self.ranked)},
            "seconds": self.seconds,
        }


def serially(jobs: Sequence[Job]) -> list[Simulated]:
    """In this process, one after the other."""
    return [simulate_design(job) for job in jobs]


def tune(problem: BaseModel, hw: HardwareConfig, effort: Effort | None = None, run: Runner = serially) -> Tuned:
    """Search the family's space. The answer does not depend on ``run``. UserError where no design is legal or can run."""
    effort = effort or Effort()
    started = time.perf_counter()
    family = family_of_problem(problem)
    designs = family.space(problem, hw)
    order = screen(family, problem, designs, hw)
    screened = time.perf_counter() - started
    search = _Search(family, problem, designs, order, hw, run)
    n_first = max(1, round(effort.n_parts * FIRST_SHARE))
    search.simulate(search.promising(n_first))
    search.simulate(search.neighbours(effort.n_parts - len(search.found)))
    search.simulate(search.promising(effort.n_parts - len(search.found)))
    parts = sorted(search.found.items(), key=lambda item: (item[1].time_us, item[0]))
    failed = [one for _, one in parts if one.failure]
    running = [one for _, one in parts if not one.failure]
    finals = run([Job(one.design, hw, whole=True) for one in running[: effort.n_whole]])
    if all(one.failure for one in finals):
        reason = (finals or failed)[0].failure
        raise UserError(f"{title(problem)}: none of {len(parts)} simulated designs runs on {hw.name}; the first: {reason}")
    ranked = sorted((one for one in finals if not one.failure), key=lambda one: one.time_us)
    return Tuned(
        problem, hw.name, hw.digest(), tuple(ranked), tuple(running[effort.n_whole :]),
        (*failed, *(one for one in finals if one.failure)), len(designs), screened, time.perf_counter() - started,
    )  # fmt: skip


def screen(family: Tunable, problem: BaseModel, designs: Designs, hw: HardwareConfig) -> np.ndarray:
    """Rows of ``designs``, int64, the most promising first."""
    times = family.estimate(problem, designs, hw).time_us
    binned = np.round(np.log(times) / SCREEN_RESOLUTION)
    return np.lexsort((*reversed(family.preference(designs)), binned))


class _Search:
    """Rows that were simulated, and which to try next."""

    def __init__(
        self, family: Tunable, problem: BaseModel, designs: Designs, order: np.ndarray, hw: HardwareConfig, run: Runner
    ) -> None:
        self.family, self.problem, self.designs, self.order, self.hw, self.run = family, problem, designs, order, hw, run
        self.found: dict[int, Simulated] = {}

    def simulate(self, rows: Sequence[int]) -> None:
        designs = [self.family.design_of(self.problem, self.designs.row(row)) for row in rows]
        jobs = [Job(design, self.hw, whole=False) for design in designs]
        self.found |= dict(zip(rows, self.run(jobs), strict=True))

    def promising(self, n: int) -> list[int]:
        """The first untried rows of the screen that are no near-copies of each other."""
        best = self.designs.first_of(self.family.near, self.order)
        per_tile: dict[tuple[int, ...], int] = {}
        chosen: list[int] = []
        for row in best.tolist():
            if len(chosen) >= n:
                break
            tile = tuple(int(self.designs[name][row]) for name in self.family.near[:2])
            per_tile[tile] = per_tile.get(tile, 0) + 1
            if per_tile[tile] <= MOST_OF_A_TILE and row not in self.found:
                chosen.append(row)
        return chosen

    def neighbours(self, n: int) -> list[int]:
        """One step away from the best simulated designs, each in turn, as the screen orders them."""
        centres = sorted((one.time_us, row) for row, one in self.found.items() if not one.failure)[:N_CENTRES]
        lists = [self._one_step_from(row) for _, row in centres]
        chosen: list[int] = []
        for place in range(max(map(len, lists), default=0)):
            for rows in lists:
                if place < len(rows) and rows[place] not in chosen and len(chosen) < n:
                    chosen.append(rows[place])
        return chosen

    def _one_step_from(self, centre: int) -> list[int]:
        """Untried rows that differ from ``centre`` in one of the family's steps, the best of each step first."""
        differs = {name: values != values[centre] for name, values in self.designs.columns.items()}
        ranks = np.empty(len(self.order), np.int64)
        ranks[self.order] = np.arange(len(self.order))
        found: list[tuple[int, int, int]] = []
        for step in self.family.steps:
            others = [flags for name, flags in differs.items() if name not in step]
            here = np.any([differs[name] for name in step], axis=0) & ~np.any(others, axis=0)
            rows = [row for row in np.flatnonzero(here).tolist() if row not in self.found]
            rows.sort(key=lambda row: int(ranks[row]))
            found += [(place, int(ranks[row]), row) for place, row in enumerate(rows)]
        return [row for _, _, row in sorted(found)]
