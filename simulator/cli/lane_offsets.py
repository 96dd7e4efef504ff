"""Lane offsets as people type them: a list of numbers, or an integer expression in ``lane``."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable

import numpy as np

from simulator.errors import UserError

LARGEST = 1 << 48
"""Offsets and intermediate values stay below this, so that no expression can take long."""

_OPERATORS: dict[type[ast.operator], tuple[str, Callable[[int, int], int]]] = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.FloorDiv: ("//", operator.floordiv),
    ast.Mod: ("%", operator.mod),
    ast.BitAnd: ("&", operator.and_),
    ast.BitOr: ("|", operator.or_),
    ast.BitXor: ("^", operator.xor),
    ast.LShift: ("<<", operator.lshift),
    ast.RShift: (">>", operator.rshift),
}
_WHAT_IS_VALID = "integers, the name lane, + - * // % & | ^ << >> and parentheses"


def parse_lanes(text: str, where: str = "--lanes") -> np.ndarray:
    """Whole numbers separated by blanks or commas, int64; UserError names the one that is not a number."""
    offsets = []
    for place, word in enumerate(text.replace(",", " ").split()):
        try:
            offset = int(word)
        except ValueError:
            raise UserError(f"{where}: entry {place} is '{word}', which is not a whole number of bytes") from None
        if abs(offset) > LARGEST:
            raise UserError(f"{where}: entry {place} is {word}, beyond the largest offset {LARGEST}")
        offsets.append(offset)
    return np.array(offsets, np.int64)


def evaluate_lanes(expression: str, n_lanes: int) -> np.ndarray:
    """Value of an integer expression in ``lane`` for every lane, int64 [n_lanes]; UserError says what is wrong."""
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise UserError(f"--expr '{expression}' is not an expression; it may use {_WHAT_IS_VALID}") from None
    try:
        values = [_value(tree.body, lane) for lane in range(n_lanes)]
    except (ValueError, ZeroDivisionError, RecursionError) as error:
        raise UserError(f"--expr '{expression}': {error}") from None
    for lane, value in enumerate(values):
        if value < 0:
            raise UserError(f"--expr '{expression}' gives {value} for lane {lane}; offsets are bytes from 0 up")
    return np.array(values, np.int64)


def _value(node: ast.expr, lane: int) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return _bounded(node.value)
    if isinstance(node, ast.Name):
        if node.id != "lane":
            raise ValueError(f"unknown name '{node.id}'; the only name is lane")
        return lane
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        value = _value(node.operand, lane)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp):
        return _combined(node, lane)
    raise ValueError(f"'{ast.unparse(node)}' is not allowed; use {_WHAT_IS_VALID}")


def _combined(node: ast.BinOp, lane: int) -> int:
    if isinstance(node.op, ast.Div):
        raise ValueError("'/' would leave the integers; write // for division")
    if type(node.op) not in _OPERATORS:
        raise ValueError(f"'{ast.unparse(node)}' is not allowed; use {_WHAT_IS_VALID}")
    symbol, apply = _OPERATORS[type(node.op)]
    left, right = _value(node.left, lane), _value(node.right, lane)
    if symbol in ("<<", ">>") and not 0 <= right < LARGEST.bit_length():
        raise ValueError(f"a shift by {right} (lane {lane}) is outside 0 to {LARGEST.bit_length() - 1}")
    if symbol in ("//", "%") and right == 0:
        raise ValueError(f"division by zero (lane {lane})")
    return _bounded(apply(left, right))


def _bounded(value: int) -> int:
    if abs(value) > LARGEST:
        raise ValueError(f"a value grows beyond {LARGEST}")
    return value
