"""Projection: what kernelcast predicts of one kernel launch on one chip. The same type for every consumer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Projection:
    """Field names are the JSON contract. ``cycles``: SM cycles of the launch including launch latency (the
    counterpart of the measured sm__cycles_elapsed.max); ``time_us`` = cycles / clock.

    ``bounds``: lower bounds in cycles by name (issue, tensor, shared_memory, l2, dram, ...), never above ``cycles``.
    ``stalls``: issue slots by reason as fractions of all warp-resident issue slots; they sum to 1.
    ``cycle_stack``: shares of ``cycles`` by cause, they sum to 1; ``attribution``: the same exactly, in ticks, and cut by warp
    role and phase; ``diagnosis``: what bounds the kernel, in words, and what outside the kernel does.
    ``interval``: ``low`` and ``high`` in cycles, between which four of five measured kernels of this class lie, and what that
    rests on (``basis``, in words); empty where nothing was measured.
    ``counters``: further predicted hardware counters under the name of their measured column.
    """

    kernel: str
    hw: str
    hw_digest: str
    cycles: float
    time_us: float
    clock_mhz: float
    bound_by: str
    bounds: dict[str, float]
    occupancy: dict[str, Any]
    waves: float
    tail_fraction: float
    warp_instructions: int
    smem: dict[str, int]
    bytes: dict[str, int]
    stalls: dict[str, float]
    weakest_inputs: list[dict[str, Any]]
    simulated: dict[str, float]
    counters: dict[str, float] = field(default_factory=dict)
    interval: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    cycle_stack: dict[str, float] = field(default_factory=dict)
    attribution: dict[str, Any] = field(default_factory=dict)
    diagnosis: dict[str, list[str]] = field(default_factory=dict)
