"""A validation run with everything that is kept of it: evaluation, intervals, and what they were made from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from simulator.hw.config import HardwareConfig
from simulator.projection.interval import Spread
from simulator.validation.evaluation import FIT_SPLIT, REPORTED_SPLIT, Evaluation, evaluate
from simulator.validation.intervals import Coverage, cases, coverage, design_spreads, spreads, to_yaml
from simulator.validation.measured import labels, numbers

DIGEST_DIGITS = 16


@dataclass(frozen=True)
class Published:
    """``cases``: id, family, dtype, shape, config, split, measured, predicted (SM cycles), kernel_class, measured_us,
    error (signed, per cent) of every predicted case; ``unsupported``: id, family, reason of the others. ``simulators``,
    ``chip_digests``: of the predictions. Digests are SHA-256, shortened."""

    chip: str
    chip_digest: str
    measured_name: str
    measured_digest: str
    predictions_digest: str
    simulators: tuple[str, ...]
    chip_digests: tuple[str, ...]
    evaluation: Evaluation
    cases: pd.DataFrame
    unsupported: pd.DataFrame
    spreads: tuple[Spread, ...]
    coverage: Coverage | None

    def intervals(self) -> str:
        """The text of ``intervals.yaml``."""
        n = max((row.n for row in self.spreads), default=0)
        splits = " and ".join(sorted(set(self.cases["split"])))
        return to_yaml(
            list(self.spreads),
            {
                "chip": self.chip,
                "made_from": f"{n} kernels of {self.measured_name} (split {splits}); designs: tile_designs.csv beside this file",
                "simulator": " and ".join(self.simulators),
                "chip_digest": self.chip_digest[:DIGEST_DIGITS],
                "measured_sha256": self.measured_digest,
                "predictions_sha256": self.predictions_digest,
            },
        )


def publish(
    measured: pd.DataFrame, predicted: pd.DataFrame, whole_file: pd.DataFrame, chip: HardwareConfig, source: Path, designs: Path
) -> Published:
    """The run of ``predicted``, whose rows are those of ``measured``, a part of the file ``source`` (``whole_file``).
    ``designs``: measured kernels beside generated designs."""
    table = cases(measured, predicted)
    return Published(
        chip=chip.name,
        chip_digest=chip.digest(),
        measured_name=source.name,
        measured_digest=_digest(source.read_bytes()),
        predictions_digest=_digest(predicted.to_csv(index=False).encode()),
        simulators=_distinct(predicted, "simulator"),
        chip_digests=_distinct(predicted, "hw_digest"),
        evaluation=evaluate(measured, predicted, chip, whole_file),
        cases=_shown(measured, predicted),
        unsupported=_unsupported(measured, predicted),
        spreads=(*spreads(table), *design_spreads(designs)) if len(table) else (),
        coverage=coverage(table, FIT_SPLIT, REPORTED_SPLIT),
    )


def _shown(measured: pd.DataFrame, predicted: pd.DataFrame) -> pd.DataFrame:
    table = pd.DataFrame(
        {
            "id": measured["id"],
            "family": labels(measured, "kernel"),
            **{name: labels(measured, name, "") for name in ("dtype", "shape", "config", "split")},
            "measured": numbers(measured, "cycles"),
            "predicted": numbers(predicted, "predicted_cycles"),
            "measured_us": numbers(measured, "ncu_time_ns") * 1e-3,
            "kernel_class": labels(predicted, "kernel_class", ""),
        }
    )
    known = table[(table["measured"] > 0) & np.isfinite(table["predicted"])]
    return known.assign(error=100 * (known["predicted"] / known["measured"] - 1)).reset_index(drop=True)


def _unsupported(measured: pd.DataFrame, predicted: pd.DataFrame) -> pd.DataFrame:
    table = pd.DataFrame({"id": measured["id"], "family": labels(measured, "kernel"), "reason": predicted["reason"]})
    return table[~np.isfinite(numbers(predicted, "predicted_cycles"))].reset_index(drop=True)


def _distinct(frame: pd.DataFrame, column: str) -> tuple[str, ...]:
    return tuple(sorted(set(labels(frame, column, "")) - {""}))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:DIGEST_DIGITS]
