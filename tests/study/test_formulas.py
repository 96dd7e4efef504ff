"""Do formulas compute arithmetic, and nothing else?"""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.errors import UserError
from simulator.study.formula import parse_formula

VALUES = {"l2.capacity_bytes": 3e7, "sm.count": 132.0, "base.sm.count": 100.0, "cost": 2.0}


def value(text: str) -> float:
    return parse_formula(text, VALUES, "proxy").value(VALUES)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sm.count / base.sm.count", 1.32),
        ("2 * (cost + 1) ** 2 - -1", 19.0),
        ("30 * MB", 3e7),
        ("l2.capacity_bytes <= 30 * MB", 1.0),
        ("1 < cost < 2", 0.0),
    ],
)
def test_is_arithmetic_right(text: str, expected: float) -> None:
    assert value(text) == pytest.approx(expected)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "cost.__class__",
        "(1).__class__",
        "[1, 2]",
        "'a' * 3",
        "cost if cost else 1",
        "lambda: 1",
        "cost[0]",
        "True",
        "a := 1",
        "f'{cost}'",
        "cost and 1",
        "",
        "1; 2",
    ],
)
def test_is_everything_else_refused(text: str) -> None:
    with pytest.raises(UserError):
        parse_formula(text, VALUES, "proxy")


@pytest.mark.parametrize("text", ["cost / (cost - 2)", "9 ** 9 ** 9 ** 9", "1e308 * 10", "(-2) ** 0.5"])
def test_is_a_formula_without_a_value_one_sentence(text: str) -> None:
    with pytest.raises(UserError, match="value"):
        value(text)


numbers = st.floats(0.1, 100).map(lambda x: repr(round(x, 3)))
terms = st.recursive(
    numbers | st.sampled_from(["sm.count", "cost"]),
    lambda t: st.tuples(t, st.sampled_from("+-*/"), t).map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
    max_leaves=8,
)


@given(terms)
def test_does_a_formula_agree_with_the_language_it_borrows(text: str) -> None:
    plain = text.replace("sm.count", "132.0").replace("cost", "2.0")
    try:
        expected = float(eval(plain))
    except ZeroDivisionError:
        return
    if math.isfinite(expected):
        assert value(text) == pytest.approx(expected)
