"""How sure a projection is: where four of five measured kernels of its class lie, relative to what was projected.

The quantiles come from ``projections/validation/<chip>/intervals.yaml``, which ``kernelcast validate --publish`` writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from simulator.data_files import data_folder
from simulator.errors import UserError
from simulator.hw.config import HardwareConfig
from simulator.hw.provenance import OVERRIDE_SOURCE

TENSOR, MEMORY, OTHER, ALL = "tensor", "memory", "other", "all"
MEMORY_BOUNDS, CORE_BOUNDS = ("l2", "dram"), ("issue", "shared_memory")
SPOKEN = {OTHER: "kernels bound by issue or shared memory", ALL: "kernels of every class"}
KERNEL, DESIGN = "kernel", "design"
"""What was projected: a compiled kernel, or a generated design that stands for one."""

QUANTILES = (0.1, 0.9)
SHARE = QUANTILES[1] - QUANTILES[0]
FEWEST_CASES = 10
"""A class and duration with fewer measured kernels has no interval of its own."""
DURATION_EDGES_US = (15.0, 50.0, 300.0)
"""Where short kernels (launch and latency bound), middle ones and long ones (throughput bound) part."""
WIDENING = 2
"""Exponent for chips that were never measured: their own numbers are taken to be as uncertain as the model."""
TABLE = "intervals.yaml"


@dataclass(frozen=True)
class Spread:
    """``low``, ``high``: QUANTILES of measured over projected cycles of ``n`` kernels of a class and a duration."""

    of: str
    kernel_class: str
    duration: str
    n: int
    low: float
    high: float


def kernel_class(bounds: Mapping[str, float]) -> str:
    """What kind of kernel a projection with these lower bounds (cycles by resource) is of: one that uses tensor cores, one
    that moves data for longer than its SMs work, or another."""
    if bounds.get("tensor", 0.0) > 0:
        return TENSOR
    moving, working = (max(bounds.get(name, 0.0) for name in names) for names in (MEMORY_BOUNDS, CORE_BOUNDS))
    return MEMORY if moving >= working else OTHER


def duration_bucket(time_us: float) -> str:
    """The name of the duration class of a kernel that takes ``time_us``."""
    low = 0.0
    for edge in DURATION_EDGES_US:
        if time_us < edge:
            return f"{low:g}-{edge:g} us" if low else f"< {edge:g} us"
        low = edge
    return f"> {low:g} us"


def duration_buckets() -> list[str]:
    """Every duration class, short ones first."""
    return [duration_bucket(edge - 1) for edge in DURATION_EDGES_US] + [duration_bucket(DURATION_EDGES_US[-1])]


def interval_of(
    cycles: float, time_us: float, bounds: Mapping[str, float], hw: HardwareConfig, of: str = KERNEL
) -> dict[str, Any]:
    """``low`` and ``high`` in cycles, and what they rest on in words (``basis``); empty where no chip was ever measured.

    A chip that was never measured, or whose values were changed, gets WIDENING times the widest interval of any class (on
    a logarithmic scale).
    """
    tables = measured_spreads()
    if not tables:
        return {}
    kind, duration = kernel_class(bounds), duration_bucket(time_us)
    if hw.name in tables and not is_changed(hw):
        spread = choose(tables[hw.name], kind, duration, of)
        low, high, basis = spread.low, spread.high, _measured(spread, hw.name)
    else:
        low = min(row.low for rows in tables.values() for row in rows) ** WIDENING
        high = max(row.high for rows in tables.values() for row in rows) ** WIDENING
        spread = None
        what = f"this {hw.name} has changed values and" if hw.name in tables else hw.name
        basis = f"{what} was never measured: twice as wide as for any kernel class of {' and '.join(tables)}"
    return {
        "low": min(low, 1.0) * cycles,
        "high": max(high, 1.0) * cycles,
        "share": round(SHARE, 2),
        "kernel_class": kind,
        "duration": duration,
        "n": spread.n if spread else 0,
        "basis": basis,
    }


def is_changed(hw: HardwareConfig) -> bool:
    """Whether values of the chip were set by hand, so that it is another chip than the one of its name."""
    return any(origin.source == OVERRIDE_SOURCE for origin in hw.provenance.origins.values())


def choose(rows: Sequence[Spread], kind: str, duration: str, of: str = KERNEL) -> Spread:
    """The narrowest group with FEWEST_CASES that a projection belongs to: class and duration, class, all."""
    wanted = [(of, kind, duration), (of, kind, ALL), (of, ALL, ALL), (KERNEL, ALL, ALL)]
    known = {(row.of, row.kernel_class, row.duration): row for row in rows if row.n >= FEWEST_CASES}
    found = [known[key] for key in wanted if key in known]
    return found[0] if found else max(rows, key=lambda row: row.n)


@cache
def measured_spreads() -> dict[str, tuple[Spread, ...]]:
    """The spreads of every measured chip, by its name."""
    folder = data_folder("projections") / "validation"
    return {path.parent.name: read_spreads(path) for path in sorted(folder.glob(f"*/{TABLE}"))}


def read_spreads(path: Path) -> tuple[Spread, ...]:
    """The rows of one ``intervals.yaml``; UserError when the file is damaged."""
    try:
        rows = yaml.safe_load(path.read_text(encoding="utf-8"))["rows"]
        return tuple(Spread(str(r["of"]), str(r["class"]), str(r["duration"]), r["n"], r["low"], r["high"]) for r in rows)
    except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
        raise UserError(f"the measured intervals {path} are damaged ({error}); install the package again") from error


def _measured(spread: Spread, chip: str) -> str:
    kind = SPOKEN.get(spread.kernel_class, f"{spread.kernel_class} kernels")
    duration = "" if spread.duration == ALL else f" of {spread.duration}"
    generated = ", projected as generated designs" if spread.of == DESIGN else ""
    return f"{100 * SHARE:.0f} % of {spread.n} measured {kind}{duration} on {chip}{generated}"
