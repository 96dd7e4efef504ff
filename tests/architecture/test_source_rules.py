"""Does the source keep the rules of the architecture that a linter cannot see?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "simulator").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
MAX_LINES = 400

CHIP_NAME = re.compile(
    r"(?<![0-9A-Za-z])(?:[PV]100|T4|A(?:10|30|40|100|800)|L4|L40S?|H(?:20|100|200|800)|B(?:100|200|300)|G[HB]200|G[AHB]10\d"
    r"|AD10\d|MI\d{3}[AX]?|RTX ?\d{4})(?![0-9A-Za-z])",
    re.IGNORECASE,
)
UNFINISHED = re.compile(r"\b(?:TODO|FIXME|XXX|NotImplementedError)\b")
ELSEWHERE = re.compile(r"(?<![\w.])/work/|(?<![\w.])/tmp/|\.\./shared")
SKIPPED = re.compile(r"mark\.skip\b|pytest\.skip\(")

ENGINE_ROOMS = ("sm", "memory")
PLAIN_INTEGERS = {-1, 0, 1, 2}


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def hits(pattern: re.Pattern[str], path: Path) -> list[str]:
    """``file:line: text`` of each line of ``path`` that matches."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [f"{name_of(path)}:{i}: {line.strip()}" for i, line in enumerate(lines, 1) if pattern.search(line)]


@pytest.mark.parametrize("path", SOURCES + TESTS, ids=name_of)
def test_is_the_file_short_enough_to_read(path: Path) -> None:
    n_lines = len(path.read_text(encoding="utf-8").splitlines())
    assert n_lines <= MAX_LINES, f"{name_of(path)} has {n_lines} lines: split it"


def test_is_every_chip_data_and_not_code() -> None:
    found = [hit for path in SOURCES for hit in hits(CHIP_NAME, path)]
    assert not found, "chip names in code:\n" + "\n".join(found)


def test_is_nothing_left_unfinished() -> None:
    found = [hit for path in SOURCES for hit in hits(UNFINISHED, path)]
    assert not found, "\n".join(found)


def test_does_no_test_look_away() -> None:
    found = [hit for path in TESTS if path != Path(__file__).resolve() for hit in hits(SKIPPED, path)]
    assert not found, "\n".join(found)


def test_does_no_file_point_outside_the_repository() -> None:
    documents = [*ROOT.glob("*.md"), *(ROOT / "simulator").rglob("*.md"), ROOT / "pyproject.toml", ROOT / "Makefile"]
    paths = [path for path in [*SOURCES, *TESTS, *documents] if path != Path(__file__).resolve()]
    found = [hit for path in paths for hit in hits(ELSEWHERE, path)]
    assert not found, "\n".join(found)


def test_does_only_the_command_line_print() -> None:
    found = [
        f"{name_of(path)}:{node.lineno}"
        for path in SOURCES
        if path.relative_to(ROOT / "simulator").parts[0] != "cli"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert not found, "print outside simulator/cli: " + ", ".join(found)


def hardware_literals(tree: ast.AST) -> Iterator[tuple[int, object]]:
    """(line, number) of each numeric literal that could be a hardware number.

    Left alone: -1, 0, 1, 2; subscripts (array axes); distances of a bit shift; the definition of an enum member.
    """
    for node in ast.walk(tree):
        for child in ast.iter_child_nodes(node):
            child.parent = node  # type: ignore[attr-defined]
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or isinstance(node.value, bool):
            continue
        if not isinstance(node.value, (int, float)) or node.value in PLAIN_INTEGERS:
            continue
        if not any(_excuses(ancestor, node) for ancestor in _ancestors(node)):
            yield node.lineno, node.value


def _ancestors(node: ast.AST) -> Iterator[ast.AST]:
    while (parent := getattr(node, "parent", None)) is not None:
        yield parent
        node = parent


def _excuses(ancestor: ast.AST, node: ast.Constant) -> bool:
    if isinstance(ancestor, ast.ClassDef):
        return any(isinstance(base, ast.Name) and base.id in {"IntEnum", "IntFlag", "Enum"} for base in ancestor.bases)
    if isinstance(ancestor, ast.BinOp) and isinstance(ancestor.op, (ast.LShift, ast.RShift)):
        return ancestor.right is node
    return isinstance(ancestor, ast.Subscript) and any(node is part for part in ast.walk(ancestor.slice))


@pytest.mark.parametrize("room", ENGINE_ROOMS)
def test_does_every_number_of_the_engine_come_from_the_chip(room: str) -> None:
    found = [
        f"{name_of(path)}:{line}: {value}"
        for path in sorted((ROOT / "simulator" / room).rglob("*.py"))
        for line, value in hardware_literals(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not found, "numbers in the engine (name them in simulator/isa or take them from the chip):\n" + "\n".join(
        found
    )


def test_does_the_literal_rule_see_a_hidden_number() -> None:
    source = "LATENCY = 23\nclass K(IntEnum):\n    A = 7\nx = table[3] + (1 << 62)\n"
    assert list(hardware_literals(ast.parse(source))) == [(1, 23)]
