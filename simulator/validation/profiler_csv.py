"""What a hardware profiler measured, from its CSV: one row per launch (--page raw) or one per metric (--page details).

Lines before the header (the profiler's own messages) are skipped.  Values lose their thousands separators and come in base
units: bytes, seconds, hertz, per cent.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from simulator.errors import UserError

ID, KERNEL, METRIC, UNIT, VALUE, SECTION = "ID", "Kernel Name", "Metric Name", "Metric Unit", "Metric Value", "Section Name"
PREFIXES = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_LONG_PREFIX = {"nano": "n", "micro": "u", "milli": "m", "kilo": "k", "mega": "M", "giga": "G", "tera": "T"}
_BASES = {"byte": "byte", "bytes": "byte", "b": "byte", "second": "second", "seconds": "second", "sec": "second", "s": "second",
          "hz": "hertz", "hertz": "hertz"}  # fmt: skip
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_EUROPEAN = re.compile(r"[+-]?\d{1,3}(?:\.\d{3})+,\d+|[+-]?\d+,\d+")


@dataclass(frozen=True)
class Launch:
    """One profiled launch: metric name -> value in base units, and the unit as written."""

    id: str
    kernel: str
    values: dict[str, float] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)


def read_launches(text: str, name: str) -> list[Launch]:
    """Every launch in a profiler's CSV; UserError if ``text`` (of the file ``name``) is none."""
    rows = list(csv.reader(io.StringIO(text.lstrip("\ufeff"))))
    for n, row in enumerate(rows):
        header = [cell.strip() for cell in row]
        if KERNEL in header and (METRIC in header or len(header) > header.index(KERNEL) + 1):
            body = [r for r in rows[n + 1 :] if len(r) == len(header)]
            launches = _long(header, body) if METRIC in header else _wide(header, body)
            if launches:
                return launches
            raise UserError(f"{name} has a profiler's header but no launch below it")
    raise UserError(f"{name} is no profiler CSV: no header with '{KERNEL}'; write it with ncu --csv --page raw (or details)")


def _wide(header: Sequence[str], body: Sequence[Sequence[str]]) -> list[Launch]:
    """--page raw: a row of units, then one row per launch."""
    kernel = header.index(KERNEL)
    units = [""] * len(header)
    if body and not body[0][kernel].strip():
        units, body = list(body[0]), body[1:]
    launches = []
    for number, row in enumerate(body):
        launch = Launch(row[header.index(ID)] if ID in header else str(number), row[kernel])
        for metric, unit, cell in zip(header, units, row, strict=True):
            if metric not in (ID, KERNEL):
                _keep(launch, metric, unit, cell)
        launches.append(launch)
    return launches


def _long(header: Sequence[str], body: Sequence[Sequence[str]]) -> list[Launch]:
    """--page details: one row per metric."""
    launches: dict[tuple[str, str], Launch] = {}
    place = {name: header.index(name) for name in (ID, KERNEL, METRIC, UNIT, VALUE, SECTION) if name in header}
    if VALUE not in place:
        raise UserError(f"the profiler CSV has a column '{METRIC}' but none '{VALUE}'")
    for row in body:
        number = row[place[ID]] if ID in place else "0"
        launch = launches.setdefault((number, row[place[KERNEL]]), Launch(number, row[place[KERNEL]]))
        if row[place[METRIC]].strip():
            _keep(launch, row[place[METRIC]], row[place[UNIT]] if UNIT in place else "", row[place[VALUE]])
    return list(launches.values())


def _keep(launch: Launch, metric: str, unit: str, cell: str) -> None:
    value = parse_number(cell)
    if value is None:
        return
    factor, base = unit_factor(unit)
    key = metric.strip()
    if key in launch.values and base != launch.units[key]:
        key = f"{key} [{base}]"
    launch.values.setdefault(key, value * factor)
    launch.units.setdefault(key, base)


def parse_number(cell: str) -> float | None:
    """A number with or without thousands separators, in English or continental notation; None for a text."""
    text = cell.strip().replace("\u00a0", "").replace("\u202f", "")
    if _THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    elif _EUROPEAN.fullmatch(text):
        text = text.replace(".", "").replace(",", ".")
    try:
        value = float(text)
    except ValueError:
        return None
    return value if value == value and abs(value) != float("inf") else None


def unit_factor(unit: str) -> tuple[float, str]:
    """(factor to the base unit, base unit): "Kbyte" -> (1e3, "byte"), "us" -> (1e-6, "second"), "Gbyte/s" -> (1e9, "byte/s")."""
    text = unit.strip()
    numerator, slash, denominator = text.partition("/")
    factor, base = _scale(numerator)
    if slash and numerator == "cycle":
        per, time = _scale(denominator)
        return (1 / per, "hertz") if time == "second" else (1.0, text)
    if slash:
        per, time = _scale(denominator)
        return factor / per, f"{base}/{'s' if time == 'second' else denominator}"
    return factor, base


def _scale(unit: str) -> tuple[float, str]:
    for long, short in _LONG_PREFIX.items():
        if unit.startswith(long) and unit[len(long) :] in _BASES:
            return PREFIXES[short], _BASES[unit[len(long) :]]
    lowered = unit.lower()
    for n_letters in (0, 1):
        base = _BASES.get(lowered[n_letters:])
        prefix = unit[:n_letters]
        if base and (prefix in PREFIXES or prefix == "K"):
            return PREFIXES[prefix.replace("K", "k")], base
    return 1.0, unit
