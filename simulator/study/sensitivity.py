"""The tornado: each parameter a step down and a step up, and what that does to every kernel and to the suite."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from simulator.errors import UserError
from simulator.hw.config import HardwareConfig
from simulator.study.levels import number_at, override, scaled
from simulator.study.points import STEP, DesignPoint, PointMaker
from simulator.study.spec import Sensitivity

SUITE = "suite"
ALL_SECTIONS = ("sm", "shared_memory", "l1", "l2", "dram", "timing")
"""Sections whose numbers a replay can feel."""
NOT_A_QUANTITY = ("sm.warp_size", "shared_memory.bank_width_bytes", "l1.line_bytes", "l1.sector_bytes")
"""Numbers that name a unit of the instruction set or the memory, not an amount of hardware."""


def parameters_of(chip: HardwareConfig, wanted: str | Sequence[str]) -> list[str]:
    """Paths of the tornado: those that are wanted, or every number (and list of numbers) that a replay can feel."""
    if not isinstance(wanted, str):
        for path in wanted:
            number_at(chip, path)
        return list(dict.fromkeys(wanted))
    return [
        path
        for path, origin in chip.provenance.origins.items()
        if path.split(".")[0] in ALL_SECTIONS and path not in NOT_A_QUANTITY and _is_quantity(origin.value)
    ]


def steps(maker: PointMaker, sensitivity: Sensitivity) -> Iterator[DesignPoint]:
    """Two points per parameter: by -delta and by +delta (whole numbers at least by one)."""
    for path in parameters_of(maker.chip, sensitivity.parameters):
        for sign in (-1, 1):
            yield step(maker, path, 1 + sign * sensitivity.delta)


def step(maker: PointMaker, path: str, factor: float) -> DesignPoint:
    """The point with the parameter at ``path`` times ``factor``; the factor that whole numbers allow is kept."""
    value = _moved(maker.chip, path, factor)
    real = _ratio(value, number_at(maker.chip, path))
    point = DesignPoint(
        f"{maker.prefix}{path} {'-' if factor < 1 else '+'}",
        STEP,
        maker.chip.name,
        (override(path, value),),
        parameter=path,
        factor=real,
    )
    if real == 1:
        return DesignPoint(**{**vars(point), "rejected": f"{path} is {value}, which has no value next to it"})
    return maker.realise(point, is_constrained=False)


def _moved(chip: HardwareConfig, path: str, factor: float) -> Any:
    current, value = number_at(chip, path), scaled(chip, path, factor)
    if isinstance(current, int) and value == current:
        return current + (1 if factor > 1 else -1)
    return value


def _ratio(value: Any, current: Any) -> float:
    if isinstance(current, (list, tuple)):
        return float(sum(value)) / float(sum(current))
    return float(value) / float(current)


def _is_quantity(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return (bool(value) and all(_is_quantity(item) for item in value) and sum(value) > 0) or False
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0


def elasticity(low: tuple[float, float] | None, high: tuple[float, float] | None) -> float:
    """d ln t / d ln p from (factor, time over base) a step down and a step up; one side alone if the other is missing."""
    sides = [side for side in (low, high) if side is not None]
    if not sides:
        raise UserError("an elasticity needs at least one step")
    start = sides[0] if len(sides) > 1 else (1.0, 1.0)
    end = sides[-1]
    return math.log(end[1] / start[1]) / math.log(end[0] / start[0])


def tornado(points: Sequence[DesignPoint], relative: Mapping[str, Mapping[str, float]]) -> pd.DataFrame:
    """One row per parameter and kernel (and the suite): time over base a step down and up, and the elasticity.

    ``relative``: point id -> kernel or ``suite`` -> time over base. Columns parameter, kernel, factor_down, factor_up,
    time_down, time_up, elasticity, span (largest change of the time); parameters by span of the suite, largest first.
    """
    sides: dict[str, dict[bool, DesignPoint]] = {}
    for point in points:
        if point.kind == STEP and not point.rejected and point.id in relative:
            sides.setdefault(point.parameter, {})[point.factor > 1] = point
    rows = []
    for parameter, by_side in sides.items():
        for kernel in relative[next(iter(by_side.values())).id]:
            down, up = (_side(by_side.get(side), kernel, relative) for side in (False, True))
            if down is None and up is None:
                continue
            rows.append(
                {
                    "parameter": parameter,
                    "kernel": kernel,
                    "factor_down": down[0] if down else math.nan,
                    "factor_up": up[0] if up else math.nan,
                    "time_down": down[1] if down else math.nan,
                    "time_up": up[1] if up else math.nan,
                    "elasticity": elasticity(down, up),
                    "span": max(abs(side[1] - 1) for side in (down, up) if side),
                }
            )
    if not rows:
        return pd.DataFrame(
            columns=["parameter", "kernel", "factor_down", "factor_up", "time_down", "time_up", "elasticity", "span"]
        )
    frame = pd.DataFrame(rows)
    suite = frame[frame["kernel"] == SUITE].set_index("parameter")["span"]
    frame["order"] = frame["parameter"].map(suite).fillna(0.0)
    return (
        frame.sort_values(["order", "parameter"], ascending=[False, True], kind="stable")
        .drop(columns="order")
        .reset_index(drop=True)
    )


def _side(point: DesignPoint | None, kernel: str, relative: Mapping[str, Mapping[str, float]]) -> tuple[float, float] | None:
    if point is None or kernel not in relative[point.id]:
        return None
    return point.factor, relative[point.id][kernel]
