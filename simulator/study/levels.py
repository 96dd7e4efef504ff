"""Values of an axis on a given chip: factors, quantities, ranges, as ``path=value`` overrides."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from simulator.errors import UserError
from simulator.hw import schema
from simulator.hw.config import HardwareConfig
from simulator.hw.leaves import base_value
from simulator.study.spec import Axis, Range, Value
from simulator.units import format_quantity

FACTOR = re.compile(r"^[x×*]\s*(?P<number>\d*\.?\d+(?:[eE][+-]?\d+)?)$")


@dataclass(frozen=True)
class Level:
    """One value of an axis: how it is called, what it sets, and its first path's value (None if that is no number)."""

    label: str
    settings: tuple[tuple[str, Any], ...]
    number: float | None

    @property
    def overrides(self) -> tuple[str, ...]:
        return tuple(override(path, value) for path, value in self.settings)


def override(path: str, value: Any) -> str:
    """``path=value`` as the loader reads it."""
    return f"{path}={json.dumps(value) if isinstance(value, list) else value}"


def number_at(chip: HardwareConfig, path: str) -> Any:
    """The chip's value at ``path``; UserError with the nearest names where there is none."""
    origin = chip.provenance.get(path)
    if origin is not None:
        return origin.value
    names = [*chip.provenance, *map(".".join, schema.leaf_paths())]
    below = [name for name in chip.provenance if name.startswith(path + ".")]
    if below:
        raise UserError(f"hardware path {path} is a section; choose one of its values: {', '.join(below)}")
    raise UserError(f"{chip.name} has no hardware path {path}{schema.did_you_mean(path, names)}")


def set_value(chip: HardwareConfig, path: str, value: Value) -> Any:
    """``value`` in the base unit of ``path``; factors apply to the chip's own value (each item of a list)."""
    current = number_at(chip, path)
    factor = FACTOR.match(value.strip()) if isinstance(value, str) else None
    if factor is not None:
        return scaled(chip, path, float(factor["number"]))
    try:
        dotted = schema.split_path(path, [tuple(path.split("."))])
        found = base_value(value, None, dotted)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
    return _whole(found, current)


def scaled(chip: HardwareConfig, path: str, factor: float) -> Any:
    """The chip's value at ``path`` times ``factor``; whole numbers stay whole."""
    current = number_at(chip, path)
    if isinstance(current, bool) or not isinstance(current, (int, float, list, tuple)):
        raise UserError(f"{path} is {current!r} on {chip.name}, which cannot be multiplied")
    if isinstance(current, (list, tuple)):
        return [_times(item, factor, is_integer(path)) for item in current]
    return _times(current, factor, is_integer(path))


def _times(current: int | float, factor: float, is_whole: bool) -> int | float:
    return _nearest(current * factor, current) if is_whole and isinstance(current, int) else current * factor


def _nearest(value: float, current: int) -> int:
    """``value`` as a whole number that divides as ``current`` does, as far as that moves it by less than one per cent."""
    finest = 1
    while current % (2 * finest) == 0 and 2 * finest * COARSEST <= abs(value):
        finest *= 2
    return finest * round(value / finest)


COARSEST = 128
"""A whole number is rounded to powers of two of at most one part in this many."""


def is_integer(path: str) -> bool:
    """Whether the schema wants whole numbers at ``path``."""
    kind = schema.kind_of(tuple(path.split(".")))
    return kind is int or kind == tuple[int, ...]


def _whole(value: Any, current: Any, is_whole: bool = True) -> Any:
    if isinstance(value, float) and is_whole and isinstance(current, int) and not isinstance(current, bool):
        return round(value)
    return value


def levels_of(axis: Axis, chip: HardwareConfig) -> list[Level]:
    """Every value of a discrete axis on ``chip``; UserError naming the axis."""
    try:
        return _levels(axis, chip)
    except UserError as error:
        raise UserError(f"axis '{axis.title}': {error}") from error


def _levels(axis: Axis, chip: HardwareConfig) -> list[Level]:
    if axis.linked:
        count = axis.n_levels or 0
        rows: Sequence[dict[str, Value]] = [{path: values[i] for path, values in axis.linked.items()} for i in range(count)]
    elif axis.values is not None:
        rows = [dict.fromkeys(axis.hardware_paths, value) for value in axis.values]
    else:
        n_steps = axis.n_levels or 0
        return [level_at(axis, chip, i / (n_steps - 1)) for i in range(n_steps)]
    found = []
    for i, row in enumerate(rows):
        settings = tuple((path, set_value(chip, path, value)) for path, value in row.items())
        found.append(_level(settings, axis.labels[i] if axis.labels else _written(row)))
    return found


def level_at(axis: Axis, chip: HardwareConfig, share: float) -> Level:
    """The value at ``share`` (0..1) of an axis: between the ends of a range, or the item of a list."""
    span = axis.range or axis.log_range
    if span is None or (axis.n_levels is not None and not _on_grid(axis, share)):
        levels = levels_of(axis, chip)
        return levels[min(int(share * len(levels)), len(levels) - 1)]
    settings = []
    for path in axis.hardware_paths:
        settings.append((path, _between(chip, path, span, share, axis.log_range is not None)))
    label = axis.labels[round(share * (len(axis.labels) - 1))] if axis.labels else None
    return _level(tuple(settings), label)


def _on_grid(axis: Axis, share: float) -> bool:
    position = share * ((axis.n_levels or 0) - 1)
    return abs(position - round(position)) < 1e-9


def _between(chip: HardwareConfig, path: str, span: Range, share: float, is_log: bool) -> Any:
    low, high = (set_value(chip, path, end) for end in (span.start, span.stop))
    if not all(isinstance(end, (int, float)) and not isinstance(end, bool) for end in (low, high)):
        raise UserError(f"{path} is no single number, so that it has no range; give values")
    if is_log and min(low, high) <= 0:
        raise UserError(f"{path}: a log_range needs ends above 0, not {low:g} to {high:g}")
    value = low * (high / low) ** share if is_log else low + (high - low) * share
    return _whole(float(f"{value:.12g}"), low if is_integer(path) else value, is_integer(path))


def _level(settings: tuple[tuple[str, Any], ...], label: str | None) -> Level:
    path, value = settings[0]
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    text = label or (format_quantity(value, path) if is_number else str(value))
    return Level(text, settings, float(value) if is_number else None)


def _written(row: dict[str, Value]) -> str | None:
    """A factor is called as it is written; other values by what they are."""
    first = next(iter(row.values()))
    return first.strip() if isinstance(first, str) and FACTOR.match(first.strip()) else None
