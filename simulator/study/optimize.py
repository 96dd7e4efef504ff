"""Search of the axes by Optuna: asked in batches of fixed size, so that the answer does not depend on the workers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from simulator.errors import UserError
from simulator.study.points import DesignPoint
from simulator.study.spec import Axis

if TYPE_CHECKING:
    from simulator.study.run import Study

BATCH = 8
Simulate = Callable[[str, Sequence[DesignPoint]], dict[str, float]]


def search(study: Study, simulate: Simulate) -> None:
    """Simulate ``sampling.points`` designs that a tree-structured Parzen estimator proposes, on the first base chip.

    All objectives are minimised together.
    """
    try:
        import optuna
    except ImportError as error:
        raise UserError("sampling method optimize needs Optuna: pip install 'kernelcast[study]'") from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    spec, maker = study.spec, study.makers[0]
    if not spec.axes:
        raise UserError("sampling method optimize needs axes")
    sampler = optuna.samplers.TPESampler(seed=spec.sampling.seed)
    search_space = optuna.create_study(directions=["minimize"] * len(spec.objectives), sampler=sampler)
    total = spec.sampling.points or 0
    for first in range(1, total + 1, BATCH):
        trials = [search_space.ask() for _ in range(min(BATCH, total + 1 - first))]
        points = [
            maker.at_shares(f"optimize {first + i}", [_share(trial, axis) for axis in spec.axes])
            for i, trial in enumerate(trials)
        ]
        times = simulate(f"Search {first} to {first + len(points) - 1} of {total}", points)
        for trial, point in zip(trials, points, strict=True):
            time = times[point.id]
            if point.rejected or math.isnan(time):
                search_space.tell(trial, state=optuna.trial.TrialState.FAIL)
            else:
                search_space.tell(trial, list(study.rules.objective_values(time, point.proxies).values()))


def _share(trial: Any, axis: Axis) -> float:
    """Position 0..1 on an axis: one of its values, or anywhere in a range."""
    if axis.n_levels is None:
        return float(trial.suggest_float(axis.title, 0.0, 1.0))
    index = trial.suggest_int(axis.title, 0, axis.n_levels - 1)
    if axis.range or axis.log_range:
        return index / max(1, axis.n_levels - 1)
    return (index + 0.5) / axis.n_levels
