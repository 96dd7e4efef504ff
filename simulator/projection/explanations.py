"""What can be said beyond a projection, on request: what-if answers, advice, the hottest instructions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from simulator.hw.config import HardwareConfig
from simulator.projection.advice import Advice, Case, advise_on
from simulator.projection.annotated_code import CodeLine, annotate, hottest
from simulator.projection.projection import Projection
from simulator.projection.run import Replay
from simulator.projection.what_if import WhatIf, what_if


@dataclass(frozen=True)
class Explanations:
    """None where it was not asked for."""

    what_if: list[WhatIf] | None
    advice: list[Advice] | None
    code: list[CodeLine] | None

    def to_json(self) -> dict[str, Any]:
        """Keys of what was asked for, beside those of the projection."""
        groups = {"what_if": self.what_if, "advice": self.advice, "code": self.code}
        return {name: [asdict(item) for item in group] for name, group in groups.items() if group is not None}


def explain(
    projection: Projection,
    replay: Replay,
    hw: HardwareConfig,
    with_what_if: bool,
    with_advice: bool,
    top: int,
    lines: Mapping[int, tuple[str, int]],
) -> Explanations:
    """``top``: how many instructions to list, 0 for none; ``replay`` must have kept its profile for advice and code."""
    code = annotate(replay, hw, lines) if with_advice or top else []
    return Explanations(
        what_if=what_if(replay.trace, hw, projection.cycle_stack, projection.cycles) if with_what_if else None,
        advice=advise_on(Case(projection, replay, code, hw)) if with_advice else None,
        code=hottest(code, top) if top else None,
    )
