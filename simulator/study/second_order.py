"""Interactions of parameters, by SALib: how much of an effect depends on where the others stand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simulator.errors import UserError
from simulator.study.levels import override, scaled
from simulator.study.points import DesignPoint, PointMaker
from simulator.study.spec import SecondOrder

SECOND_ORDER = "second order"
MORRIS_LEVELS = 4


@dataclass(frozen=True)
class Interaction:
    """Effect of a parameter on the suite's time over the whole range. Morris: ``effect`` mean absolute elementary effect,
    ``interaction`` its standard deviation. Sobol: ``effect`` first-order share of the variance, ``interaction`` the rest."""

    parameter: str
    method: str
    effect: float
    interaction: float


def _salib() -> None:
    try:
        import SALib  # noqa: F401
    except ImportError as error:
        raise UserError("second_order needs SALib: pip install 'kernelcast[study]'") from error


def _problem(parameters: Sequence[str], delta: float) -> dict[str, Any]:
    return {"num_vars": len(parameters), "names": list(parameters), "bounds": [[1 - delta, 1 + delta]] * len(parameters)}


def factors(second_order: SecondOrder, parameters: Sequence[str], delta: float) -> np.ndarray:
    """Factors of the parameters to simulate, float64 [n, n_parameters]; the same for the same study."""
    _salib()
    problem = _problem(parameters, delta)
    if second_order.method == "morris":
        from SALib.sample import morris

        return np.asarray(morris.sample(problem, second_order.samples, num_levels=MORRIS_LEVELS, seed=0))
    from SALib.sample import sobol

    return np.asarray(sobol.sample(problem, second_order.samples, calc_second_order=False, seed=0))


def points(maker: PointMaker, parameters: Sequence[str], table: np.ndarray) -> Iterator[DesignPoint]:
    """One point per row of factors."""
    for number, row in enumerate(table, 1):
        overrides = tuple(override(path, scaled(maker.chip, path, factor)) for path, factor in zip(parameters, row, strict=True))
        yield maker.realise(
            DesignPoint(f"{maker.prefix}interaction {number}", SECOND_ORDER, maker.chip.name, overrides), is_constrained=False
        )


def interactions(
    second_order: SecondOrder, parameters: Sequence[str], delta: float, table: np.ndarray, times: Mapping[int, float]
) -> list[Interaction]:
    """Effects over the suite's time; ``times``: row -> time over base. Empty if a row has no time (a chip cannot exist)."""
    if len(times) != len(table):
        return []
    problem, values = _problem(parameters, delta), np.array([times[i] for i in range(len(table))])
    if second_order.method == "morris":
        from SALib.analyze import morris

        found = morris.analyze(problem, table, values, num_levels=MORRIS_LEVELS, seed=0)
        effect, interaction = found["mu_star"], found["sigma"]
    else:
        from SALib.analyze import sobol

        found = sobol.analyze(problem, values, calc_second_order=False, seed=0)
        effect, interaction = found["S1"], found["ST"] - found["S1"]
    return [Interaction(path, second_order.method, float(effect[i]), float(interaction[i])) for i, path in enumerate(parameters)]
