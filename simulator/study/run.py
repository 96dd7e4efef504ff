"""A study from its file to its results: points, projections, optimisation, interactions, in an order that never depends
on who computes them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from simulator.errors import UserError
from simulator.hw.config import HardwareConfig
from simulator.hw.loader import load_hw
from simulator.projection.interval import interval_of
from simulator.projection.plan import DEFAULT_INSTRUCTION_BUDGET
from simulator.study import optimize, second_order, sensitivity
from simulator.study.chips import Rules, make_rules
from simulator.study.execute import Backend, Run, Serial, execute
from simulator.study.points import DesignPoint, PointMaker
from simulator.study.results import StudyResults
from simulator.study.second_order import Interaction
from simulator.study.sensitivity import SUITE
from simulator.study.spec import StudySpec, load_spec
from simulator.study.store import ResultStore, result_key
from simulator.study.suite import SuiteKernel, load_suite
from simulator.study.uncertainty import Uncertainty
from simulator.study.work import OK, Bench, Task
from simulator.version import simulator_version

FULL_BUDGET = DEFAULT_INSTRUCTION_BUDGET
BUDGETS = (1_000_000, 4_000_000, FULL_BUDGET)
"""Warp instructions of a projection that ``auto`` tries, cheapest first."""
BUDGET_TOLERANCE = 0.03


class Progress(Protocol):
    """Shows ``total`` projections of a stage; the block's value is called once for each that is done."""

    def __call__(self, label: str, total: int) -> AbstractContextManager[Callable[[], None]]: ...


def _silent(label: str, total: int) -> AbstractContextManager[Callable[[], None]]:
    return nullcontext(lambda: None)


@dataclass
class Study:
    """One study with everything that it needs in memory; ``run`` simulates it.

    ``spec``: what is asked; ``folder``: where the suite's files are found.
    """

    spec: StudySpec
    folder: Path = Path(".")
    chips: dict[str, HardwareConfig] = field(init=False)
    kernels: list[SuiteKernel] = field(init=False)
    makers: list[PointMaker] = field(init=False)
    rules: Rules = field(init=False)

    def __post_init__(self) -> None:
        loaded = [load_hw(self._chip(name)) for name in self.spec.base]
        for chip in loaded:
            chip.execution_sections()
        self.chips = {chip.name: chip for chip in loaded}
        self.rules = make_rules(self.spec, loaded[0])
        self.makers = [PointMaker(self.spec, chip, self.rules) for chip in loaded]
        self.kernels = load_suite(self.spec.kernels, self.folder, loaded[0])

    @classmethod
    def from_file(cls, path: str | Path) -> Study:
        """The study in a YAML file, its kernels loaded and every path and formula checked; UserError otherwise."""
        return cls(load_spec(path), Path(path).parent)

    def _chip(self, name: str) -> str | Path:
        beside = self.folder / name
        return beside if name.endswith((".yaml", ".yml")) and beside.is_file() else name

    def points(self) -> list[DesignPoint]:
        """Every chip that is known before anything ran: bases, scenarios, axes alone, samples, steps of the tornado."""
        found = [maker.base_point() for maker in self.makers]
        for maker in self.makers:
            found += [*maker.scenarios(), *maker.slices(), *maker.samples()]
        if self.spec.sensitivity is not None:
            found += sensitivity.steps(self.makers[0], self.spec.sensitivity)
        return found

    def run(self, backend: Backend | None = None, store: ResultStore | None = None, progress: Progress = _silent) -> StudyResults:
        """Simulate the study. The result does not depend on ``backend``; ``store`` keeps and reuses projections."""
        problems = {kernel.digest: kernel.problem for kernel in self.kernels if kernel.problem is not None}
        bench = Bench(self.chips, {kernel.digest: kernel.trace for kernel in self.kernels}, problems)
        with (backend or Serial()).opened(bench) as run_tasks:
            runner = _Runner(self, run_tasks, store or ResultStore(), progress)
            runner.choose_budgets()
            runner.simulate("Design points", self.points())
            if self.spec.sampling.method == "optimize":
                optimize.search(self, runner.simulate)
            return runner.results(self._interactions(runner))

    def _interactions(self, runner: _Runner) -> list[Interaction]:
        wanted = self.spec.sensitivity.second_order if self.spec.sensitivity else None
        if wanted is None or self.spec.sensitivity is None:
            return []
        rows = runner.results(()).tornado
        ranked = rows[(rows["kernel"] == SUITE) & (rows["span"] > 0)]["parameter"].tolist()[: wanted.top]
        if len(ranked) < 2:
            return []
        table = second_order.factors(wanted, ranked, self.spec.sensitivity.delta)
        points = list(second_order.points(self.makers[0], ranked, table))
        times = runner.simulate("Interactions", points)
        known = {i: times[point.id] for i, point in enumerate(points) if not math.isnan(times[point.id])}
        return second_order.interactions(wanted, ranked, self.spec.sensitivity.delta, table, known)


class _Runner:
    """Runs points as they are asked for, and keeps what came out."""

    def __init__(self, study: Study, run_tasks: Run, store: ResultStore, progress: Progress) -> None:
        self.study = study
        self.run_tasks = run_tasks
        self.store = store
        self.progress = progress
        self.points: list[DesignPoint] = []
        self.outcomes: dict[tuple[str, str], dict[str, Any]] = {}
        self.base = study.makers[0].base_point()
        self.budgets: dict[str, int] = {}
        self.shifts: dict[str, float] = {}

    def simulate(self, label: str, points: Sequence[DesignPoint]) -> dict[str, float]:
        """Run every kernel on every point; suite time over base by point id (NaN where it is not known)."""
        asked = [(point, kernel) for point in points if not point.rejected for kernel in self.study.kernels]
        tasks = [self._task(point, kernel, self.budgets[kernel.name]) for point, kernel in asked]
        answers = self._execute(label, tasks)
        self.points += points
        self.outcomes |= {(p.id, k.name): answers[task.key] for (p, k), task in zip(asked, tasks, strict=True)}
        found = self.results(())
        times = {point.id: found.time_over_base(point, SUITE) for point in points}
        return times

    def choose_budgets(self) -> None:
        """For each kernel the smallest budget whose time on the base is within BUDGET_TOLERANCE of the full budget's."""
        wanted = self.study.spec.instruction_budget
        tried = BUDGETS if wanted == "auto" else (wanted,)
        full = self._base_times(self.study.kernels, FULL_BUDGET)
        open_kernels = list(self.study.kernels)
        for budget in tried:
            times = full if budget == FULL_BUDGET else self._base_times(open_kernels, budget)
            for kernel in open_kernels:
                self.budgets[kernel.name] = budget
                self.shifts[kernel.name] = full[kernel.name] / times[kernel.name] - 1
            open_kernels = [kernel for kernel in open_kernels if abs(self.shifts[kernel.name]) > BUDGET_TOLERANCE]

    def _base_times(self, kernels: Sequence[SuiteKernel], budget: int) -> dict[str, float]:
        tasks = {kernel.name: self._task(self.base, kernel, budget) for kernel in kernels}
        answers = self._execute(f"Base, {budget / 1e6:g} M instructions", list(tasks.values()))
        times = {}
        for name, task in tasks.items():
            found = answers[task.key]
            if found["status"] != OK:
                raise UserError(f"kernel '{name}' cannot be projected on the base chip {self.base.base}: {found['reason']}")
            times[name] = float(found["time_us"])
        return times

    def _task(self, point: DesignPoint, kernel: SuiteKernel, budget: int) -> Task:
        key = result_key(point.digest, kernel.digest, budget)
        return Task(key, point.base, point.overrides, kernel.digest, budget)

    def _execute(self, label: str, tasks: Sequence[Task]) -> dict[str, dict[str, Any]]:
        with self.progress(label, len({task.key for task in tasks})) as advance:
            return execute(self.run_tasks, tasks, self.store, lambda result: advance())

    def results(self, found: Iterable[Interaction]) -> StudyResults:
        """Everything so far."""
        return StudyResults(
            spec=self.study.spec,
            chips=self.study.chips,
            kernels=self.study.kernels,
            points=tuple(self.points),
            outcomes=dict(self.outcomes),
            uncertainties={kernel.name: self._uncertainty(kernel) for kernel in self.study.kernels},
            rules=self.study.rules,
            version=simulator_version(),
            interactions=tuple(found),
            n_corrupt=self.store.n_corrupt,
        )

    def _uncertainty(self, kernel: SuiteKernel) -> Uncertainty:
        here = self.outcomes[self.base.id, kernel.name]
        cycles, chip = here["cycles"], self.study.chips[self.base.base]
        span = here.get("interval") or interval_of(cycles, here["time_us"], here["bounds"], chip)
        if not span:
            raise UserError("this installation lacks measured intervals, which a study compares designs by; install it again")
        return Uncertainty(
            low=span["low"] / cycles,
            high=span["high"] / cycles,
            kernel_class=span.get("kernel_class", ""),
            basis=span.get("basis", ""),
            budget=self.budgets[kernel.name],
            budget_shift=self.shifts[kernel.name],
        )
