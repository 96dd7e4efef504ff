"""One projection of a study, in whatever process: chip and kernel by name, result as plain values."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from simulator.errors import UserError
from simulator.hw.config import HardwareConfig
from simulator.hw.loader import with_overrides
from simulator.kernels.families import family_of
from simulator.projection.projection import Projection
from simulator.projection.run import project_trace
from simulator.projection.tile_card import ready_to_build
from simulator.trace.kernel_trace import KernelTrace
from simulator.tuning.search import Effort, tune
from simulator.tuning.simulate import as_json

OK, FAILED = "ok", "failed"
CHIPS_KEPT = 64
RETUNE_EFFORT = Effort(n_parts=6, n_whole=2)
"""Simulations behind each design that is chosen again on a chip."""


@dataclass(frozen=True)
class Task:
    """One projection: ``overrides`` of the chip called ``base``, the kernel whose trace (or problem, where the design is searched
    on every chip) has the digest ``trace``. ``key``: name of the result in the store."""

    key: str
    base: str
    overrides: tuple[str, ...]
    trace: str
    instruction_budget: int


@dataclass
class Bench:
    """What every worker needs to run tasks: base chips by name, traces and problems by digest. Sent once to each worker."""

    chips: Mapping[str, HardwareConfig]
    traces: Mapping[str, KernelTrace]
    problems: Mapping[str, BaseModel] = field(default_factory=dict)
    _built: dict[tuple[str, tuple[str, ...]], HardwareConfig] = field(default_factory=dict)
    _tuned: dict[tuple[str, str], BaseModel] = field(default_factory=dict)

    def chip(self, base: str, overrides: tuple[str, ...]) -> HardwareConfig:
        """The chip of a task; the last ones are kept, because the kernels of a suite follow each other on one chip."""
        found = self._built.get((base, overrides))
        if found is None:
            found = with_overrides(self.chips[base], overrides) if overrides else self.chips[base]
            if len(self._built) >= CHIPS_KEPT:
                self._built.clear()
            self._built[base, overrides] = found
        return found

    def best_design(self, problem: str, chip: HardwareConfig) -> BaseModel:
        """Of the problem with this digest on ``chip``; the last ones are kept, for other instruction budgets."""
        key = (problem, chip.digest())
        if key not in self._tuned:
            if len(self._tuned) >= CHIPS_KEPT:
                self._tuned.clear()
            self._tuned[key] = tune(self.problems[problem], chip, RETUNE_EFFORT).best.design
        return self._tuned[key]


def run_task(bench: Bench, task: Task) -> tuple[Task, dict[str, Any]]:
    """The task with its result. What goes wrong is a result too, with its reason; it costs this task alone."""
    try:
        chip = bench.chip(task.base, task.overrides)
        if task.trace in bench.problems:
            return task, retuned(bench.best_design(task.trace, chip), chip, task.instruction_budget)
        projection = project_trace(bench.traces[task.trace], chip, task.instruction_budget, explains=False)
        return task, result_of(projection)
    except UserError as error:
        return task, failure(str(error))
    except Exception as error:  # a defect of ours costs this task, is told, and spares the others
        frames = traceback.extract_tb(error.__traceback__)
        place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
        return task, failure(f"internal error, {type(error).__name__}{place}: {error}", is_final=False)


def retuned(design: BaseModel, chip: HardwareConfig, instruction_budget: int) -> dict[str, Any]:
    """The result of a design that was chosen for ``chip``, and which one that is."""
    ready, _, _ = ready_to_build(design, chip)
    trace = family_of(design).build(ready, chip.identity.instruction_set)
    return result_of(project_trace(trace, chip, instruction_budget, explains=False)) | {"design": as_json(design)}


def failure(reason: str, is_final: bool = True) -> dict[str, Any]:
    """A result that is none. ``is_final``: the same input fails again, so that the answer is worth keeping."""
    return {"status": FAILED, "reason": " ".join(reason.split()), "is_final": is_final}


def result_of(projection: Projection) -> dict[str, Any]:
    """The parts of a projection that a study keeps: no wall time, nothing that differs from run to run."""
    kept: dict[str, Any] = {
        "status": OK,
        "cycles": projection.cycles,
        "time_us": projection.time_us,
        "clock_mhz": projection.clock_mhz,
        "bound_by": projection.bound_by,
        "bounds": projection.bounds,
        "occupancy": float(projection.occupancy["occupancy"]),
        "ctas_per_sm": int(projection.occupancy["ctas_per_sm"]),
        "limiters": sorted(map(str, projection.occupancy["limiters"])),
        "waves": projection.waves,
        "tail_fraction": projection.tail_fraction,
        "warp_instructions": projection.warp_instructions,
        "smem": projection.smem,
        "bytes": projection.bytes,
        "stalls": projection.stalls,
        "simulated_fraction": projection.simulated["fraction"],
    }
    if projection.interval:
        kept["interval"] = projection.interval
    return kept
