"""Answers kept in a file: compared leaf by leaf, and written anew with --update-golden, which says what changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from simulator.projection.document import leaves

FOLDER = Path(__file__).parent
DIGITS = 9
"""Significant digits: below them, compilers of another machine may round another way."""


def rounded(value: Any) -> Any:
    """``value`` in JSON's types, floats to DIGITS significant digits."""
    if isinstance(value, dict):
        return {str(key): rounded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(item) for item in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def differences(old: Any, new: Any) -> list[str]:
    """One line for each leaf that differs: key, old, new, and the change in per cent of a number."""
    before, after = dict(leaves(old)), dict(leaves(new))
    lines = []
    for key in dict.fromkeys([*before, *after]):
        a, b = before.get(key), after.get(key)
        if a != b:
            is_number = all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in (a, b))
            change = f" ({100 * (b / a - 1):+.2f} %)" if is_number and a else ""
            lines.append(f"{key}: {a} -> {b}{change}")
    return lines


def compare(name: str, answers: Any, config: pytest.Config) -> None:
    """``answers`` must be those of the file ``name``; with --update-golden they become so."""
    path = FOLDER / name
    new = rounded(answers)
    old = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    lines = differences(old, new)
    if lines and config.getoption("--update-golden"):
        path.write_text(json.dumps(new, indent=1) + "\n", encoding="utf-8")
        say(config, [f"{name}:", *lines])
    else:
        assert not lines, f"{name} (--update-golden if that is meant):\n" + "\n".join(lines)


def say(config: pytest.Config, lines: list[str]) -> None:
    """Print ``lines`` whatever pytest captures."""
    capture = config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        print("\n" + "\n".join(lines))
