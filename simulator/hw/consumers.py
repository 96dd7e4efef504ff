"""Which source files read a configuration value, found by looking at the source itself."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_DEFINITIONS = ("hw", "cli")


def consumers(dotted: str) -> list[str]:
    """Files of the package that mention ``section.field`` of a dotted path, relative to the package, sorted.

    A textual look-up: it finds ``hw.sm.max_warps`` and ``sm.max_warps``, and not a field that is read under an alias.
    """
    section, _, field = dotted.rpartition(".")
    parent = section.rpartition(".")[2]
    pattern = re.compile(rf"\b{re.escape(parent)}\.{re.escape(field)}\b")
    return [name for name, text in _sources() if pattern.search(text)]


@lru_cache(maxsize=1)
def _sources() -> tuple[tuple[str, str], ...]:
    """(relative name, text) of every source file outside the rooms that define and show configurations."""
    files = sorted(_PACKAGE.rglob("*.py"))
    rooms = [(file.relative_to(_PACKAGE), file) for file in files]
    return tuple(
        (str(name), file.read_text(encoding="utf-8")) for name, file in rooms if name.parts[0] not in _DEFINITIONS
    )
