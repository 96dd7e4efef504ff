"""YAML of a chip to plain values and their origins: every leaf is {value, source, confidence}, plus note and unit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simulator.errors import UserError
from simulator.hw import schema
from simulator.hw.provenance import CONFIDENCES, Origin, Source
from simulator.units import parse_quantity, to_base_unit

LEAF_KEYS = ("value", "source", "confidence", "note", "unit")
_LEAF_MARKS = {"value", "source", "confidence"}
Scalar = int | float | str | bool
Value = Scalar | list[Scalar]
Leaves = dict[schema.Path, Origin]


@dataclass(frozen=True)
class LeafReader:
    """Reads the leaves of one file. ``file``: its name in messages; ``sources``: what ``_sources.yaml`` holds."""

    file: str
    sources: Mapping[str, Source]

    def read(self, node: Any, path: schema.Path = ()) -> Leaves:
        """Origins of every leaf below ``node``; raises UserError at the first that is malformed."""
        if isinstance(node, Mapping):
            if path and _LEAF_MARKS & set(node):
                return {path: self._leaf(node, path)}
            return self._section(node, path)
        if isinstance(node, list) and node and all(isinstance(item, Mapping) for item in node):
            return {path: self._list_of_leaves(node, path)}
        raise UserError(
            f"{self.file}: {_dotted(path)} is the bare value {node!r}; "
            f"write {{value: {node!r}, source: <key of _sources.yaml>, confidence: {' | '.join(CONFIDENCES)}}}"
        )

    def _section(self, node: Mapping[Any, Any], path: schema.Path) -> Leaves:
        valid = schema.children(path)
        leaves: Leaves = {}
        for key, child in node.items():
            name = str(key)
            if valid is None:
                raise UserError(f"{self.file}: {_dotted(path)} is a single value and has no key '{name}'")
            if valid and name not in valid:
                where = f"section {_dotted(path)}" if path else "a chip"
                hint = schema.did_you_mean(name, valid)
                raise UserError(f"{self.file}: {_dotted((*path, name))} is unknown in {where}{hint or _listed(valid)}")
            leaves.update(self.read(child, (*path, name)))
        return leaves

    def _leaf(self, node: Mapping[Any, Any], path: schema.Path) -> Origin:
        dotted = _dotted(path)
        for key in node:
            if key not in LEAF_KEYS:
                hint = schema.did_you_mean(str(key), LEAF_KEYS)
                raise UserError(f"{self.file}: {dotted} has the unknown key '{key}'{hint or _listed(LEAF_KEYS)}")
        for key in ("value", "source", "confidence"):
            if node.get(key) is None:
                raise UserError(f"{self.file}: {dotted} lacks its {key}; a value is {{value, source, confidence}}")
        if schema.is_section(path):
            raise UserError(f"{self.file}: {dotted} is a section, not a value{_listed(schema.children(path) or ())}")
        return Origin(
            value=self._in_base_unit(node["value"], node.get("unit"), path),
            source=self._source(node["source"], dotted),
            confidence=self._confidence(node["confidence"], dotted),
            note=str(node.get("note") or ""),
            file=self.file,
        )

    def _list_of_leaves(self, nodes: Sequence[Any], path: schema.Path) -> Origin:
        """One origin for a list whose items each have their own; the weakest item speaks for the list."""
        items = [self._leaf(node, path) for node in nodes]
        weakest = max(items, key=lambda item: CONFIDENCES.index(item.confidence))
        notes = "; ".join(dict.fromkeys(item.note for item in items if item.note))
        return Origin([item.value for item in items], weakest.source, weakest.confidence, notes, self.file)

    def _source(self, key: Any, dotted: str) -> str:
        if key not in self.sources:
            hint = schema.did_you_mean(str(key), self.sources)
            raise UserError(f"{self.file}: {dotted} names the source '{key}', which _sources.yaml does not have{hint}")
        return str(key)

    def _confidence(self, word: Any, dotted: str) -> Any:
        if word not in CONFIDENCES:
            raise UserError(
                f"{self.file}: {dotted} has confidence '{word}'; it must be one of {', '.join(CONFIDENCES)}"
            )
        return word

    def _in_base_unit(self, value: Any, unit: Any, path: schema.Path) -> Value:
        try:
            return base_value(value, None if unit is None else str(unit), path)
        except UserError as error:
            raise UserError(f"{self.file}: {_dotted(path)}: {error}") from error


def base_value(value: Any, unit: str | None, path: schema.Path) -> Value:
    """A YAML scalar or list in the base unit of the field at ``path``; raises UserError (without the file's name)."""
    if isinstance(value, list):
        return [_base_scalar(item, unit, path) for item in value]
    return _base_scalar(value, unit, path)


def _base_scalar(value: Any, unit: str | None, path: schema.Path) -> Scalar:
    name = path[-1]
    if isinstance(value, bool):
        if schema.is_number(path):
            raise UserError(f"{value} is not a number")
        return value
    if isinstance(value, (int, float)):
        if not math.isfinite(value):
            raise UserError(f"{value} is not a finite number")
        return to_base_unit(value, unit, name) if unit else value
    if not isinstance(value, str):
        raise UserError(f"{value!r} is neither a number nor text")
    if schema.is_number(path):
        return parse_quantity(f"{value} {unit}" if unit else value, name)
    if unit:
        raise UserError(f"the text '{value}' cannot have a unit")
    return value


def nest(leaves: Leaves) -> dict[str, Any]:
    """Plain values as nested dictionaries."""
    tree: dict[str, Any] = {}
    for path, origin in leaves.items():
        node = tree
        for name in path[:-1]:
            node = node.setdefault(name, {})
        node[path[-1]] = origin.value
    return tree


def _dotted(path: Sequence[str]) -> str:
    return ".".join(path) or "the file"


def _listed(names: Sequence[str]) -> str:
    return f"; valid: {', '.join(names)}"
