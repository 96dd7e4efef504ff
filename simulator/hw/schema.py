"""What paths a chip's configuration can have: the shape of HardwareConfig, walked without a value in hand."""

from __future__ import annotations

import difflib
import types
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel

from simulator.hw.config import HardwareConfig

Path = tuple[str, ...]


def children(path: Sequence[str]) -> list[str] | None:
    """Field names below ``path``; an empty list where any name is possible; None where ``path`` is not a section."""
    kind = kind_of(path)
    if _is_model(kind):
        return [name for name in kind.model_fields if path or name != "name"]
    return [] if get_origin(kind) is dict else None


def kind_of(path: Sequence[str]) -> Any:
    """Python type of the field at ``path`` (Optional removed), or None where no such field exists."""
    kind: Any = HardwareConfig
    for index, name in enumerate(path):
        if _is_model(kind):
            field = kind.model_fields.get(name)
            if field is None or (index == 0 and name == "name"):
                return None
            kind = _without_none(field.annotation)
        elif get_origin(kind) is dict:
            kind = _without_none(get_args(kind)[1])
        else:
            return None
    return kind


def is_section(path: Sequence[str]) -> bool:
    """Whether ``path`` holds further fields rather than a value."""
    return children(path) is not None


def is_number(path: Sequence[str]) -> bool:
    """Whether the value at ``path`` is a number, or a list of numbers."""
    kind = kind_of(path)
    if get_origin(kind) in (tuple, list):
        kind = get_args(kind)[0]
    return kind in (int, float)


def leaf_paths(path: Path = ()) -> Iterator[Path]:
    """Every value path that the schema names (entries of open dictionaries are not known here)."""
    names = children(path)
    if names is None:
        yield path
        return
    for name in names:
        yield from leaf_paths((*path, name))


def split_path(text: str, known: Iterable[Path]) -> Path:
    """The path that ``text`` names: one of ``known`` (whose keys may hold dots themselves), else cut at its dots."""
    for path in known:
        if ".".join(path) == text:
            return path
    return tuple(text.split("."))


def did_you_mean(wrong: str, valid: Iterable[str]) -> str:
    """``; did you mean X?`` with the closest valid names, or an empty string."""
    choices = {name.lower(): name for name in valid}
    close = difflib.get_close_matches(wrong.lower(), list(choices), n=3, cutoff=0.6)
    if not close:
        tail = wrong.lower().rpartition(".")[2]
        close = [name for name in choices if name.rpartition(".")[2] == tail][:3]
    return f"; did you mean {' or '.join(choices[name] for name in close)}?" if close else ""


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _without_none(annotation: Any) -> Any:
    if get_origin(annotation) in (Union, types.UnionType):
        rest = [part for part in get_args(annotation) if part is not type(None)]
        return rest[0] if len(rest) == 1 else Any
    return annotation
