"""How sure a comparison is: the interval of the base projection, and what the small instruction budget leaves out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Uncertainty:
    """Relative half width of a kernel's projected time. ``low``, ``high``: interval of the base projection over its cycles;
    ``kernel_class`` and ``basis``: which measured kernels it comes from, in words; ``budget``: warp instructions of each
    projection, about; ``budget_shift``: how far the full budget moves the base projection (signed fraction)."""

    low: float
    high: float
    kernel_class: str
    basis: str
    budget: int
    budget_shift: float = 0.0

    @property
    def measured_half_width(self) -> float:
        """Half the width of the interval alone."""
        return (self.high - self.low) / 2

    @property
    def half_width(self) -> float:
        return self.measured_half_width + abs(self.budget_shift)


def suite_half_width(uncertainties: Mapping[str, Uncertainty], weights: Mapping[str, float]) -> float:
    """Half width of the suite's time: the weighted mean, as errors of one model do not cancel."""
    total = sum(weights.values())
    return sum(weights[name] * uncertainties[name].half_width for name in weights) / total


def is_distinguishable(ratio: float, half_width: float) -> bool:
    """Whether a time over another one differs by more than the interval."""
    return not 1 / (1 + half_width) <= ratio <= 1 + half_width
