"""YAML files to a HardwareConfig: ``extends``, overrides, validation. Holds no number of any chip."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from simulator.data_files import data_folder
from simulator.errors import UserError
from simulator.hw import schema
from simulator.hw.catalog import chip_file, load_sources, parent_file, read_yaml
from simulator.hw.config import HardwareConfig
from simulator.hw.leaves import LeafReader, Leaves, base_value, nest
from simulator.hw.provenance import OVERRIDE_SOURCE, Origin, Provenance, Source

EXTENDS = "extends"


def load_hw(name_or_path: str | Path, overrides: Sequence[str] = ()) -> HardwareConfig:
    """Load a chip by name or from a YAML file, with ``path=value`` overrides applied in order.

    Raises UserError, naming file, path and value, for an unknown chip or path, a bare number, an unknown source,
    a wrong unit, or values that describe a machine that cannot exist.
    """
    file = chip_file(name_or_path)
    sources = load_sources(file.parent)
    leaves = _read_chip(file, sources, ())
    leaves.update(_parse_overrides(overrides, leaves))
    return _build(file.stem, _shown(file) + _and_overrides(overrides), leaves, sources)


def load_hw_with_provenance(
    name_or_path: str | Path, overrides: Sequence[str] = ()
) -> tuple[HardwareConfig, Provenance]:
    """As ``load_hw``, with the provenance beside the configuration."""
    config = load_hw(name_or_path, overrides)
    return config, config.provenance


def with_overrides(config: HardwareConfig, overrides: Sequence[str]) -> HardwareConfig:
    """A validated copy of ``config`` with ``path=value`` overrides; nothing is read from disk."""
    known = _value_paths(config)
    leaves = {schema.split_path(dotted, known): origin for dotted, origin in config.provenance.origins.items()}
    leaves.update(_parse_overrides(overrides, leaves))
    return _build(config.name, config.name + _and_overrides(overrides), leaves, config.provenance.sources)


def _read_chip(file: Path, sources: Mapping[str, Source], trail: tuple[Path, ...]) -> Leaves:
    """Leaves of ``file`` on top of those that it extends, parents in their order."""
    resolved = file.resolve()
    if resolved in trail:
        chain = " -> ".join(path.stem for path in (*trail, resolved))
        raise UserError(f"{_shown(file)}: extends itself ({chain})")
    document = read_yaml(file)
    leaves: Leaves = {}
    for parent in _parents(document.pop(EXTENDS, ()), file):
        leaves.update(_read_chip(parent_file(parent, file), sources, (*trail, resolved)))
    leaves.update(LeafReader(_shown(file), sources).read(document))
    return leaves


def _parents(entry: Any, file: Path) -> list[str]:
    parents = [entry] if isinstance(entry, str) else list(entry or ())
    if not all(isinstance(parent, str) for parent in parents):
        raise UserError(f"{_shown(file)}: extends must be the name of a family or chip, or a list of names")
    return parents


def _parse_overrides(overrides: Sequence[str], leaves: Leaves) -> Leaves:
    parsed: Leaves = {}
    for text in overrides:
        dotted, equals, value = text.partition("=")
        dotted = dotted.strip()
        if not equals or not dotted or not value.strip():
            raise UserError(f"override '{text}' must be path=value, such as sm.count=144 or clock.boost_hz=1755MHz")
        path = schema.split_path(dotted, leaves)
        _require_leaf(path, dotted, leaves)
        parsed[path] = Origin(
            value=_override_value(value.strip(), path, text),
            source=OVERRIDE_SOURCE,
            confidence="assumed",
            note=f"set to {value.strip()}",
            file=OVERRIDE_SOURCE,
        )
    return parsed


def _require_leaf(path: schema.Path, dotted: str, leaves: Leaves) -> None:
    if schema.kind_of(path) is not None and not schema.is_section(path):
        return
    known = dict.fromkeys([*map(".".join, leaves), *map(".".join, schema.leaf_paths())])
    below = [name for name in known if name.startswith(dotted + ".")]
    if below:
        raise UserError(f"override path {dotted} is a section; set one of its values: {', '.join(below)}")
    raise UserError(f"override path {dotted} is unknown{schema.did_you_mean(dotted, known)}")


def _override_value(text: str, path: schema.Path, override: str) -> Any:
    try:
        is_text = schema.is_number(path) or schema.kind_of(path) is str
        return base_value(text if is_text and not text.startswith("[") else yaml.safe_load(text), None, path)
    except (UserError, yaml.YAMLError) as error:
        raise UserError(f"override {override}: {' '.join(str(error).split())}") from error


def _build(name: str, file: str, leaves: Leaves, sources: Mapping[str, Source]) -> HardwareConfig:
    document = json.dumps({"name": name, **nest(leaves)}, allow_nan=False)
    try:
        config = HardwareConfig.model_validate_json(document, strict=True)
    except ValidationError as error:
        raise UserError(_sentence(error.errors(include_url=False), file, leaves)) from error
    origins = {".".join(path): origin for path, origin in leaves.items()}
    object.__setattr__(config, "_provenance", Provenance(origins, _named(sources, leaves.values())))
    return config


def _named(sources: Mapping[str, Source], origins: Iterable[Origin]) -> dict[str, Source]:
    used = {origin.source for origin in origins}
    return {key: source for key, source in sources.items() if key in used}


def _sentence(errors: Sequence[ErrorDetails], file: str, leaves: Leaves) -> str:
    """The first problem in one sentence: file, path, value, and what would be valid."""
    first = errors[0]
    path = tuple(str(part) for part in first["loc"])
    dotted = ".".join(path)
    origin = leaves.get(path) or leaves.get(path[:-1])
    where = origin.file if origin else file
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "missing":
        text = f"{dotted} is missing; {'.'.join(path[:-1]) or 'every chip'} needs it"
    elif first["type"] == "value_error":
        text = f"this machine cannot exist: {dotted + ': ' if dotted else ''}{message}"
    else:
        text = f"{dotted} is {json.dumps(first['input'])}, but {message[:1].lower()}{message[1:]}"
    more = f" (and {len(errors) - 1} more problems)" if len(errors) > 1 else ""
    return f"{where}: {text}{more}"


def _and_overrides(overrides: Sequence[str]) -> str:
    return f" with {', '.join(overrides)}" if overrides else ""


def _value_paths(config: HardwareConfig) -> list[schema.Path]:
    found: list[schema.Path] = []

    def walk(node: Any, path: schema.Path) -> None:
        if schema.is_section(path):
            for key, child in node.items():
                walk(child, (*path, key))
        else:
            found.append(path)

    walk(config.values(), ())
    return found


def _shown(file: Path) -> str:
    """A file's name in messages: from hw_configs on for shipped files, as the user wrote it otherwise."""
    shipped = data_folder("hw_configs").resolve()
    resolved = file.resolve()
    return str(resolved.relative_to(shipped.parent)) if resolved.is_relative_to(shipped) else str(file)
