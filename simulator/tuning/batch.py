"""Many problems tuned, in one process or several, each finished one handed over as it comes."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from simulator.errors import UserError
from simulator.hw.config import HardwareConfig
from simulator.tuning.database import Entry, entry_of
from simulator.tuning.envelope import DEFAULT_LOSS, Neighbourhood
from simulator.tuning.families import parse_problem, title, tunable
from simulator.tuning.search import Effort, Tuned, serially, tune
from simulator.tuning.simulate import Job, Simulated, simulate_design
from simulator.validation.workers import Workers, run_all

WORKER_DIED = "the worker process died (out of memory, or a crash in native code)"


@dataclass(frozen=True)
class Outcome:
    """Of one problem: the search and, where an envelope was asked for, its row for a database; or why there is none."""

    problem: BaseModel
    tuned: Tuned | None = None
    entry: Entry | None = None
    failure: str = ""


@dataclass(frozen=True)
class Order:
    """What to do with every problem: ``loss`` of the envelope, None: no envelope and no row."""

    hw: HardwareConfig
    effort: Effort
    loss: float | None = DEFAULT_LOSS

    @property
    def n_jobs(self) -> int:
        """Simulations of one problem, without those of its envelope, which are not known beforehand."""
        return self.effort.n_parts + self.effort.n_whole


def tune_one(
    order: Order, problem: BaseModel, run: Callable[[Sequence[Job]], list[Simulated]] = serially
) -> Outcome:
    """A problem that cannot be tuned says why; the others go on."""
    try:
        tuned = tune(problem, order.hw, order.effort, run)
        if order.loss is None:
            return Outcome(problem, tuned)
        around = Neighbourhood(tuned.best.design, problem, order.hw, run)
        return Outcome(problem, tuned, entry_of(tuned, around.envelope(order.loss), around.fallback()))
    except UserError as error:
        return Outcome(problem, failure=str(error))


def tune_all(order: Order, problems: Sequence[BaseModel], jobs: int, done: Callable[[Outcome], None]) -> list[Outcome]:
    """Every problem, in order; ``jobs`` worker processes (1 or less: this one)."""
    if jobs <= 1:
        found = []
        for problem in problems:
            found.append(tune_one(order, problem))
            done(found[-1])
        return found
    return run_all(
        problems, partial(tune_one, order), jobs, lost=lambda problem: Outcome(problem, failure=WORKER_DIED), on_done=done
    )


class Processes:
    """Simulates the jobs of one search in ``n`` worker processes; a context. ``done`` is told of every finished one."""

    def __init__(self, n: int, done: Callable[[], None]) -> None:
        self.n, self.done = n, done
        self._workers = Workers()

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *error: Any) -> None:
        self._workers.__exit__(*error)

    def __call__(self, jobs: Sequence[Job]) -> list[Simulated]:
        if self.n <= 1:
            found = []
            for job in jobs:
                found.append(simulate_design(job))
                self.done()
            return found
        return run_all(
            jobs, simulate_design, self.n, lost=lambda job: Simulated(job.design, failure=WORKER_DIED),
            on_done=lambda one: self.done(), workers=self._workers,
        )  # fmt: skip


def read_shapes(path: Path, family: str) -> list[BaseModel]:
    """The problems of a CSV file: a column for each extent, ``dtype``, and any other field of the family's problem."""
    model = tunable(family).problem
    fields = [name for name in model.model_fields if name != "kind"]
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file, strict=True)
            rows = list(reader)
    except OSError as error:
        raise UserError(f"shapes file {path} cannot be read: {error.strerror}") from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise UserError(f"shapes file {path} is not CSV: {error}") from error
    header = list(reader.fieldnames or [])
    missing = [name for name in tunable(family).extents if name not in header]
    if missing:
        raise UserError(f"{path} lacks the column {missing[0]}; it has {', '.join(header) or 'no header'}")
    unknown = [name for name in header if name not in fields]
    if unknown:
        raise UserError(f"{path}: column '{unknown[0]}' is not known; columns: {', '.join(fields)}")
    if not rows:
        raise UserError(f"{path} holds no shapes")
    return [_parsed(row, family, f"{path}, line {number}") for number, row in enumerate(rows, start=2)]


def _parsed(row: dict[str, Any], family: str, where: str) -> BaseModel:
    if None in row or None in row.values():
        raise UserError(f"{where} does not have as many fields as the header")
    return parse_problem({"kind": family} | {name: yaml.safe_load(text) for name, text in row.items() if text != ""}, where)


def distinct(problems: Sequence[BaseModel]) -> list[BaseModel]:
    """Each problem once, in order."""
    return list({title(problem) + repr(problem): problem for problem in problems}.values())
