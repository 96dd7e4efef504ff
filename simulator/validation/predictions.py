"""The table that a validation run writes: one row per case of the measured file, in its order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from simulator.errors import UserError
from simulator.projection.interval import kernel_class
from simulator.projection.projection import Projection
from simulator.validation.measured import UNREADABLE, Case
from simulator.validation.outcome import Outcome
from simulator.version import simulator_version

PREFIX = "predicted_"
SUPPORTED, UNSUPPORTED = "ok", "unsupported"
LEADING_COLUMNS = (
    "id",
    "predicted_cycles",
    "predicted_warp_insts",
    "predicted_smem_wavefronts",
    "predicted_bank_conflicts",
    "predicted_l2_read_sectors",
    "predicted_dram_read_bytes",
)
TRAILING_COLUMNS = ("seconds", "status", "reason")

BOOKED_AS = {"mbarrier": "long_scoreboard", "gmma": "barrier"}
"""Stall reasons that the hardware's profiler counts under another name."""
STALL = "stall_"

Row = dict[str, object]


def outcome_row(outcome: Outcome) -> Row:
    """The row of a case, predicted or not."""
    if outcome.projection is None:
        return unsupported_row(outcome.case, outcome.reason, outcome.seconds)
    return supported_row(outcome.case, outcome.projection, outcome.seconds)


def supported_row(case: Case, projection: Projection, seconds: float) -> Row:
    """What was predicted of a case; counters go by the name of their measured column."""
    counters = {name: value for name, value in projection.counters.items() if not name.startswith(STALL)}
    row: Row = {f"{PREFIX}{name}": value for name, value in counters.items()}
    row |= {f"{PREFIX}{STALL}{name}": value for name, value in stalls_per_issue(projection.stalls).items()}
    row |= {
        "id": case.id,
        "predicted_cycles": projection.cycles,
        "predicted_warp_insts": projection.warp_instructions,
        "predicted_smem_wavefronts": projection.smem.get("wavefronts"),
        "predicted_bank_conflicts": projection.smem.get("bank_conflicts"),
        "predicted_dram_read_bytes": projection.bytes.get("dram_read"),
        "kernel_class": kernel_class(projection.bounds),
        "hw_digest": projection.hw_digest,
        "simulator": simulator_version(),
        "seconds": round(seconds, 3),
        "status": SUPPORTED,
        "reason": "",
    }
    row.setdefault("predicted_ncu_time_ns", projection.time_us * 1e3)
    if "achieved" in projection.occupancy:
        row.setdefault("predicted_achieved_occupancy_pct", 100.0 * projection.occupancy["achieved"])
    return row


def unsupported_row(case: Case, reason: str, seconds: float = 0.0) -> Row:
    """A case without a prediction, and why."""
    sentence = " ".join(reason.split())
    return {"id": case.id, "seconds": round(seconds, 3), "status": UNSUPPORTED, "reason": sentence}


def stalls_per_issue(stalls: Mapping[str, float]) -> dict[str, float]:
    """Shares of issue slots as warps per issued instruction, the unit and the names of the measured columns."""
    issued = stalls.get("selected", 0.0)
    if issued <= 0:
        return {}
    ratios: dict[str, float] = {}
    for name, share in stalls.items():
        booked = BOOKED_AS.get(name, name)
        ratios[booked] = ratios.get(booked, 0.0) + share / issued
    return ratios


def to_frame(rows: Sequence[Row]) -> pd.DataFrame:
    """Rows as a table: the contract's columns first, further predictions by name, the status last."""
    further = sorted({name for row in rows for name in row}.difference(LEADING_COLUMNS, TRAILING_COLUMNS))
    return pd.DataFrame(list(rows), columns=[*LEADING_COLUMNS, *further, *TRAILING_COLUMNS])


def read_predictions(paths: Sequence[Path], measured: pd.DataFrame) -> pd.DataFrame:
    """The rows of one or more files that a validation run wrote, as text, in the order of ``measured``.

    Raises UserError for a file that is no table of predictions, that predicts a case twice, or one that ``measured`` lacks.
    """
    frame = pd.concat([_read_one(path) for path in paths], ignore_index=True).fillna("")
    names = " and ".join(str(path) for path in paths)
    if frame["id"].duplicated().any():
        raise UserError(f"{names}: case {frame['id'][frame['id'].duplicated()].iloc[0]} is predicted twice")
    unknown = frame["id"][~frame["id"].isin(measured["id"])]
    if len(unknown):
        raise UserError(f"{names} is no prediction of this measured file, which has no case {unknown.iloc[0]}")
    order = {name: place for place, name in enumerate(measured["id"])}
    return frame.sort_values("id", key=lambda ids: ids.map(order), kind="stable").reset_index(drop=True)


def _read_one(path: Path) -> pd.DataFrame:
    if not path.is_file():
        raise UserError(f"predictions {path} do not exist; give what kernelcast validate -o wrote")
    try:
        frame = pd.read_csv(path, dtype=str, keep_default_na=False, na_filter=False)
    except UNREADABLE as error:
        raise UserError(f"predictions {path} are not a readable CSV or CSV.gz: {error}") from error
    missing = [name for name in (*LEADING_COLUMNS[:2], *TRAILING_COLUMNS[1:]) if name not in frame.columns]
    if missing:
        raise UserError(f"{path} holds no predictions: it lacks the column {', '.join(missing)}")
    return frame
