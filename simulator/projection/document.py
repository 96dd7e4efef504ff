"""A projection as the JSON document that ``project --json`` writes: reading it back, and its figures by dotted key."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from simulator.errors import UserError

Document = Mapping[str, Any]
N_NEAR_NAMES = 3


def parse_document(text: str, name: str) -> dict[str, Any]:
    """The document in ``text``; ``name`` is the file's, for the error sentence."""
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise UserError(f"{name} is not JSON (line {error.lineno}: {error.msg}); give what 'project --json' wrote") from error
    if not isinstance(document, dict) or not document:
        raise UserError(f"{name} holds no JSON object; give what 'project --json' wrote")
    return document


def parse_projection(text: str, name: str) -> dict[str, Any]:
    """A document that must be a projection's."""
    document = parse_document(text, name)
    cycles = document.get("cycles")
    if not isinstance(cycles, (int, float)) or isinstance(cycles, bool) or cycles <= 0:
        raise UserError(f"{name} is no projection: it has no positive 'cycles'; give what 'project --json' wrote")
    return document


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted key, plain value) of everything in a document; list entries are numbered from 0."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from leaves(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for i, item in enumerate(value):
            yield from leaves(item, f"{path}.{i}" if path else str(i))
    else:
        yield path, value


def look_up(document: Document, key: str) -> Any:
    """The value at a dotted key, or a UserError that names the keys like it."""
    value: Any = document
    for part in key.split("."):
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, Sequence) and not isinstance(value, str) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            raise UserError(f"the result has no key '{key}'{_near(document, key)}")
    return value


def _near(document: Document, key: str) -> str:
    known = [name for name, _ in leaves(document)]
    last = key.rsplit(".", 1)[-1]
    near = difflib.get_close_matches(key, known, N_NEAR_NAMES)
    near += [name for name in known if name.rsplit(".", 1)[-1] in difflib.get_close_matches(last, [name.rsplit(".", 1)[-1]])]
    named = list(dict.fromkeys(near))[:N_NEAR_NAMES]
    if not named:
        return f"; its keys begin with {', '.join(map(str, document))}"
    return f"; did you mean {' or '.join(repr(name) for name in named)}?"
