"""What the tests of every family ask of a design that breaks a limit."""

from __future__ import annotations

from pydantic import BaseModel

from simulator.hw.config import HardwareConfig
from simulator.kernels.legality import nearest_legal
from simulator.projection.tile_card import check_design


def nearest_to_broken(one: BaseModel, hw: HardwareConfig, rule: str, value: object, limit: object) -> BaseModel | None:
    """The nearest legal design of ``one``, after its violation of ``rule`` named ``value`` and ``limit``."""
    violation = next(v for v in check_design(one, hw) if v.rule == rule)
    assert (violation.value, violation.limit) == (value, limit)
    shown = f"{value:,}" if isinstance(value, int) else str(value)
    assert shown in violation.message or str(value) in violation.message
    return nearest_legal(one, hw, check_design)
