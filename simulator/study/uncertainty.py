"""How sure a comparison is: measured error of the kernel's class, and what the small instruction budget leaves out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import pandas as pd

from simulator.data_files import data_folder
from simulator.errors import UserError

CLASS_ERRORS = "validation/class_errors.csv"
ALL_CLASSES = "all"


@dataclass(frozen=True)
class ClassError:
    """Measured error of a kernel class. ``mean_error``: mean absolute error as a fraction; ``n``: measured kernels;
    ``is_own``: measured for this class on this chip (otherwise the largest error of any class stands in)."""

    kernel_class: str
    chip: str
    n: int
    mean_error: float
    bias: float
    origin: str
    is_own: bool


@cache
def measured_errors() -> pd.DataFrame:
    """The table of measured errors: chip, class, n, mean_error_percent, bias_percent, origin."""
    path = data_folder("projections") / CLASS_ERRORS
    if not path.is_file():
        raise UserError(f"this installation lacks the measured errors ({path}); make validate accuracy writes them")
    return pd.read_csv(path)


def class_error(kernel_class: str, chip: str) -> ClassError:
    """Error of a class on a chip; where it was never measured, the largest of any class of any measured chip."""
    table = measured_errors()
    own = table[(table["chip"] == chip) & (table["class"] == kernel_class)]
    row = own.iloc[0] if len(own) else table.iloc[int(table["mean_error_percent"].to_numpy().argmax())]
    return ClassError(
        kernel_class=str(row["class"]),
        chip=str(row["chip"]),
        n=int(row["n"]),
        mean_error=float(row["mean_error_percent"]) / 100,
        bias=float(row["bias_percent"]) / 100,
        origin=str(row["origin"]),
        is_own=bool(len(own)),
    )


@dataclass(frozen=True)
class Uncertainty:
    """Relative half width of a kernel's projected time. ``budget``: warp instructions of each projection, about;
    ``budget_shift``: how far the full budget moves the base projection (signed fraction); ``interval``: relative half
    width from the projection itself, if it has one."""

    error: ClassError
    budget: int
    budget_shift: float = 0.0
    interval: float | None = None

    @property
    def half_width(self) -> float:
        measured = self.interval if self.interval is not None else self.error.mean_error
        return measured + abs(self.budget_shift)


def suite_half_width(uncertainties: Mapping[str, Uncertainty], weights: Mapping[str, float]) -> float:
    """Half width of the suite's time: the weighted mean, as errors of one model do not cancel."""
    total = sum(weights.values())
    return sum(weights[name] * uncertainties[name].half_width for name in weights) / total


def is_distinguishable(ratio: float, half_width: float) -> bool:
    """Whether a time over another one differs by more than the interval."""
    return not 1 / (1 + half_width) <= ratio <= 1 + half_width
