"""The kernels of a study: entries of the study file to traces. ``trace_of`` is the one place where a source becomes a trace."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from simulator.errors import UserError
from simulator.frontends.sass.launch import load_launch
from simulator.hw.config import HardwareConfig
from simulator.kernels.families import family_of, load_design, parse_design
from simulator.lower.program import ready_to_lower
from simulator.projection.tile_card import check_design, ready_to_build
from simulator.study.spec import KernelEntry, load_suite_file
from simulator.trace.io import load_trace, trace_digest
from simulator.trace.kernel_trace import KernelTrace
from simulator.tuning.database import tuner_version
from simulator.tuning.families import problem_of
from simulator.validation.traces import cached_trace


@dataclass(frozen=True)
class SuiteKernel:
    """A kernel of the suite. ``weight``: its share of the base time, before normalisation; ``digest``: of the trace (or of the
    problem); ``source``: as the study file names it; ``warnings``: what its trace takes for granted; ``problem``: what is tuned
    again on every chip, None for a kernel that stays as it is."""

    name: str
    weight: float
    digest: str
    trace: KernelTrace
    source: str
    problem: BaseModel | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        return self.trace.warnings


def load_suite(entries: Sequence[KernelEntry], folder: Path, base: HardwareConfig) -> list[SuiteKernel]:
    """Every kernel of the suite, in order; files are found beside the study file (``folder``)."""
    kernels: list[SuiteKernel] = []
    for entry, place in expanded(entries, folder):
        trace = ready_to_lower(trace_of(entry, place, base))
        name = entry.name or Path(entry.source).stem
        if any(kernel.name == name for kernel in kernels):
            raise UserError(f"two kernels of the suite are called '{name}'; give each a name of its own")
        problem = problem_of(_design(entry, place)) if entry.retune else None
        digest = trace_digest(trace) if problem is None else problem_digest(problem)
        kernels.append(SuiteKernel(name, entry.weight, digest, trace, entry.source, problem))
    return kernels


def expanded(entries: Sequence[KernelEntry], folder: Path) -> Iterator[tuple[KernelEntry, Path]]:
    """Every kernel with the folder of its files, suites replaced by their kernels."""
    for entry in entries:
        if entry.suite is None:
            yield entry, folder
            continue
        path = _found(folder, entry.suite)
        for one, place in expanded(load_suite_file(path).kernels, path.parent):
            changes: dict[str, Any] = {"weight": one.weight * entry.weight}
            if one.tile is not None:
                changes["retune"] = one.retune or entry.retune
            yield one.model_copy(update=changes), place


def problems_of_suite(path: Path) -> list[BaseModel]:
    """What the tile designs of a suite compute; UserError for a suite with other kernels."""
    found = []
    for entry, folder in expanded(load_suite_file(path).kernels, path.parent):
        if entry.tile is None:
            raise UserError(f"{path}: kernel '{entry.name or entry.source}' has its tile built in; only tile designs are tuned")
        found.append(problem_of(_design(entry, folder)))
    return found


def problem_digest(problem: BaseModel) -> str:
    """SHA-256 (hex) of a problem and of what decides which design is best for it."""
    parts = [tuner_version(), problem.model_dump(mode="json")]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def trace_of(entry: KernelEntry, folder: Path, chip: HardwareConfig) -> KernelTrace:
    """The trace of one entry for ``chip`` (only tile designs depend on it)."""
    if entry.trace is not None:
        return load_trace(_found(folder, entry.trace))
    if entry.cubin is not None:
        return cached_trace(_found(folder, entry.cubin), load_launch(_found(folder, str(entry.launch))), entry.kernel)
    return _designed(entry, folder, chip)


def _designed(entry: KernelEntry, folder: Path, chip: HardwareConfig) -> KernelTrace:
    """The kernel of a tile design as it is built for ``chip``; the same kernel then runs on every design point."""
    design = _design(entry, folder)
    violations = check_design(design, chip)
    if violations:
        raise UserError(f"{entry.name or entry.source} is not legal on {chip.name}: {violations[0].message}")
    ready, _, _ = ready_to_build(design, chip)
    return family_of(design).build(ready, chip.identity.instruction_set)


def _design(entry: KernelEntry, folder: Path) -> BaseModel:
    if isinstance(entry.tile, dict):
        return parse_design(entry.tile, f"kernel '{entry.name}'")
    return load_design(_found(folder, str(entry.tile)))


def _found(folder: Path, name: str) -> Path:
    path = folder / name
    if not path.is_file():
        raise UserError(f"the suite's file {name} does not exist (looked for {path})")
    return path
