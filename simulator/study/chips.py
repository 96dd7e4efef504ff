"""What a study file says about chips: cost formulas and constraints, checked against the base chip's paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from simulator.errors import UserError
from simulator.hw.config import HardwareConfig
from simulator.study.formula import Formula, parse_formula
from simulator.study.spec import StudySpec

TIME = "time"


def numbers_of(chip: HardwareConfig) -> dict[str, float]:
    """Every single number of a chip by dotted path."""
    return {
        path: float(origin.value)
        for path, origin in chip.provenance.origins.items()
        if isinstance(origin.value, (int, float)) and not isinstance(origin.value, bool)
    }


@dataclass(frozen=True)
class Rules:
    """Formulas of one study, over hardware paths and ``base.``-prefixed paths of the base chip ``base``."""

    base: Mapping[str, float]
    cost: Mapping[str, Formula]
    constraints: Sequence[Formula]
    objectives: Sequence[Formula]

    def proxies(self, chip: HardwareConfig) -> dict[str, float]:
        """Value of each proxy, in the order of the file; a later one may use an earlier one."""
        if not self.cost:
            return {}
        values = {**self.base, **numbers_of(chip)}
        found: dict[str, float] = {}
        for name, formula in self.cost.items():
            found[name] = values[name] = _value(formula, values, chip)
        return found

    def broken_constraint(self, chip: HardwareConfig, proxies: Mapping[str, float]) -> str:
        """The first constraint that does not hold, as a reason; empty if all hold."""
        if not self.constraints:
            return ""
        values = {**self.base, **numbers_of(chip), **proxies}
        for formula in self.constraints:
            if not _value(formula, values, chip):
                return f"constraint {formula.text} does not hold"
        return ""

    def objective_values(self, time: float, proxies: Mapping[str, float]) -> dict[str, float]:
        """Value of each objective at a suite time (base = 1)."""
        values = {TIME: time, **proxies}
        return {formula.text: formula.value(values) for formula in self.objectives}


def make_rules(spec: StudySpec, chip: HardwareConfig) -> Rules:
    """The study's formulas, each name checked; UserError for the first that is wrong."""
    paths = list(numbers_of(chip))
    base = {f"base.{path}": value for path, value in numbers_of(chip).items()}
    names = [*paths, *base]
    cost: dict[str, Formula] = {}
    for name, text in spec.proxies.items():
        cost[name] = _plain(parse_formula(str(text), [*names, *cost], f"proxy {name}"), f"proxy {name}")
    constraints = [parse_formula(text, [*names, *cost], "constraint") for text in spec.constraints]
    for formula in constraints:
        if not formula.is_comparison():
            raise UserError(f"constraint '{formula.text}' compares nothing; write it as one, such as cost <= 2")
    objectives = [_plain(parse_formula(text, [TIME, *cost], "objective"), "objective") for text in spec.objectives]
    return Rules(base, cost, constraints, objectives)


def _plain(formula: Formula, what: str) -> Formula:
    if formula.is_comparison():
        raise UserError(f"{what} '{formula.text}' is a comparison; it must be a quantity")
    return formula


def _value(formula: Formula, values: Mapping[str, float], chip: HardwareConfig) -> float:
    try:
        return formula.value(values)
    except KeyError as error:
        raise UserError(f"formula '{formula.text}' needs {error.args[0]}, which {chip.name} does not have") from error
