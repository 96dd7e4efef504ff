"""Checks that a chip could exist, shared by the sections of a configuration; each raises ValueError with numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from simulator.hw.timing import Section


def numbers(tree: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Every number in nested dictionaries and lists, with its dotted path."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from numbers(value, f"{path}.{key}" if path else key)
    elif isinstance(tree, list):
        for index, value in enumerate(tree):
            yield from numbers(value, f"{path}.{index}")
    elif isinstance(tree, (int, float)) and not isinstance(tree, bool):
        yield path, tree


def require_power_of_two(section: Section, name: str) -> None:
    """``name`` must be a power of two."""
    value = getattr(section, name)
    if value & (value - 1):
        raise ValueError(f"{name} is {value}, which is not a power of two")


def require_divides(section: Section, part: str, whole: str) -> None:
    """``whole`` must be a multiple of ``part``."""
    part_value, whole_value = getattr(section, part), getattr(section, whole)
    if whole_value % part_value:
        raise ValueError(f"{whole} ({whole_value}) is not a multiple of {part} ({part_value})")


def require_not_above(section: Section, low: str, high: str) -> None:
    """``low`` must not exceed ``high``."""
    low_value, high_value = getattr(section, low), getattr(section, high)
    if low_value > high_value:
        raise ValueError(f"{low} ({low_value}) is above {high} ({high_value})")
