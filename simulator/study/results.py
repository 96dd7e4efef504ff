"""Results of a study: tidy rows, and the questions that a report asks of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pandas as pd

from simulator.hw.config import HardwareConfig
from simulator.study.chips import Rules
from simulator.study.pareto import pareto_front
from simulator.study.points import SLICE, STEP, DesignPoint
from simulator.study.second_order import Interaction
from simulator.study.sensitivity import SUITE, tornado
from simulator.study.spec import StudySpec
from simulator.study.suite import SuiteKernel
from simulator.study.uncertainty import Uncertainty, is_distinguishable, suite_half_width
from simulator.study.work import OK
from simulator.tuning.words import describe

KNEE_SHARE = 0.02
"""A value within 2 % of the best is as good as the best."""


@dataclass(frozen=True)
class StudyResults:
    """``points``: every chip that was asked about, the base first; ``outcomes``: (point id, kernel name) -> result;
    ``uncertainties``: kernel name -> how sure. Times are relative to the first point's unless they carry a unit."""

    spec: StudySpec
    chips: Mapping[str, HardwareConfig]
    kernels: Sequence[SuiteKernel]
    points: Sequence[DesignPoint]
    outcomes: Mapping[tuple[str, str], Mapping[str, Any]]
    uncertainties: Mapping[str, Uncertainty]
    rules: Rules
    version: str
    interactions: Sequence[Interaction] = ()
    n_corrupt: int = 0
    _point: dict[str, DesignPoint] = field(default_factory=dict)

    @property
    def base(self) -> DesignPoint:
        return self.points[0]

    @property
    def weights(self) -> dict[str, float]:
        return {kernel.name: kernel.weight for kernel in self.kernels}

    @property
    def half_width(self) -> float:
        """Relative half width of the suite's time."""
        return suite_half_width(self.uncertainties, self.weights)

    def point(self, name: str) -> DesignPoint:
        if not self._point:
            self._point.update({point.id: point for point in self.points})
        return self._point[name]

    def outcome(self, point: DesignPoint, kernel: str) -> Mapping[str, Any] | None:
        """The result of a kernel on a point, or None where there is none (rejected or failed)."""
        found = self.outcomes.get((point.id, kernel))
        return found if found is not None and found["status"] == OK else None

    def time_over_base(self, point: DesignPoint, kernel: str) -> float:
        """Time of a kernel (or of the ``suite``, weighted by share of base time) over the base's; NaN if unknown."""
        if kernel == SUITE:
            total = sum(self.weights.values())
            return sum(weight * self.time_over_base(point, name) for name, weight in self.weights.items()) / total
        here, there = self.outcome(point, kernel), self.outcome(self.base, kernel)
        return here["time_us"] / there["time_us"] if here and there else math.nan

    @cached_property
    def relative(self) -> dict[str, dict[str, float]]:
        """Point id -> kernel or suite -> time over base, for points where every kernel has a result."""
        names = [*self.weights, SUITE]
        table = {point.id: {name: self.time_over_base(point, name) for name in names} for point in self.points}
        return {key: row for key, row in table.items() if not math.isnan(row[SUITE])}

    @cached_property
    def frame(self) -> pd.DataFrame:
        """One row per point and kernel, in the order of the study: settings, status, times, counters."""
        return pd.DataFrame([self._row(point, kernel) for point in self.points for kernel in self.kernels])

    def _row(self, point: DesignPoint, kernel: SuiteKernel) -> dict[str, Any]:
        outcome = self.outcomes.get((point.id, kernel.name), {"status": "rejected", "reason": point.rejected})
        row: dict[str, Any] = {"point": point.id, "kind": point.kind, "base": point.base}
        row |= {f"axis {axis.title}": point.settings.get(axis.title) for axis in self.spec.axes}
        row |= {"parameter": point.parameter or None, "factor": point.factor if point.parameter else None}
        row |= {"kernel": kernel.name, "class": self._class(kernel.name), "weight": kernel.weight}
        row |= {"status": outcome["status"], "reason": outcome.get("reason", "")}
        row |= {f"proxy {name}": point.proxies.get(name) for name in self.rules.cost}
        row |= {"time_over_base": self.time_over_base(point, kernel.name)}
        row |= {name: outcome.get(name) for name in PLAIN_COLUMNS}
        row |= {"limiters": ", ".join(outcome.get("limiters", ()))}
        if any(one.problem is not None for one in self.kernels):
            row |= {"design": describe(outcome["design"]) if "design" in outcome else None}
        for group in ("smem", "bytes", "stalls", "bounds"):
            row |= {f"{group}_{name}": value for name, value in outcome.get(group, {}).items()}
        return row | {"chip_digest": point.digest, "trace_digest": kernel.digest, "half_width": self._half_width(kernel.name)}

    def _class(self, kernel: str) -> str:
        return self.uncertainties[kernel].kernel_class if kernel in self.uncertainties else ""

    def _half_width(self, kernel: str) -> float:
        return self.uncertainties[kernel].half_width if kernel in self.uncertainties else math.nan

    @cached_property
    def tornado(self) -> pd.DataFrame:
        """See ``simulator.study.sensitivity.tornado``."""
        return tornado(self.points, self.relative)

    @cached_property
    def designs(self) -> pd.DataFrame:
        """One row per chip that is a design (not a step of the tornado) and has results: suite time over base, speedup,
        proxies, objectives, whether it is on the front, whether it differs from the base by more than the interval."""
        rows = []
        seen: set[str] = set()
        for point in self.points:
            if point.kind == STEP or point.rejected or point.id not in self.relative or point.digest in seen:
                continue
            seen.add(point.digest)
            time = self.relative[point.id][SUITE]
            rows.append(
                {"point": point.id, "kind": point.kind, "time": time, "speedup": 1 / time, **point.proxies}
                | {f"objective {name}": value for name, value in self.rules.objective_values(time, point.proxies).items()}
                | {"is_distinguishable": is_distinguishable(time, self.half_width)}
            )
        frame = pd.DataFrame(rows)
        axes = ["time", *self.rules.cost] if self.rules.cost else [c for c in frame.columns if c.startswith("objective ")]
        frame["is_on_front"] = pareto_front(frame[axes].to_numpy(float))
        return frame

    def best(self, objective: str) -> pd.Series:
        """The design that minimises an objective; of equal ones the first."""
        return self.designs.iloc[int(self.designs[f"objective {objective}"].to_numpy().argmin())]

    @cached_property
    def knees(self) -> pd.DataFrame:
        """Per axis and kernel (and suite): the best value, and the first value of the axis within 2 % of the best."""
        rows = []
        for axis in self.spec.axes:
            levels = [p for p in self.points if p.kind == SLICE and axis.title in p.settings and p.base == self.base.base]
            levels = [p for p in levels if p.id in self.relative]
            if not levels:
                continue
            levels.sort(key=lambda p: p.numbers.get(axis.title, 0.0))
            for name in [SUITE, *self.weights]:
                times = [self.relative[p.id][name] for p in levels]
                best = min(times)
                index = next(i for i, time in enumerate(times) if time <= best * (1 + KNEE_SHARE))
                rows.append(
                    {
                        "axis": axis.title,
                        "kernel": name,
                        "knee": levels[index].settings[axis.title],
                        "knee_time": times[index],
                        "best": levels[times.index(best)].settings[axis.title],
                        "best_time": best,
                        "worst_time": max(times),
                    }
                )
        return pd.DataFrame(rows, columns=["axis", "kernel", "knee", "knee_time", "best", "best_time", "worst_time"])

    @property
    def software(self) -> pd.DataFrame:
        """One row per point and kernel that is tuned again: the design that won there, in words, and on the base."""
        tuned = [kernel.name for kernel in self.kernels if kernel.problem is not None]
        rows = []
        for name in tuned:
            base = self.design_of(self.base, name)
            for point in self.points:
                if found := self.design_of(point, name):
                    rows.append({"kernel": name, "point": point.id, "kind": point.kind, "design": found, "base_design": base})
        return pd.DataFrame(rows, columns=["kernel", "point", "kind", "design", "base_design"])

    def design_of(self, point: DesignPoint, kernel: str) -> str:
        """The design in words that won on a point; empty for a kernel that stays as it is, or without a result there."""
        found = self.outcome(point, kernel)
        return describe(found["design"]) if found is not None and "design" in found else ""

    @property
    def rejected(self) -> list[DesignPoint]:
        return [point for point in self.points if point.rejected]

    @property
    def failed(self) -> list[tuple[str, str, str]]:
        """(point, kernel, reason) of every projection that failed."""
        return [(*key, str(found["reason"])) for key, found in self.outcomes.items() if found["status"] != OK]

    def _repr_html_(self) -> str:
        columns = [name for name in self.designs.columns if not name.startswith("objective ")]
        return str(self.designs[columns].to_html(index=False, float_format="{:.3f}".format, max_rows=20))


PLAIN_COLUMNS = (
    "cycles",
    "time_us",
    "clock_mhz",
    "bound_by",
    "occupancy",
    "ctas_per_sm",
    "waves",
    "tail_fraction",
    "warp_instructions",
    "simulated_fraction",
)
