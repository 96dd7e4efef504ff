"""The kernels of a study: entries of the study file to traces. ``trace_of`` is the one place where a source becomes a trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from simulator.errors import UserError
from simulator.frontends.sass.launch import load_launch
from simulator.hw.config import HardwareConfig
from simulator.kernels.families import family_of, load_design
from simulator.lower.events import separate_uses
from simulator.projection.tile_card import check_design, ready_to_build
from simulator.study.spec import KernelEntry
from simulator.trace.io import load_trace, trace_digest
from simulator.trace.kernel_trace import KernelTrace
from simulator.validation.traces import cached_trace


@dataclass(frozen=True)
class SuiteKernel:
    """A kernel of the suite. ``weight``: its share of the base time, before normalisation; ``digest``: of the trace;
    ``source``: as the study file names it; ``warnings``: what its trace takes for granted."""

    name: str
    weight: float
    digest: str
    trace: KernelTrace
    source: str

    @property
    def warnings(self) -> tuple[str, ...]:
        return self.trace.warnings


def load_suite(entries: Sequence[KernelEntry], folder: Path, base: HardwareConfig) -> list[SuiteKernel]:
    """Every kernel of the suite, in order; files are found beside the study file (``folder``)."""
    kernels: list[SuiteKernel] = []
    for entry in entries:
        trace = separate_uses(trace_of(entry, folder, base))
        name = entry.name or Path(entry.source).stem
        if any(kernel.name == name for kernel in kernels):
            raise UserError(f"two kernels of the suite are called '{name}'; give each a name of its own")
        kernels.append(SuiteKernel(name, entry.weight, trace_digest(trace), trace, entry.source))
    return kernels


def trace_of(entry: KernelEntry, folder: Path, chip: HardwareConfig) -> KernelTrace:
    """The trace of one entry for ``chip`` (only tile designs depend on it)."""
    if entry.trace is not None:
        return load_trace(_found(folder, entry.trace))
    if entry.cubin is not None:
        return cached_trace(_found(folder, entry.cubin), load_launch(_found(folder, str(entry.launch))), entry.kernel)
    return _designed(entry, _found(folder, str(entry.tile)), chip)


def _designed(entry: KernelEntry, file: Path, chip: HardwareConfig) -> KernelTrace:
    """The kernel of a tile design as it is built for ``chip``; the same kernel then runs on every design point."""
    if entry.retune:
        raise UserError(
            f"kernel '{entry.name or entry.source}': retune is not delivered yet; without it, the design is built once, "
            "for the base chip"
        )
    design = load_design(file)
    violations = check_design(design, chip)
    if violations:
        raise UserError(f"{file} is not legal on {chip.name}: {violations[0].message}")
    ready, _, _ = ready_to_build(design, chip)
    return family_of(design).build(ready, chip.identity.instruction_set)


def _found(folder: Path, name: str) -> Path:
    path = folder / name
    if not path.is_file():
        raise UserError(f"the suite's file {name} does not exist (looked for {path})")
    return path
