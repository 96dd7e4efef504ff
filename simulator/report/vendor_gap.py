"""The gap to the vendor's library as a table and a figure: ``python -m simulator.report.vendor_gap --help``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullFormatter

from simulator.errors import UserError
from simulator.hw.loader import load_hw
from simulator.report.study_style import DOWN, INK, QUIET, RC, UP, Drawing, axes_of
from simulator.validation.cubins import locate_cubins
from simulator.validation.evaluation import REPORTED_SPLIT
from simulator.validation.measured import cases_of, read_measured
from simulator.validation.predict import jobs_for, project_all
from simulator.validation.vendor_gap import Pair, gap_table, pairs
from simulator.validation.warm_up import ensure_compiled

TICKS = (5, 10, 25, 50, 100, 200, 400, 1000)
ROW_INCHES = 0.3
EXTENTS = {"M": "", "N": "x", "K": "x", "B": "B", "H": " H", "S": " S", "HD": " D"}
"""How the extents of a shape follow each other in a label."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write ``gap.csv`` and ``gap.png``: every problem of the reported split that a library and a compiled kernel solve."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--hw", required=True, help="chip: a name, or a YAML file")
    parser.add_argument("--run", nargs=2, action="append", required=True, metavar=("MEASURED", "CUBINS"), help="can be repeated")
    parser.add_argument("--output", required=True, type=Path, help="folder to write to")
    parser.add_argument("--jobs", type=int, default=1, help="worker processes")
    chosen = parser.parse_args(arguments)
    try:
        found, projected = _projected_pairs([(Path(m), Path(c)) for m, c in chosen.run], chosen.hw, chosen.jobs)
        table = gap_table(found, projected, load_hw(chosen.hw))
    except UserError as error:
        parser.error(str(error))
    chosen.output.mkdir(parents=True, exist_ok=True)
    table.to_csv(chosen.output / "gap.csv", index=False, float_format="%.4g")
    (chosen.output / "gap.png").write_bytes(figure(table, chosen.hw).png())
    return 0


def _projected_pairs(runs: Sequence[tuple[Path, Path]], hw: str, n_jobs: int) -> tuple[list[Pair], list[float]]:
    """Pairs and the microseconds of their compiled kernels; one that cannot be projected gives way to the next fastest."""
    measured = [read_measured(path) for path, _ in runs]
    cubins = [locate_cubins(path) for _, path in runs]
    ensure_compiled(hw)
    known: dict[tuple[int, str], float | None] = {}
    while True:
        left_out = [name for (_, name), us in known.items() if us is None]
        found = pairs(measured, REPORTED_SPLIT, left_out)
        if not found:
            raise UserError(f"no problem of the split {REPORTED_SPLIT} has both a library kernel and a compiled one")
        keys = [(pair.source, pair.kernel["id"]) for pair in found]
        new = [(key, pair) for key, pair in zip(keys, found, strict=True) if key not in known]
        if not new:
            return found, [us for us in (known[key] for key in keys) if us is not None]
        jobs = [job for (source, _), pair in new for job in jobs_for(cases_of(pd.DataFrame([pair.kernel])), cubins[source], hw)]
        for (key, _), outcome in zip(new, project_all(jobs, n_jobs), strict=True):
            known[key] = outcome.projection.time_us if outcome.projection else None


def figure(table: pd.DataFrame, hw: str) -> Drawing:
    """Times of every problem as a share of the library's."""
    with mpl.rc_context(RC):
        drawn, [ax] = axes_of(1.6 + ROW_INCHES * len(table))
        place = np.arange(len(table))[::-1]
        shares = {name: 100 * table[f"{name}_us"] / table["library_us"] for name in ("measured", "projected", "roofline")}
        ax.hlines(place, shares["roofline"], shares["measured"], color="#d0d5dd", linewidth=1, zorder=1)
        ax.plot(shares["roofline"], place, "|", color=INK, markersize=9, markeredgewidth=1.6, label="roofline")
        hollow: dict[str, Any] = {"markersize": 8, "markerfacecolor": "none", "markeredgewidth": 1.6}
        ax.plot(shares["measured"], place, "o", color=UP, label="measured", **hollow)
        ax.plot(shares["projected"], place, "D", color=DOWN, markersize=4.5, label="projected")
        ax.axvline(100, color=QUIET, linewidth=1.2)
        _axes(ax, table, place, pd.concat(shares.values()))
        handles, labels = ax.get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return Drawing(
        "vendor_gap",
        "Best compiled kernel of each problem beside the vendor's library.",
        f"Times of {len(table)} problems on {hw} relative to the vendor's library: roofline, measured and projected.",
        drawn,
    )


def _axes(ax: Axes, table: pd.DataFrame, place: np.ndarray, shares: pd.Series) -> None:
    ax.set_xscale("log")
    ax.set_xlim(shares.min() / 1.15, shares.max() * 1.15)
    ax.set_xticks([tick for tick in TICKS if shares.min() / 1.15 <= tick <= shares.max() * 1.15])
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} %"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.grid(True, axis="x", color="#eeeeee")
    ax.set_yticks(place, [_label(row) for row in table.to_dict("records")], fontsize=8)
    ax.set_ylim(-0.7, len(table) - 0.3)
    ax.set_xlabel("time of the best compiled kernel, share of the library's time (left of 100 %: faster than the library)")
    right = ax.secondary_yaxis("right")
    right.set_yticks(place, [f"{row['library']}: {row['library_us']:,.0f} us" for row in table.to_dict("records")], fontsize=8)
    right.tick_params(length=0)
    right.spines["right"].set_visible(False)


def _label(row: dict) -> str:
    shape = json.loads(row["shape"])
    extents = "".join(f"{EXTENTS.get(name, ' ')}{value}" for name, value in shape.items() if name in EXTENTS)
    return f"{row['kernel']} {row['dtype']} {extents}{' causal' if shape.get('causal') else ''}"


if __name__ == "__main__":
    sys.exit(main())
