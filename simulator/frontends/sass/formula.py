"""Element formulas of buffer contents, such as ``(hsh(i+3)>>8)*2^-24``: parsed and applied, never evaluated as code.

Grammar, lowest precedence first: ``&``; ``<< >>``; ``+ -``; ``* / mod``; sign; ``^`` (power); a number directly before
a name or a parenthesis multiplies. Names are the caller's variables; functions are a fixed list.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import numpy as np

Value = np.ndarray
Node = Callable[[Mapping[str, Value]], Value]

_TOKEN = re.compile(r"\s*(?:(\d+\.?\d*(?:e[-+]?\d+)?)|([A-Za-z_]\w*)|(<<|>>|[-+*/^&(),]))")


class FormulaError(ValueError):
    """Text outside the grammar, or a name that is not defined."""


def hash32(x: Value) -> Value:
    """The 32-bit mixing hash of the measured inputs: x^=x>>16; x*=0x7feb352d; x^=x>>15; x*=0x846ca68b; x^=x>>16.
    Takes and returns integers, the argument modulo 2^32."""
    word = np.uint64(0xFFFFFFFF)
    h = np.asarray(x).astype(np.int64).astype(np.uint64) & word
    h ^= h >> np.uint64(16)
    h = h * np.uint64(0x7FEB352D) & word
    h ^= h >> np.uint64(15)
    h = h * np.uint64(0x846CA68B) & word
    h ^= h >> np.uint64(16)
    return h.astype(np.int64)


_FUNCTIONS: dict[str, Callable[..., Value]] = {
    "hsh": hash32,
    "sqrt": np.sqrt,
    "ln": np.log,
    "exp": np.exp,
    "cos": np.cos,
    "sin": np.sin,
    "max": np.maximum,
    "min": np.minimum,
    "floor": np.floor,
    "abs": np.abs,
}
_BINARY: tuple[dict[str, Callable[[Value, Value], Value]], ...] = (
    {"&": np.bitwise_and},
    {"<<": np.left_shift, ">>": np.right_shift},
    {"+": np.add, "-": np.subtract},
    {"*": np.multiply, "/": np.true_divide, "mod": np.mod},
)


def parse_formula(text: str) -> Node:
    """A function from variables (name -> int64 or float64 array) to the value. FormulaError outside the grammar."""
    parser = _Parser(_tokens(text))
    node = parser.binary(0)
    if parser.peek():
        raise FormulaError(f"'{parser.peek()}' is left over in '{text}'")
    return node


def _tokens(text: str) -> list[str]:
    tokens, at = [], 0
    text = text.strip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise FormulaError(f"'{text[at:at + 10]}' is not part of a formula")
        tokens.append(found[0].strip())
        at = found.end()
    return tokens


class _Parser:
    """Recursive descent over a token list."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, expected: str = "") -> str:
        token = self.peek()
        if not token or (expected and token != expected):
            raise FormulaError(f"'{expected or 'a value'}' expected at '{token or 'the end'}'")
        self.at += 1
        return token

    def binary(self, level: int) -> Node:
        if level == len(_BINARY):
            return self.unary()
        node = self.binary(level + 1)
        while self.peek() in _BINARY[level]:
            node = _apply(_BINARY[level][self.take()], node, self.binary(level + 1))
        return node

    def unary(self) -> Node:
        if self.peek() == "-":
            self.take()
            return _apply(np.negative, self.unary())
        node = self.atom()
        if self.peek() == "^":
            self.take()
            return _apply(_power, node, self.unary())
        return node

    def atom(self) -> Node:
        token = self.take()
        if token == "(":
            node = self.binary(0)
            self.take(")")
            return node
        if token[0].isdigit():
            number = np.asarray(float(token) if re.search(r"[.e]", token) else int(token))
            constant: Node = lambda variables: number  # noqa: E731
            following = self.peek()
            multiplies = following == "(" or (following[:1].isalpha() and following != "mod")
            return _apply(np.multiply, constant, self.unary()) if multiplies else constant
        if token in _FUNCTIONS:
            return self.call(_FUNCTIONS[token])
        if token == "pi":
            return lambda variables: np.asarray(np.pi)
        if token[0].isalpha():
            return lambda variables: _variable(variables, token)
        raise FormulaError(f"a value is expected at '{token}'")

    def call(self, function: Callable[..., Value]) -> Node:
        self.take("(")
        arguments = [self.binary(0)]
        while self.peek() == ",":
            self.take()
            arguments.append(self.binary(0))
        self.take(")")
        return _apply(function, *arguments)


def _apply(function: Callable[..., Value], *nodes: Node) -> Node:
    return lambda variables: function(*(node(variables) for node in nodes))


def _power(base: Value, exponent: Value) -> Value:
    whole = base.dtype.kind == "i" and exponent.dtype.kind == "i" and bool(np.all(exponent >= 0))
    power: Value = np.power(base if whole else base.astype(np.float64), exponent)
    return power


def _variable(variables: Mapping[str, Value], name: str) -> Value:
    if name not in variables:
        raise FormulaError(f"'{name}' is not defined")
    return variables[name]
