"""One design simulated, in whatever process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from simulator.errors import Unsupported, UserError
from simulator.hw.config import HardwareConfig
from simulator.kernels.families import family_of
from simulator.projection.run import project_trace
from simulator.projection.tile_card import check_design, project_parts, ready_to_build

WHOLE_BUDGET = 2_000_000
"""Warp instructions of the replay of a whole kernel: about 2 % of the largest kernels, all of small ones."""


@dataclass(frozen=True)
class Job:
    """A design to simulate: in parts, or the ``whole`` launch."""

    design: BaseModel
    hw: HardwareConfig
    whole: bool


@dataclass(frozen=True)
class Simulated:
    """A simulated design. ``bound_share``: its highest lower bound over its cycles; ``interval``: (low, high) in us where the
    projection has one; ``failure``: why there is no time (the others are then meaningless)."""

    design: BaseModel
    time_us: float = float("inf")
    cycles: float = float("inf")
    clock_mhz: float = 0.0
    bound_by: str = ""
    bound_share: float = 0.0
    occupancy: float = 0.0
    ctas_per_sm: int = 0
    registers: int = 0
    smem_bytes: int = 0
    whole: bool = False
    interval: tuple[float, float] | None = None
    failure: str = ""

    @property
    def tflops(self) -> float:
        return family_of(self.design).flops(self.design) / self.time_us / 1e6

    @property
    def gigabytes_per_second(self) -> float:
        """Least bytes of the problem over the time."""
        return family_of(self.design).least_bytes(self.design) / self.time_us / 1e3

    def to_json(self) -> dict[str, Any]:
        """One entry of ``ranked[]``."""
        document: dict[str, Any] = {
            "design": as_json(self.design),
            "time_us": self.time_us,
            "cycles": self.cycles,
            "clock_mhz": self.clock_mhz,
            "tflops": self.tflops,
            "gigabytes_per_second": self.gigabytes_per_second,
            "bound_by": self.bound_by,
            "share_of_bound": self.bound_share,
            "occupancy": self.occupancy,
            "ctas_per_sm": self.ctas_per_sm,
            "registers_per_thread": self.registers,
            "smem_bytes": self.smem_bytes,
            "simulated": "whole" if self.whole else "parts",
        }
        if self.interval is not None:
            document["interval_us"] = list(self.interval)
        return document


def as_json(model: BaseModel) -> dict[str, Any]:
    """A design or problem in plain values, without what is left to defaults that depend on others."""
    return model.model_dump(mode="json", exclude_none=True)


def simulate_design(job: Job) -> Simulated:
    """Never raises what belongs to the design: a design that cannot run says why."""
    try:
        violations = check_design(job.design, job.hw)
        if violations:
            return Simulated(job.design, failure=violations[0].message)
        return _whole(job) if job.whole else _parts(job)
    except (UserError, Unsupported) as error:
        return Simulated(job.design, failure=str(error))


def _parts(job: Job) -> Simulated:
    ready, resident, registers = ready_to_build(job.design, job.hw)
    p = project_parts(ready, job.hw, resident)
    return Simulated(
        job.design, p.time_us, p.cycles, p.clock_mhz, p.bound_by, max(p.bounds.values()) / p.cycles,
        resident.occupancy, resident.ctas_per_sm, registers, family_of(job.design).resources(job.design)[2],
    )  # fmt: skip


def _whole(job: Job) -> Simulated:
    ready, resident, registers = ready_to_build(job.design, job.hw)
    trace = family_of(ready).build(ready, job.hw.identity.instruction_set)
    p = project_trace(trace, job.hw, WHOLE_BUDGET, explains=False)
    interval = getattr(p, "interval", None)
    per_cycle = p.time_us / p.cycles
    return Simulated(
        job.design, p.time_us, p.cycles, p.clock_mhz, p.bound_by, max(p.bounds.values()) / p.cycles,
        resident.occupancy, resident.ctas_per_sm, registers, trace.smem_bytes_per_cta, whole=True,
        interval=(interval["low"] * per_cycle, interval["high"] * per_cycle) if interval else None,
    )  # fmt: skip
