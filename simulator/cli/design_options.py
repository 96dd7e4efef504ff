"""Designs from the command line: ``--field value`` for every field of a family's model."""

from __future__ import annotations

import types
import typing
from collections.abc import Sequence
from typing import Any

import yaml
from pydantic import BaseModel

from simulator.errors import UserError
from simulator.kernels.families import FAMILIES, parse_design

PAIR = 2
"""Extents along the height and width of an image."""


def design_from_options(kind: str, options: Sequence[str]) -> BaseModel:
    """A design of family ``kind`` from ``--field value``, ``--field=value`` or a bare ``--flag``; extents of a tile are
    written 128x256x64. UserError names what is not known."""
    return parse_design(values_from_options(FAMILIES[kind].model, f"tile {kind}", kind, options), f"tile {kind}")


def values_from_options(model: type[BaseModel], where: str, kind: str, options: Sequence[str]) -> dict[str, Any]:
    """Plain values for ``model`` of family ``kind``, not yet checked; ``where`` names the command in messages."""
    values: dict[str, Any] = {"kind": kind}
    rest = list(options)
    while rest:
        option = rest.pop(0)
        if not option.startswith("--"):
            raise UserError(f"{where}: '{option}' is not an option; options: {_options(model)}")
        name, has_value, value = option[2:].partition("=")
        field = name.replace("-", "_")
        if field not in model.model_fields or field == "kind":
            raise UserError(f"{where}: option '--{name}' is not known; options: {_options(model)}")
        if not has_value:
            value = "true" if not rest or rest[0].startswith("--") else rest.pop(0)
        values[field] = _value(model, where, field, value)
    return values


def _options(model: type[BaseModel]) -> str:
    return ", ".join("--" + name.replace("_", "-") for name in model.model_fields if name != "kind")


def _value(model: type[BaseModel], where: str, field: str, text: str) -> Any:
    inner = _section(model.model_fields[field].annotation)
    if inner is None:
        return yaml.safe_load(text)
    names = list(inner.model_fields)
    parts = text.lower().split("x")
    if len(parts) == 1 and len(names) == PAIR:  # 3 stands for 3x3
        parts *= PAIR
    if len(parts) != len(names) or not all(part.lstrip("-").isdigit() for part in parts):
        example = "x".join(name.upper() for name in names)
        raise UserError(
            f"{where}: --{field.replace('_', '-')} is '{text}'; it is {len(names)} integers, {example}, as in 128x256x64"
        )
    return dict(zip(names, (int(part) for part in parts), strict=True))


def _section(annotation: Any) -> type[BaseModel] | None:
    """The model in a field's type, if it is one (or one or None)."""
    choices = (
        typing.get_args(annotation) if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) else (annotation,)
    )
    return next((c for c in choices if isinstance(c, type) and issubclass(c, BaseModel)), None)
