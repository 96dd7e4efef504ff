"""What became of one case."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.projection.projection import Projection
from simulator.validation.measured import Case


@dataclass(frozen=True)
class Outcome:
    """A ``projection`` of the case, or the ``reason`` why there is none. ``seconds``: wall clock."""

    case: Case
    projection: Projection | None
    reason: str
    seconds: float
