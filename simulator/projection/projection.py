"""Projection: what kernelcast predicts of one kernel launch on one chip. The same type for every consumer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from simulator.projection.html import html_card

N_SHOWN = 5
"""Causes and stall reasons that a notebook shows."""


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

    def to_row(self) -> dict[str, Any]:
        """Plain values under the column names of a study's frame: a list of rows is a tidy pandas frame."""
        row: dict[str, Any] = {"kernel": self.kernel, "hw": self.hw, "cycles": self.cycles, "time_us": self.time_us}
        row |= {"clock_mhz": self.clock_mhz, "bound_by": self.bound_by, "waves": self.waves, "tail_fraction": self.tail_fraction}
        row |= {name: self.occupancy[name] for name in ("occupancy", "ctas_per_sm") if name in self.occupancy}
        row |= {"warp_instructions": self.warp_instructions}
        for group in ("smem", "bytes", "cycle_stack", "stalls", "bounds"):
            values: Mapping[str, float] = getattr(self, group)
            row |= {f"{group}_{name}": value for name, value in values.items()}
        return row

    def _repr_html_(self) -> str:
        """The answer, with the largest causes and waits; ``report.projection_report`` shows everything."""
        low_high = f"; interval {self.interval['low']:,.0f} to {self.interval['high']:,.0f}" if self.interval else ""
        return html_card(
            f"{self.kernel} on {self.hw}",
            f"{self.cycles:,.0f} cycles{low_high}; {self.time_us:,.1f} us at {self.clock_mhz:.0f} MHz, bound by "
            f"{self.bound_by.replace('_', ' ')}",
            {
                "where the cycles go": _largest(self.cycle_stack),
                "issue slots of resident warps": _largest(self.stalls),
                "lower bounds, of the cycles": _largest({name: value / self.cycles for name, value in self.bounds.items()}),
            },
        )


def _largest(shares: Mapping[str, float]) -> list[tuple[str, str]]:
    ordered = sorted(shares.items(), key=lambda item: -item[1])[:N_SHOWN]
    return [(name.replace("_", " "), f"{share:.1%}") for name, share in ordered if share > 0]
