"""Is a quantity read in the unit that it was written in, exactly, and refused in a wrong one?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.errors import UserError
from simulator.units import UNITS, format_quantity, parse_quantity, to_base_unit, unit_of


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("1755MHz", "boost_hz", 1_755_000_000),
        ("1.98 GHz", "boost_hz", 1_980_000_000),
        ("228KiB", "capacity_bytes", 233_472),
        ("228 KB", "capacity_bytes", 228_000),
        ("4.8TB/s", "peak_bytes_per_second", 4_800_000_000_000),
        ("3352GB/s", "peak_bytes_per_second", 3_352_000_000_000),
        ("128 B/clk", "store_bytes_per_cycle", 128),
        ("23", "latency_cycles", 23),
        ("2.5 us", "latency_seconds", 2.5e-6),
        ("700W", "limit_watts", 700),
        ("1e3", "count", 1000),
        ("65_536", "n_registers", 65_536),
        ("-3", "count", -3),
    ],
)
def test_is_the_base_unit_exact(text: str, field: str, value: float) -> None:
    assert parse_quantity(text, field) == value
    assert type(parse_quantity(text, field)) is type(value)


@pytest.mark.parametrize(
    ("text", "field", "sentence"),
    [
        ("3GB", "boost_hz", "wrong unit for boost_hz, which takes Hz"),
        ("3GHz", "capacity_bytes", "wrong unit for capacity_bytes"),
        ("4.8TB", "peak_bytes_per_second", "wrong unit"),
        ("3 kib", "capacity_bytes", "wrong unit"),
        ("4KiB", "max_ctas", "max_ctas is a plain number"),
        ("nan", "latency_cycles", "is not a number"),
        ("inf", "latency_cycles", "is not a number"),
        ("", "latency_cycles", "is not a number"),
        ("1.2.3", "latency_cycles", "wrong unit"),
    ],
)
def test_is_a_wrong_unit_refused(text: str, field: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        parse_quantity(text, field)


def test_does_the_longest_ending_name_the_unit() -> None:
    symbols = {name: unit_of(name) for name in ("read_bytes_per_second", "data_bytes_per_cycle", "line_bytes", "count")}
    assert [unit and unit.symbol for unit in symbols.values()] == ["B/s", "B/cycle", "B", None]


@given(st.sampled_from(UNITS), st.data(), st.integers(0, 10**6))
def test_do_number_and_unit_mean_the_same_apart_as_together(unit: object, data: st.DataObject, number: int) -> None:
    spelling = data.draw(st.sampled_from(sorted(unit.factors)))  # type: ignore[attr-defined]
    field = f"x_{unit.suffix}"  # type: ignore[attr-defined]
    assert parse_quantity(f"{number}{spelling}", field) == to_base_unit(number, spelling, field)


@pytest.mark.parametrize(
    ("value", "field", "text"),
    [
        (233_472, "capacity_bytes", "228 KiB"),
        (1_980_000_000, "boost_hz", "1.98 GHz"),
        (4_800_000_000_000, "peak_bytes_per_second", "4.8 TB/s"),
        (0, "reserved_bytes", "0 B"),
        (65_536, "n_registers", "65,536"),
        (2.02, "interval_cycles", "2.02 cycles"),
    ],
)
def test_is_a_quantity_written_as_a_person_would(value: float, field: str, text: str) -> None:
    assert format_quantity(value, field) == text
