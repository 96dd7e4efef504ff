"""One projection of a study, in whatever process: chip and kernel by name, result as plain values."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simulator.errors import UserError
from simulator.hw.config import HardwareConfig
from simulator.hw.loader import with_overrides
from simulator.projection.projection import Projection
from simulator.projection.run import project_trace
from simulator.trace.kernel_trace import KernelTrace

OK, FAILED = "ok", "failed"
CHIPS_KEPT = 64


@dataclass(frozen=True)
class Task:
    """One projection: ``overrides`` of the chip called ``base``, the kernel whose trace has the digest ``trace``.
    ``key``: name of the result in the store."""

    key: str
    base: str
    overrides: tuple[str, ...]
    trace: str
    instruction_budget: int


@dataclass
class Bench:
    """What every worker needs to run tasks: base chips by name, traces by digest. Sent once to each worker."""

    chips: Mapping[str, HardwareConfig]
    traces: Mapping[str, KernelTrace]
    _built: dict[tuple[str, tuple[str, ...]], HardwareConfig] = field(default_factory=dict)

    def chip(self, base: str, overrides: tuple[str, ...]) -> HardwareConfig:
        """The chip of a task; the last ones are kept, because the kernels of a suite follow each other on one chip."""
        found = self._built.get((base, overrides))
        if found is None:
            found = with_overrides(self.chips[base], overrides) if overrides else self.chips[base]
            if len(self._built) >= CHIPS_KEPT:
                self._built.clear()
            self._built[base, overrides] = found
        return found


def run_task(bench: Bench, task: Task) -> tuple[Task, dict[str, Any]]:
    """The task with its result. What goes wrong is a result too, with its reason; it costs this task alone."""
    try:
        chip = bench.chip(task.base, task.overrides)
        projection = project_trace(bench.traces[task.trace], chip, task.instruction_budget, explains=False)
        return task, result_of(projection)
    except UserError as error:
        return task, failure(str(error))
    except Exception as error:  # a defect of ours costs this task, is told, and spares the others
        frames = traceback.extract_tb(error.__traceback__)
        place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
        return task, failure(f"internal error, {type(error).__name__}{place}: {error}", is_final=False)


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
