"""Design points: every chip that a study asks about, with the reason where one cannot exist or breaks a constraint."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.stats import qmc

from simulator.errors import UserError
from simulator.hw.config import HardwareConfig
from simulator.hw.loader import with_overrides
from simulator.study.chips import Rules
from simulator.study.levels import Level, level_at, levels_of, override, set_value
from simulator.study.spec import Axis, Scenario, StudySpec

BASE, SCENARIO, SLICE, SAMPLE, STEP = "base", "scenario", "slice", "sample", "sensitivity"


@dataclass(frozen=True)
class DesignPoint:
    """One chip of a study. ``id`` is unique; ``base``: name of the chip that ``overrides`` change; ``settings``: axis ->
    label, for the axes that were set; ``numbers``: axis -> number behind the label. ``rejected``: why it is not simulated.
    ``digest``: of the chip; ``proxies``: values of the study's cost formulas. ``parameter``, ``factor``: of a step of the
    tornado, the path and new value over old."""

    id: str
    kind: str
    base: str
    overrides: tuple[str, ...] = ()
    settings: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, float] = field(default_factory=dict)
    rejected: str = ""
    digest: str = ""
    proxies: dict[str, float] = field(default_factory=dict)
    parameter: str = ""
    factor: float = 1.0


class PointMaker:
    """Makes the points of one study on one base chip; equal input gives equal points in equal order."""

    def __init__(self, spec: StudySpec, chip: HardwareConfig, rules: Rules) -> None:
        self.spec = spec
        self.chip = chip
        self.rules = rules
        self.prefix = f"{chip.name}/" if len(spec.base) > 1 else ""

    def realise(self, point: DesignPoint, is_constrained: bool = True) -> DesignPoint:
        """The point with its chip's digest and proxies, or with the reason why there is no such chip."""
        try:
            chip = with_overrides(self.chip, point.overrides) if point.overrides else self.chip
            chip.execution_sections()
            proxies = self.rules.proxies(chip)
            broken = self.rules.broken_constraint(chip, proxies) if is_constrained else ""
        except UserError as error:
            return replace(point, rejected=_reason(error))
        return replace(point, digest=chip.digest(), proxies=proxies, rejected=broken)

    def base_point(self) -> DesignPoint:
        point = self.realise(DesignPoint(f"{self.prefix}base", BASE, self.chip.name), is_constrained=False)
        if point.rejected:
            raise UserError(f"base chip {self.chip.name}: {point.rejected}")
        return point

    def scenarios(self) -> Iterator[DesignPoint]:
        known: dict[str, Scenario] = {}
        for scenario in self.spec.scenarios:
            known[scenario.name] = scenario
            chain = [scenario]
            while chain[0].after:
                chain.insert(0, known[chain[0].after])
            settings: dict[str, Any] = {}
            chip = self.chip
            try:
                for step in chain:
                    made = {path: set_value(chip, path, value) for path, value in step.set.items()}
                    settings.update(made)
                    chip = with_overrides(chip, [override(path, value) for path, value in made.items()])
            except UserError as error:
                if not settings:
                    raise UserError(f"scenario '{scenario.name}': {error}") from error
                yield DesignPoint(f"{self.prefix}{scenario.name}", SCENARIO, self.chip.name, rejected=_reason(error))
                continue
            overrides = tuple(override(path, value) for path, value in settings.items())
            yield self.realise(DesignPoint(f"{self.prefix}{scenario.name}", SCENARIO, self.chip.name, overrides))

    def slices(self) -> Iterator[DesignPoint]:
        """Each axis alone, everything else at the base."""
        for axis in self.spec.axes:
            levels = levels_of(axis, self.chip) if axis.n_levels else [level_at(axis, self.chip, i / 4) for i in range(5)]
            for level in levels:
                yield self.point(f"{axis.title}={level.label}", SLICE, [(axis, level)])

    def samples(self) -> Iterator[DesignPoint]:
        """The combinations of the axes that the sampling method names (none for ``optimize``, which asks as it goes)."""
        axes, sampling = self.spec.axes, self.spec.sampling
        if not axes or sampling.method in ("none", "optimize") or (len(axes) == 1 and sampling.method == "full"):
            return
        if sampling.method == "full":
            every = itertools.product(*(levels_of(axis, self.chip) for axis in axes))
            for number, levels in enumerate(every, 1):
                yield self.point(f"grid {number}", SAMPLE, list(zip(axes, levels, strict=True)))
            return
        for number, shares in enumerate(_unit_cube(sampling.method, len(axes), sampling.points or 1, sampling.seed), 1):
            yield self.at_shares(f"{sampling.method} {number}", shares)

    def at_shares(self, name: str, shares: Sequence[float]) -> DesignPoint:
        """The point at a position of the unit cube over all axes."""
        levels = [level_at(axis, self.chip, float(share)) for axis, share in zip(self.spec.axes, shares, strict=True)]
        return self.point(name, SAMPLE, list(zip(self.spec.axes, levels, strict=True)))

    def point(self, name: str, kind: str, levels: Sequence[tuple[Axis, Level]]) -> DesignPoint:
        """The point at these levels of these axes."""
        return self.realise(
            DesignPoint(
                id=f"{self.prefix}{name}",
                kind=kind,
                base=self.chip.name,
                overrides=tuple(text for _, level in levels for text in level.overrides),
                settings={axis.title: level.label for axis, level in levels},
                numbers={axis.title: level.number for axis, level in levels if level.number is not None},
            )
        )


def _unit_cube(method: str, n_axes: int, n_points: int, seed: int) -> np.ndarray:
    """Positions in [0, 1), float64 [n_points, n_axes], of a Latin hypercube or a scrambled Sobol sequence."""
    rng = np.random.default_rng(seed)
    if method == "lhs":
        return qmc.LatinHypercube(n_axes, rng=rng).random(n_points)
    exponent = (n_points - 1).bit_length()
    return qmc.Sobol(n_axes, rng=rng).random_base2(exponent)[:n_points]


def _reason(error: UserError) -> str:
    return " ".join(str(error).split())
