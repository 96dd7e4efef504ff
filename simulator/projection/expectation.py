"""Expectations of a result, such as ``cycles <= 120000; smem.bank_conflicts == 0``: parsed safely, then checked.

The grammar is a small part of Python's expressions: comparisons (also chained), ``and or not``, ``+ - * / //``, numbers,
texts, dotted keys of the result, and ``min max abs len``.  Nothing else is evaluated.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from simulator.errors import UserError
from simulator.projection.document import Document, look_up

SEPARATOR = ";"
LONGEST = 2000
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {"min": min, "max": max, "abs": abs, "len": len}


@dataclass(frozen=True)
class Check:
    """One expectation after its check; ``values``: what the result's keys in it were."""

    expression: str
    passed: bool
    values: dict[str, Any]


def check_expectations(document: Document, expectations: str) -> list[Check]:
    """Check every expectation, separated by semicolons. UserError for what is no expectation or names an unknown key."""
    texts = [text.strip() for text in expectations.split(SEPARATOR) if text.strip()]
    if not texts:
        raise UserError('no expectation given; write for example "cycles <= 120000; smem.bank_conflicts == 0"')
    return [_check(document, text) for text in texts]


def _check(document: Document, text: str) -> Check:
    if len(text) > LONGEST:
        raise UserError(f"an expectation has {len(text)} characters; {LONGEST} is the most")
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UserError(f"'{text}' is no expectation: write a comparison such as cycles <= 120000") from error
    evaluation = _Evaluation(document, text)
    outcome = evaluation.value(tree)
    if not isinstance(outcome, bool):
        raise UserError(f"'{text}' is no expectation: it is {_shown(outcome)}, not true or false; compare it with something")
    return Check(text, outcome, evaluation.values)


class _Evaluation:
    """Walks one expression; notes the keys that it reads."""

    def __init__(self, document: Document, text: str) -> None:
        self.document = document
        self.text = text
        self.values: dict[str, Any] = {}

    def value(self, node: ast.expr) -> Any:
        """The value of a node of the grammar; anything else is a UserError."""
        try:
            return self._value(node)
        except TypeError as error:
            raise UserError(f"'{self.text}' compares or combines values of different kinds ({self._known()})") from error
        except ZeroDivisionError as error:
            raise UserError(f"'{self.text}' divides by zero ({self._known()})") from error
        except (OverflowError, RecursionError) as error:
            raise UserError(f"'{self.text}' cannot be evaluated: it is too large or too deep") from error

    def _value(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float, str, bool)):
            return node.value
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            return self._key(node)
        if isinstance(node, ast.Compare):
            return self._comparison(node)
        if isinstance(node, ast.BoolOp):
            parts = [self._truth(part) for part in node.values]
            return all(parts) if isinstance(node.op, ast.And) else any(parts)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return not self._truth(node.operand)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self._value(node.operand)
        if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            return _ARITHMETIC[type(node.op)](self._number(node.left), self._number(node.right))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS and not node.keywords:
            return _FUNCTIONS[node.func.id](*[self._value(argument) for argument in node.args])
        raise UserError(
            f"'{ast.unparse(node)}' in '{self.text}' is not allowed in an expectation: use comparisons, and, or, not, "
            "+ - * / //, min, max, abs, len, numbers and keys of the result"
        )

    def _comparison(self, node: ast.Compare) -> bool:
        left = self._value(node.left)
        holds = True
        for symbol, right_node in zip(node.ops, node.comparators, strict=True):
            right = self._value(right_node)
            if type(symbol) not in _COMPARISONS:
                raise UserError(f"'{self.text}' uses a comparison other than < <= > >= == !=")
            holds = holds and bool(_COMPARISONS[type(symbol)](left, right))
            left = right
        return holds

    def _truth(self, node: ast.expr) -> bool:
        value = self._value(node)
        if not isinstance(value, bool):
            raise UserError(f"'{ast.unparse(node)}' in '{self.text}' is {_shown(value)}, not true or false")
        return value

    def _number(self, node: ast.expr) -> Any:
        value = self._value(node)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError
        return value

    def _key(self, node: ast.expr) -> Any:
        key = self._dotted(node)
        value = look_up(self.document, key)
        self.values[key] = value
        return value

    def _dotted(self, node: ast.expr) -> str:
        if isinstance(node, ast.Name):
            return node.id
        if isinstance(node, ast.Attribute):
            return f"{self._dotted(node.value)}.{node.attr}"
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            return f"{self._dotted(node.value)}.{node.slice.value!s}"
        raise UserError(f"'{ast.unparse(node)}' in '{self.text}' is no key of the result; write for example smem.wavefronts")

    def _known(self) -> str:
        return ", ".join(f"{key} is {_shown(value)}" for key, value in self.values.items()) or "no key of the result in it"


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"a group of {', '.join(map(str, value))}"
    return repr(value)
