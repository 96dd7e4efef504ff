"""One measured case to one projection, in whatever process: trace from the cache or the cubin, then the simulator.

Whatever goes wrong with a case becomes the reason of its outcome; it never stops the run and is never guessed over.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from simulator.errors import UserError
from simulator.hw.config import HardwareConfig
from simulator.hw.loader import load_hw
from simulator.projection.run import project_trace
from simulator.trace.kernel_trace import KernelTrace
from simulator.validation.measured import Case
from simulator.validation.outcome import Outcome
from simulator.validation.traces import cached_trace, launch_from_json
from simulator.validation.workers import run_all

LIBRARY_KERNEL = "library kernel: the file has no cubin for it"
WORKER_DIED = "the worker process died twice on this case (out of memory, or a crash in native code)"


@dataclass(frozen=True)
class Job:
    """One case to project. ``cubin``: None if the archive has no file of that name."""

    case: Case
    cubin: Path | None
    hw: str
    overrides: tuple[str, ...] = ()


def project_all(jobs: Sequence[Job], n_workers: int, on_done: Callable[[Outcome], None] = lambda outcome: None) -> list[Outcome]:
    """Every job over ``n_workers`` processes, results in the order of the jobs."""
    return run_all(
        jobs,
        project_case,
        n_workers,
        lost=lambda job: Outcome(job.case, None, WORKER_DIED, 0.0),
        on_done=on_done,
        is_warm=lambda outcome: outcome.projection is not None,
    )


def jobs_for(cases: Sequence[Case], cubins: Mapping[str, Path], hw: str, overrides: Sequence[str] = ()) -> list[Job]:
    """Each case with the file of its cubin."""
    return [Job(case, cubins.get(case.cubin), hw, tuple(overrides)) for case in cases]


def project_case(job: Job) -> Outcome:
    """The projection of one case, or the reason why there is none."""
    started = time.perf_counter()
    try:
        projection, reason = project_trace(_trace(job), _chip(job.hw, job.overrides), explains=False), ""
    except UserError as error:
        projection, reason = None, str(error)
    except Exception as error:  # a defect of ours costs this case, is told, and spares the others
        projection, reason = None, _defect(error)
    return Outcome(job.case, projection, reason, time.perf_counter() - started)


def _trace(job: Job) -> KernelTrace:
    if not job.case.cubin:
        raise UserError(LIBRARY_KERNEL)
    if job.cubin is None:
        raise UserError(f"the cubins hold no file {job.case.cubin}.cubin")
    if not job.case.launch:
        raise UserError("the row has no launch description")
    return cached_trace(job.cubin, launch_from_json(job.case.launch))


@cache
def _chip(hw: str, overrides: tuple[str, ...]) -> HardwareConfig:
    return load_hw(hw, overrides)


def _defect(error: Exception) -> str:
    """An unexpected exception as one line with its place."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"internal error, {type(error).__name__}{place}: {error}"
