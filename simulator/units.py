"""The only conversion code: text such as ``1755MHz`` or ``4.8TB/s`` to the base unit that a field name carries.

A field's unit is the ending of its name (``capacity_bytes``, ``boost_hz``, ``peak_bytes_per_second``).  Decimal and
binary prefixes differ as written: ``KB`` is 1000 bytes, ``KiB`` is 1024.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from simulator.errors import UserError


@dataclass(frozen=True)
class Unit:
    """A base unit: the field-name ending that carries it, its symbol, and the accepted spellings with their factors."""

    suffix: str
    symbol: str
    factors: dict[str, Fraction]


_DECIMAL = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_SMALL = {
    "": Fraction(1),
    "m": Fraction(1, 10**3),
    "u": Fraction(1, 10**6),
    "n": Fraction(1, 10**9),
    "p": Fraction(1, 10**12),
}


def _with_prefixes(symbol: str, *tables: dict[str, int] | dict[str, Fraction]) -> dict[str, Fraction]:
    return {prefix + symbol: Fraction(factor) for table in tables for prefix, factor in table.items()}


UNITS = (
    Unit("bytes_per_second", "B/s", _with_prefixes("B/s", _DECIMAL, _BINARY)),
    Unit("bytes_per_cycle", "B/cycle", {"B/cycle": Fraction(1), "B/clk": Fraction(1)}),
    Unit("bytes", "B", _with_prefixes("B", _DECIMAL, _BINARY)),
    Unit("bits", "bit", {"bit": Fraction(1), "bits": Fraction(1)}),
    Unit("cycles", "cycles", {"cycles": Fraction(1), "cycle": Fraction(1), "clk": Fraction(1)}),
    Unit("hz", "Hz", _with_prefixes("Hz", _DECIMAL)),
    Unit("seconds", "s", _with_prefixes("s", _SMALL)),
    Unit("watts", "W", _with_prefixes("W", _SMALL, _DECIMAL)),
    Unit("joules", "J", _with_prefixes("J", _SMALL)),
)
"""Every base unit, longest ending first, so that ``_bytes_per_second`` is not read as ``_second``."""

_QUANTITY = re.compile(r"^\s*(?P<number>[+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(?P<unit>[^\d\s].*?)?\s*$")


def unit_of(field_name: str) -> Unit | None:
    """Base unit of a field by the ending of its name; None for counts, ratios and names."""
    for unit in UNITS:
        if field_name == unit.suffix or field_name.endswith("_" + unit.suffix):
            return unit
    return None


def parse_quantity(text: str, field_name: str) -> int | float:
    """``text`` (a number with an optional unit) in the base unit of ``field_name``; exact where it is an integer.

    Raises UserError for text that is no number, and for a unit that the field cannot have.
    """
    match = _QUANTITY.match(text)
    if match is None:
        raise UserError(f"'{text}' is not a number{_example(field_name)}")
    number = Fraction(match["number"].replace("_", ""))
    return _exact(number * _factor(match["unit"], text, field_name))


def to_base_unit(value: int | float, unit: str, field_name: str) -> int | float:
    """``value``, given in ``unit``, in the base unit of ``field_name``.  Raises UserError for a wrong unit."""
    return _exact(Fraction(str(value)) * _factor(unit, f"{value} {unit}", field_name))


def format_quantity(value: float, field_name: str) -> str:
    """``value`` (in the field's base unit) as a person would write it: ``228 KiB``, ``1.98 GHz``, ``4.8 TB/s``."""
    unit = unit_of(field_name)
    if unit is None:
        return f"{value:,}" if isinstance(value, int) else f"{value:g}"
    binary = unit.symbol == "B"
    for spelling, factor in sorted(unit.factors.items(), key=lambda item: -item[1]):
        is_binary_prefix = "i" in spelling[:-1]
        if factor > 1 and is_binary_prefix == binary and abs(value) >= factor and not spelling.startswith("k"):
            return f"{float(value / factor):.6g} {spelling}"
    return f"{value:,g} {unit.symbol}" if isinstance(value, float) else f"{value:,} {unit.symbol}"


def _factor(unit: str | None, text: str, field_name: str) -> Fraction:
    if not unit:
        return Fraction(1)
    base = unit_of(field_name)
    if base is None:
        raise UserError(f"'{text}' has a unit, but {field_name} is a plain number")
    if unit not in base.factors:
        raise UserError(f"'{text}' has the wrong unit for {field_name}, which takes {_spellings(base)}")
    return base.factors[unit]


def _spellings(unit: Unit) -> str:
    return ", ".join(sorted(unit.factors, key=lambda spelling: unit.factors[spelling]))


def _example(field_name: str) -> str:
    unit = unit_of(field_name)
    return f"; {field_name} takes a number with an optional unit ({_spellings(unit)})" if unit else ""


def _exact(value: Fraction) -> int | float:
    return value.numerator if value.denominator == 1 else float(value)
