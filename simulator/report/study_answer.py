"""The answer of a study in five sentences, written from the numbers that its tables print."""

from __future__ import annotations

from simulator.report.format import percent, words
from simulator.report.study_software import software_sentence
from simulator.report.study_tables import NOT_DISTINGUISHABLE, change, counts, interval, plus_minus, ratio, titled
from simulator.study.points import DesignPoint
from simulator.study.results import StudyResults
from simulator.study.sensitivity import SUITE


def answer(results: StudyResults) -> list[str]:
    """What to build, what is worth most, how much is enough, how sure that is, what software has to change."""
    return [_best(results), _worth(results), _enough(results), _sure(results), _software(results)]


def _best(results: StudyResults) -> str:
    objective = results.spec.objectives[0]
    best = results.best(objective)
    if best["point"] == results.base.id:
        return f"No design of this study beats {results.base.base} by the objective {objective}: the base itself is best."
    sure = "" if best["is_distinguishable"] else f", which is {NOT_DISTINGUISHABLE} from the base"
    span = interval(best["speedup"], results.half_width)
    return (
        f"By the objective {objective}, the best design is {titled(results, best['point'])}: the suite runs "
        f"{ratio(best['speedup'])} times as fast as on {results.base.base} (interval {span}){sure}."
    )


def _worth(results: StudyResults) -> str:
    frame = results.tornado
    suite = frame[(frame["kernel"] == SUITE) & (frame["span"] > 0)]
    if suite.empty:
        return "No tornado was asked for, or no parameter moves this suite, so that no parameter can be named as worth most."
    first = suite.iloc[0]
    own = frame[(frame["parameter"] == first["parameter"]) & (frame["kernel"] != SUITE)]
    most = own.loc[own["span"].idxmax()]
    return (
        f"The suite feels {first['parameter']} most: a step up changes its time by {change(first['time_up'] - 1)}, a step down "
        f"by {change(first['time_down'] - 1)} (elasticity {first['elasticity']:+.3f}); {most['kernel']} feels it most, by "
        f"{change(most['time_up'] - 1)} and {change(most['time_down'] - 1)}."
    )


def _enough(results: StudyResults) -> str:
    knees = results.knees
    suite = knees[knees["kernel"] == SUITE]
    if suite.empty:
        return _steps(results)
    parts = [
        f"{row['axis']} at {row['knee']} (suite time {ratio(row['knee_time'])}; the best value, {row['best']}, gives "
        f"{ratio(row['best_time'])})"
        for _, row in suite.iterrows()
    ]
    return f"Enough, within 2 % of the best and everything else at the base, is {'; '.join(parts)}."


def _steps(results: StudyResults) -> str:
    """Without axes: which scenario gains most."""
    others = results.designs[results.designs["point"] != results.base.id]
    if others.empty:
        return "The study has neither axes nor scenarios, so that nothing can be said about how much is enough."
    rows = [f"{row['point']} {ratio(row['speedup'])}" for _, row in others.iterrows()]
    return f"Speedups of the suite, scenario by scenario: {', '.join(rows)}."


def _sure(results: StudyResults) -> str:
    n_all, n_clear = counts(results)
    widest = max(results.kernels, key=lambda kernel: results.uncertainties[kernel.name].half_width)
    width = results.uncertainties[widest.name].half_width
    return (
        f"The interval of the suite's time is {plus_minus(results.half_width)} (widest for {widest.name}, {plus_minus(width)}), "
        f"from errors measured on silicon; {n_clear} of {n_all} designs differ from the base by more than that."
    )


def _software(results: StudyResults) -> str:
    return " ".join(part for part in (software_sentence(results), _waiting(results)) if part)


def _waiting(results: StudyResults) -> str:
    """Whether kernels wait for something else on the best design than on the base."""
    best = results.point(results.best(results.spec.objectives[0])["point"])
    moved = [(name, *ends) for name in results.weights if (ends := _waits(results, best, name)) and ends[0] != ends[2]]
    if best.id == results.base.id or not moved:
        return "On the best design every kernel still waits most for what it waits for on the base."
    parts = [f"{name} waits most for {new} ({share}) instead of {old} ({before})" for name, old, before, new, share in moved]
    return f"Software would have to change where the bottleneck moves: on the best design {'; '.join(parts)}."


def _waits(results: StudyResults, best: DesignPoint, kernel: str) -> tuple[str, str, str, str] | None:
    """Largest wait and its share on the base, and on the best design."""
    here, there = results.outcome(results.base, kernel), results.outcome(best, kernel)
    if here is None or there is None:
        return None
    ends = []
    for found in (here, there):
        share, key = max((value, key) for key, value in found["stalls"].items() if key != "selected")
        ends += [words(key), percent(share)]
    return ends[0], ends[1], ends[2], ends[3]
