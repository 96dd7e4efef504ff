"""A database as tables (CSV, JSON) and as dispatch tables for a kernel library (Python, C++).

Dispatch tables stand alone. They answer as ``simulator.tuning.query`` does: exact shape, else the nearest whose envelope
holds, else the fallback of the nearest; the first row of equally near ones.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from simulator.errors import UserError
from simulator.tuning.database import Entry

SUFFIXES = (".csv", ".json", ".py", ".h")

Row = dict[str, Any]


def export(entries: Sequence[Entry], path: Path) -> str:
    """The text of ``path``, by its suffix. UserError for another suffix, or designs that the table cannot hold."""
    writers = {".csv": _csv, ".json": _json, ".py": _python, ".h": _header}
    if path.suffix not in writers:
        raise UserError(f"--export {path}: the suffix says what is written; it is one of {', '.join(SUFFIXES)}")
    return writers[path.suffix](entries)


def flat(design: dict[str, Any], extents: Sequence[str]) -> Row:
    """A design without its problem's extents, sections as ``tile_m``."""
    found: Row = {}
    for name, value in design.items():
        if isinstance(value, dict):
            found |= {f"{name}_{inner}": number for inner, number in value.items()}
        elif name not in extents and name not in ("kind", "dtype"):
            found[name] = value
    return found


def _csv(entries: Sequence[Entry]) -> str:
    rows = [
        {
            "chip": entry.chip, "simulator": entry.version, "family": entry.family, "dtype": entry.dtype, **entry.shape,
            "time_us": entry.time_us, "tflops": entry.document["ranked"][0]["tflops"],
            "bound_by": entry.document["ranked"][0]["bound_by"],
            **{f"design_{name}": value for name, value in flat(entry.design, list(entry.shape)).items()},
            **{f"low_{name}": value for name, value in entry.envelope["low"].items()},
            **{f"high_{name}": value for name, value in entry.envelope["high"].items()},
            **{f"multiple_{name}": value for name, value in entry.envelope["multiples"].items()},
            "envelope_loss": entry.envelope["loss"],
            **{f"fallback_{name}": value for name, value in flat(entry.fallback["design"], list(entry.shape)).items()},
        }
        for entry in entries
    ]  # fmt: skip
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _json(entries: Sequence[Entry]) -> str:
    rows = [
        {
            "chip": entry.chip, "chip_digest": entry.chip_digest, "simulator": entry.version, "family": entry.family,
            "dtype": entry.dtype, "shape": entry.shape, "time_us": entry.time_us, **entry.document,
            "envelope": entry.envelope, "fallback": entry.fallback,
        }
        for entry in entries
    ]  # fmt: skip
    return json.dumps({"designs": rows}, indent=2) + "\n"


def _tables(entries: Sequence[Entry]) -> dict[str, list[Row]]:
    """By family, in order: extents of the shape, envelope, design and fallback of every row."""
    tables: dict[str, list[Row]] = {}
    for entry in entries:
        names = list(entry.shape)
        tables.setdefault(entry.family, []).append(
            {
                "dtype": entry.dtype,
                "shape": list(entry.shape.values()),
                "low": [entry.envelope["low"][n] for n in names],
                "high": [entry.envelope["high"][n] for n in names],
                "multiples": [entry.envelope["multiples"][n] for n in names],
                "design": flat(entry.design, names),
                "fallback_multiples": [entry.fallback["multiples"][n] for n in names],
                "fallback": flat(entry.fallback["design"], names),
                "extents": names,
            }
        )
    return tables


def _origin(entries: Sequence[Entry]) -> str:
    first = entries[0]
    return f"Designs for {first.chip} ({first.chip_digest[:12]}), tuned by kernelcast {first.version}."


PYTHON = '''"""{origin}

{functions} give (where from, design): "exact" (tuned for this shape), "envelope" (tuned nearby, still close
to the best), "fallback" (a design that does everywhere), or None where no design can do the shape. dtype: with the
options that are not as usual, as in "bf16 bias=true activation=gelu".
"""


def _distance(a, b):
    found = 1.0
    for x, y in zip(a, b):
        found *= max(x, y) / min(x, y)
    return found


def _fits(shape, multiples):
    return all(x % n == 0 for x, n in zip(shape, multiples))


def _lookup(rows, shape, dtype):
    rows = [row for row in rows if row["dtype"] == dtype]
    nearest = sorted(rows, key=lambda row: _distance(shape, row["shape"]))
    for row in nearest:
        if row["shape"] == shape:
            return "exact", row["design"]
    for row in nearest:
        if all(a <= x <= b for a, x, b in zip(row["low"], shape, row["high"])) and _fits(shape, row["multiples"]):
            return "envelope", row["design"]
    for row in nearest:
        if _fits(shape, row["fallback_multiples"]):
            return "fallback", row["fallback"]
    return None
'''


def _python(entries: Sequence[Entry]) -> str:
    tables = _tables(entries)
    parts = [PYTHON.format(origin=_origin(entries), functions=", ".join(f"{family}()" for family in tables))]
    for family, rows in tables.items():
        extents = rows[0]["extents"]
        lines = [f"    {({k: v for k, v in row.items() if k != 'extents'})!r}," for row in rows]
        parts.append(
            f"\n\ndef {family}({', '.join(extents)}, dtype):\n"
            f"    return _lookup(_{family.upper()}, [{', '.join(extents)}], dtype)\n"
            f"\n\n_{family.upper()} = [\n" + "\n".join(lines) + "\n]\n"
        )
    return "".join(parts)


HEADER = """// {origin}
//
// <family>_design(extents..., dtype) gives where the design comes from and the design: Exact (tuned for this shape),
// Envelope (tuned nearby, still close to the best), Fallback (a design that does everywhere), Nothing where no design can do
// the shape. dtype: with the options that are not as usual, as in "bf16 bias=true activation=gelu". C++11, no dependencies.
#pragma once

#include <cstddef>
#include <cstring>
#include <initializer_list>

namespace kernelcast {{

enum class From {{ Nothing, Exact, Envelope, Fallback }};

namespace detail {{

template <std::size_t N>
double distance(const long long (&a)[N], const long long (&b)[N]) {{
  double found = 1.0;
  for (std::size_t i = 0; i < N; ++i)
    found *= a[i] > b[i] ? double(a[i]) / double(b[i]) : double(b[i]) / double(a[i]);
  return found;
}}

template <std::size_t N>
bool fits(const long long (&shape)[N], const long long (&multiples)[N]) {{
  for (std::size_t i = 0; i < N; ++i)
    if (shape[i] % multiples[i] != 0) return false;
  return true;
}}

template <typename Row, std::size_t N>
bool answers(From from, const Row& row, const long long (&shape)[N]) {{
  if (from == From::Fallback) return fits(shape, row.fallback_multiples);
  for (std::size_t i = 0; i < N; ++i) {{
    if (from == From::Exact && shape[i] != row.shape[i]) return false;
    if (from == From::Envelope && (shape[i] < row.low[i] || shape[i] > row.high[i])) return false;
  }}
  return from == From::Exact || fits(shape, row.multiples);
}}

template <typename Row, std::size_t Rows, std::size_t N>
const Row* nearest(From from, const Row (&rows)[Rows], const long long (&shape)[N], const char* dtype) {{
  const Row* best = nullptr;
  double least = 0.0;
  for (const Row& row : rows) {{
    if (std::strcmp(row.dtype, dtype) != 0 || !answers(from, row, shape)) continue;
    double here = distance(shape, row.shape);
    if (best == nullptr || here < least) {{
      best = &row;
      least = here;
    }}
  }}
  return best;
}}

}}  // namespace detail
{families}
}}  // namespace kernelcast
"""

FAMILY = """
struct {Family}Design {{
{fields}
}};

struct {Family}Answer {{
  From from;
  const {Family}Design* design;  // nullptr with From::Nothing
}};

namespace detail {{

struct {Family}Row {{
  const char* dtype;
  long long shape[{n}], low[{n}], high[{n}], multiples[{n}];
  {Family}Design design;
  long long fallback_multiples[{n}];
  {Family}Design fallback;
}};

static const {Family}Row {family}_rows[] = {{
{rows}
}};

}}  // namespace detail

inline {Family}Answer {family}_design({parameters}, const char* dtype) {{
  const long long shape[] = {{{extents}}};
  for (From from : {{From::Exact, From::Envelope, From::Fallback}}) {{
    const detail::{Family}Row* row = detail::nearest(from, detail::{family}_rows, shape, dtype);
    if (row != nullptr) return {{from, from == From::Fallback ? &row->fallback : &row->design}};
  }}
  return {{From::Nothing, nullptr}};
}}
"""


def _header(entries: Sequence[Entry]) -> str:
    families = "".join(_header_family(family, rows) for family, rows in _tables(entries).items())
    return HEADER.format(origin=_origin(entries), families=families)


def _header_family(family: str, rows: list[Row]) -> str:
    extents = rows[0]["extents"]
    fields: dict[str, type] = {}
    for row in rows:
        for design in (row["design"], row["fallback"]):
            fields |= {name: type(value) for name, value in design.items()}
    lines = [
        f'    {{"{row["dtype"]}", {", ".join(_array(row[name]) for name in ("shape", "low", "high", "multiples"))},\n'
        f"     {_design(row['design'], fields)},\n"
        f"     {_array(row['fallback_multiples'])}, {_design(row['fallback'], fields)}}},"
        for row in rows
    ]
    return FAMILY.format(
        family=family,
        Family="".join(part.capitalize() for part in family.split("_")),
        fields="\n".join(f"  {C_TYPES[kind]} {name};" for name, kind in fields.items()),
        n=len(extents),
        rows="\n".join(lines),
        parameters=", ".join(f"long long {name}" for name in extents),
        extents=", ".join(extents),
    )


C_TYPES = {bool: "bool", int: "long long", str: "const char*", float: "double"}


def _array(values: Sequence[int]) -> str:
    return "{" + ", ".join(map(str, values)) + "}"


def _design(design: Row, fields: dict[str, type]) -> str:
    """Fields that a design leaves open are 0 or empty."""
    return "{" + ", ".join(_literal(design.get(name, kind())) for name, kind in fields.items()) + "}"


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value)
