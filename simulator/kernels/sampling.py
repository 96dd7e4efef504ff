"""A part of a kernel's work from which the whole is extrapolated.

A CTA's time is a start, plus for each unit of work (a tile) a fixed part, plus for each step of its loop a part: three
runs of a few units and steps give all three, at the real addresses and with the real number of CTAs.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Extent:
    """``units`` of work of a CTA, one after another, and loop ``steps`` of each."""

    units: int
    steps: int


@dataclass(frozen=True)
class Sample:
    """Extents to run; the value of the whole is the weighted sum of theirs."""

    extents: tuple[Extent, ...]
    weights: tuple[float, ...]

    def extrapolate(self, values: list[float]) -> float:
        """The whole, from the value at each extent."""
        return sum(w * v for w, v in zip(self.weights, values, strict=True))


def choose_sample(whole: Extent, n_steps: int, n_units: int = 2) -> Sample:
    """``n_steps`` and twice as many steps, ``n_units`` and one more unit, where the whole is larger than that. Of short units
    more are taken, for ``2 n_steps`` in all: what they write must outgrow the caches as the whole does."""
    n_units = max(n_units, 2 * n_steps // max(1, whole.steps))
    cuts_steps = whole.steps > 3 * n_steps
    cuts_units = whole.units > n_units + 1
    steps, units = (n_steps if cuts_steps else whole.steps), (n_units if cuts_units else whole.units)
    extents = [Extent(units, steps)]
    weights = [1.0]
    if not cuts_steps and not cuts_units:
        return Sample((whole,), (1.0,))
    more_units = whole.units - units
    if cuts_units:
        extents.append(Extent(units + 1, steps))
        weights[0] -= more_units
        weights.append(float(more_units))
    if cuts_steps:
        extents.append(Extent(units, 2 * steps))
        per_step = (whole.steps - steps) * whole.units / (units * steps)
        weights[0] -= per_step
        weights.append(per_step)
    return Sample(tuple(extents), tuple(weights))
