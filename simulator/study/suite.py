"""The kernels of a study: entries of the study file to traces. ``trace_of`` is the one place where a source becomes a trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from simulator.errors import UserError
from simulator.frontends.sass.launch import load_launch
from simulator.hw.config import HardwareConfig
from simulator.lower.events import separate_uses
from simulator.study.spec import KernelEntry
from simulator.trace.io import load_trace, trace_digest
from simulator.trace.kernel_trace import KernelTrace
from simulator.validation.traces import cached_trace


@dataclass(frozen=True)
class SuiteKernel:
    """A kernel of the suite. ``weight``: its share of the base time, before normalisation; ``digest``: of the trace;
    ``source``: as the study file names it; ``warnings``: what its trace takes for granted."""

    name: str
    kernel_class: str
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
        kernels.append(
            SuiteKernel(name, entry.kernel_class or trace.kernel, entry.weight, trace_digest(trace), trace, entry.source)
        )
    return kernels


def trace_of(entry: KernelEntry, folder: Path, chip: HardwareConfig) -> KernelTrace:
    """The trace of one entry for ``chip`` (only tile designs depend on it)."""
    if entry.trace is not None:
        return load_trace(_found(folder, entry.trace))
    if entry.cubin is not None:
        return cached_trace(_found(folder, entry.cubin), load_launch(_found(folder, str(entry.launch))), entry.kernel)
    raise UserError(
        f"kernel '{entry.name or entry.source}' is a tile design, which this version cannot turn into a kernel; "
        "give a trace, or a cubin with its launch"
    )


def _found(folder: Path, name: str) -> Path:
    path = folder / name
    if not path.is_file():
        raise UserError(f"the suite's file {name} does not exist (looked for {path})")
    return path
