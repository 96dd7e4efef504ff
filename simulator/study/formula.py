"""Formulas that a study file gives: arithmetic over hardware paths, evaluated by simpleeval without functions."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from simpleeval import InvalidExpression, SimpleEval

from simulator.errors import UserError
from simulator.hw.schema import did_you_mean

UNITS: dict[str, float] = {
    "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "MHz": 1e6, "GHz": 1e9,
}  # fmt: skip
"""Names that stand for a factor."""

_ALLOWED = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Constant, ast.Name, ast.Load,
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.USub, ast.UAdd, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq,
)  # fmt: skip
VALID = "a formula has numbers, hardware paths, + - * / ** ( ) and comparisons"


@dataclass(frozen=True)
class Formula:
    """A checked formula. ``text`` as written; ``code``: the same with each dotted name as one word; ``names``: word -> name."""

    text: str
    code: str
    names: Mapping[str, str]

    def value(self, values: Mapping[str, float]) -> float:
        """Its value; a comparison gives 1 or 0. UserError where it cannot be computed."""
        known = {word: values[name] if name in values else UNITS[name] for word, name in self.names.items()}
        try:
            found = float(SimpleEval(names=known, functions={}).eval(self.code))
        except (InvalidExpression, ArithmeticError, ValueError, TypeError) as error:
            raise UserError(f"formula '{self.text}' has no value here: {error}") from error
        if not math.isfinite(found):
            raise UserError(f"formula '{self.text}' has no finite value here")
        return found

    def is_comparison(self) -> bool:
        return isinstance(ast.parse(self.code, mode="eval").body, ast.Compare)


def parse_formula(text: str, known: Iterable[str], what: str) -> Formula:
    """The formula in ``text`` over the names in ``known`` and ``UNITS``; ``what`` names it in messages.

    Raises UserError for a syntax error, a call or anything beyond arithmetic, and an unknown name (nearest ones are named).
    """
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise UserError(f"{what} '{text}' is not a formula; {VALID}") from error
    names: dict[str, str] = {}
    tree = ast.fix_missing_locations(_Flatten(names).visit(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            raise UserError(f"{what} '{text}' calls a function, which is not allowed; {VALID}")
        is_number = isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool)
        if not isinstance(node, _ALLOWED) or (isinstance(node, ast.Constant) and not is_number):
            raise UserError(f"{what} '{text}' holds {ast.unparse(node) or type(node).__name__!r}, which is not allowed; {VALID}")
    valid = set(known)
    for name in names.values():
        if name not in valid and name not in UNITS:
            raise UserError(f"{what} '{text}' has the unknown name {name}{did_you_mean(name, sorted(valid | set(UNITS)))}")
    return Formula(text.strip(), ast.unparse(tree), names)


class _Flatten(ast.NodeTransformer):
    """Each dotted name becomes one word, so that nothing is ever looked up on an object."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def _word(self, dotted: str) -> ast.Name:
        word = f"value_{len(self.names)}"
        self.names[word] = dotted
        return ast.Name(word, ast.Load())

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self._word(node.id)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        parts = [node.attr]
        inner: ast.expr = node.value
        while isinstance(inner, ast.Attribute):
            parts.append(inner.attr)
            inner = inner.value
        if not isinstance(inner, ast.Name):
            return self.generic_visit(node)
        return self._word(".".join([inner.id, *reversed(parts)]))
