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
LAYOUT_FILES = {"inputs.py", "layout.py"}
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


def hardware_literals(source: str, is_layout: bool = False) -> Iterator[tuple[int, object]]:
    """(line, number) of each numeric literal that could be a hardware number.

    Left alone: -1, 0, 1, 2; array axes; distances of a bit shift; hexadecimal masks and hash constants; members of
    an enumeration (``A, B, C = range(3)``); ``NAME_SHIFT = 7`` (packing of bits); and in a file that describes the
    layout of the engine's arrays, named module constants.
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        for child in ast.iter_child_nodes(node):
            child.parent = node  # type: ignore[attr-defined]
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or isinstance(node.value, bool):
            continue
        if not isinstance(node.value, (int, float)) or node.value in PLAIN_INTEGERS:
            continue
        is_hexadecimal = (ast.get_source_segment(source, node) or "").lower().startswith("0x")
        if not is_hexadecimal and not any(_excuses(ancestor, node, is_layout) for ancestor in _ancestors(node)):
            yield node.lineno, node.value


def _ancestors(node: ast.AST) -> Iterator[ast.AST]:
    while (parent := getattr(node, "parent", None)) is not None:
        yield parent
        node = parent


def _excuses(ancestor: ast.AST, node: ast.Constant, is_layout: bool) -> bool:
    if isinstance(ancestor, ast.BinOp) and isinstance(ancestor.op, (ast.LShift, ast.RShift)):
        return ancestor.right is node
    if isinstance(ancestor, ast.Subscript):
        return any(node is part for part in ast.walk(ancestor.slice))
    if isinstance(ancestor, ast.Assign) and isinstance(getattr(ancestor, "parent", None), ast.Module):
        name = ast.unparse(ancestor.targets[0])
        return (is_layout and name.isupper()) or _is_enumeration(ancestor) or name.endswith("_SHIFT")
    return False


def _is_enumeration(assignment: ast.Assign) -> bool:
    value = assignment.value
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "range"


@pytest.mark.parametrize("room", ENGINE_ROOMS)
def test_does_every_number_of_the_engine_come_from_the_chip(room: str) -> None:
    found = [
        f"{name_of(path)}:{line}: {value}"
        for path in sorted((ROOT / "simulator" / room).rglob("*.py"))
        for line, value in hardware_literals(path.read_text(encoding="utf-8"), path.name in LAYOUT_FILES)
    ]
    assert not found, "numbers in the engine (name them in simulator/isa or take them from the chip):\n" + "\n".join(
        found
    )


def test_does_the_literal_rule_see_a_hidden_number() -> None:
    source = "LATENCY = 23\nA, B, C = range(3)\nx = table[3] + (1 << 62)\nLINE_SHIFT = 7\nMASK = 0xFF\ny = 4 * x\n"
    assert list(hardware_literals(source)) == [(1, 23), (6, 4)]
    assert list(hardware_literals(source, is_layout=True)) == [(6, 4)]
