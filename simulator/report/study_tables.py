"""Tables of a study's report as text cells; the figures and the answer say the same numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from simulator.hw.loader import with_overrides
from simulator.report.format import duration, percent, scaled, words
from simulator.study.points import BASE, SCENARIO, SLICE, DesignPoint
from simulator.study.results import StudyResults
from simulator.study.sensitivity import SUITE
from simulator.study.uncertainty import is_distinguishable

N_DESIGNS = 25
N_PARAMETERS = 25
MOST_COMPARED = 10
NOT_DISTINGUISHABLE = "not distinguishable"
WEAK = ("assumed", "extrapolated", "derived")


@dataclass(frozen=True)
class Table:
    """Head and rows of text; ``text_columns``: how many columns from the left are words; ``marked``: rows to stand out."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    text_columns: int = 1
    note: str = ""
    marked: frozenset[int] = field(default=frozenset())


def ratio(value: float) -> str:
    return f"{value:.3f}" if math.isfinite(value) else "-"


def change(value: float) -> str:
    """Relative change: 0.081 -> "+8.1 %"."""
    return f"{100 * value:+.1f} %" if math.isfinite(value) else "-"


def plus_minus(value: float) -> str:
    return f"±{100 * value:.1f} %"


def interval(value: float, half_width: float) -> str:
    return f"{value / (1 + half_width):.3f} to {value * (1 + half_width):.3f}"


def named(point: DesignPoint | str) -> str:
    """A point as a person calls it: its settings if it has any, else its name."""
    return point if isinstance(point, str) else point.id


def titled(results: StudyResults, name: str) -> str:
    """A design's name with what it sets."""
    point = results.point(name)
    settings = ", ".join(f"{axis} {label}" for axis, label in point.settings.items())
    return f"{name} ({settings})" if settings and point.kind != SLICE else name


def compared_points(results: StudyResults) -> list[DesignPoint]:
    """Chips that the matrix shows: bases, scenarios, the best design of each objective, the ends of the axes."""
    known = [p for p in results.points if p.id in results.relative]
    chosen = [p for p in known if p.kind in (BASE, SCENARIO)]
    chosen += [results.point(results.best(objective)["point"]) for objective in results.spec.objectives]
    for axis in results.spec.axes:
        ends = [p for p in known if p.kind == SLICE and axis.title in p.settings and p.base == results.base.base]
        ends.sort(key=lambda p: p.numbers.get(axis.title, 0.0))
        chosen += [*ends[:1], *ends[-1:]]
    unique: dict[str, DesignPoint] = {}
    for point in chosen:
        unique.setdefault(point.digest, point)
    return list(unique.values())[:MOST_COMPARED]


def designs(results: StudyResults) -> Table:
    """The best designs by the first objective, the base always among them."""
    objective = f"objective {results.spec.objectives[0]}"
    frame = results.designs.sort_values(objective, kind="stable")
    shown = frame.head(N_DESIGNS)
    if results.base.id not in set(shown["point"]):
        shown = frame[frame["point"].isin({*shown["point"], results.base.id})]
    head = ["design", "suite time", "speedup", "interval", "differs from the base", *results.rules.cost]
    rows = []
    for _, row in shown.iterrows():
        same = "base" if row["point"] == results.base.id else ("yes" if row["is_distinguishable"] else NOT_DISTINGUISHABLE)
        cells = [
            titled(results, row["point"]),
            ratio(row["time"]),
            ratio(row["speedup"]),
            interval(row["speedup"], results.half_width),
        ]
        rows.append([*cells, same, *(f"{row[name]:.4g}" for name in results.rules.cost)])
    marked = frozenset(i for i, (_, row) in enumerate(shown.iterrows()) if row["is_on_front"])
    note = f"{len(shown)} of {len(frame)} designs, best first by {results.spec.objectives[0]}. Marked: no other design beats it."
    return Table(head, rows, 1, note, marked)


def speedups(results: StudyResults) -> Table:
    points = compared_points(results)
    rows = []
    for name in [*results.weights, SUITE]:
        width = results.half_width if name == SUITE else results.uncertainties[name].half_width
        cells = []
        for point in points:
            time = results.relative[point.id][name]
            is_clear = point.id == results.base.id or is_distinguishable(time, width)
            cells.append(("" if is_clear else "~ ") + ratio(1 / time))
        rows.append([name, plus_minus(width), *cells])
    return Table(
        ["kernel", "interval", *(named(p) for p in points)], rows, 1, "~ inside the interval: not distinguishable from the base."
    )


def tornado(results: StudyResults) -> Table | None:
    frame = results.tornado
    rows = []
    suite = frame[(frame["kernel"] == SUITE) & (frame["span"] > 0)].head(N_PARAMETERS)
    for _, row in suite.iterrows():
        own = frame[(frame["parameter"] == row["parameter"]) & (frame["kernel"] != SUITE)]
        most = own.loc[own["span"].idxmax()]
        rows.append(
            [
                *(row["parameter"], change(row["time_down"] - 1), change(row["time_up"] - 1), f"{row['elasticity']:+.3f}"),
                *(most["kernel"], change(most["time_down"] - 1), change(most["time_up"] - 1), f"{most['elasticity']:+.3f}"),
            ]
        )
    if not rows:
        return None
    unfelt = int((frame[frame["kernel"] == SUITE]["span"] == 0).sum())
    head = ["parameter", "suite, step down", "suite, step up", "elasticity", "felt most by", "step down", "step up", "elasticity"]
    return Table(head, rows, 1, f"{unfelt} further parameters move no kernel of this suite at all (elasticity 0).")


def interactions(results: StudyResults) -> Table | None:
    if not results.interactions:
        return None
    is_morris = results.interactions[0].method == "morris"
    head = ["parameter", *(("mean effect", "spread of the effect") if is_morris else ("first-order share", "interaction share"))]
    rows = [[item.parameter, ratio(item.effect), ratio(item.interaction)] for item in results.interactions]
    note = (
        "A spread near the mean effect: the effect depends on the other parameters." if is_morris else "Shares of the variance."
    )
    return Table(head, rows, 1, note)


def knees(results: StudyResults) -> Table | None:
    if results.knees.empty:
        return None
    rows = [
        [
            row["axis"],
            row["kernel"],
            row["knee"],
            ratio(row["knee_time"]),
            row["best"],
            ratio(row["best_time"]),
            ratio(row["worst_time"]),
        ]
        for _, row in results.knees.iterrows()
    ]
    head = ["axis", "kernel", "enough", "time there", "best value", "time there", "worst time"]
    return Table(head, rows, 2, "Enough: the first value of the axis within 2 % of the best, everything else at the base.")


def _compared_outcomes(results: StudyResults) -> Iterator[tuple[str, DesignPoint, Mapping[str, Any]]]:
    """(kernel, chip, outcome) of every kernel on every compared chip where it ran."""
    for name in results.weights:
        for point in compared_points(results):
            found = results.outcome(point, name)
            if found is not None:
                yield name, point, found


def bounds(results: StudyResults) -> Table:
    """What each kernel waits for and is bound by, on every compared chip."""
    rows = []
    for name, point, found in _compared_outcomes(results):
        largest = sorted(((v, k) for k, v in found["stalls"].items() if k != "selected"), reverse=True)[:2]
        waits = [*(f"{words(key)} {percent(share)}" for share, key in largest), "-", "-"][:2]
        issued = percent(found["stalls"].get("selected", 0.0))
        rows.append([name, named(point), words(found["bound_by"]), *waits, issued])
    return Table(
        ["kernel", "chip", "bound by", "largest wait", "second", "issued"],
        rows,
        5,
        "Shares of the issue slots of resident warps.",
    )


def occupancy(results: StudyResults) -> Table:
    rows = []
    for name, point, found in _compared_outcomes(results):
        wavefronts, conflicts = found["smem"]["wavefronts"], found["smem"]["bank_conflicts"]
        share = percent(conflicts / wavefronts) if wavefronts else "-"
        limits = [", ".join(words(x) for x in found["limiters"]), percent(found["occupancy"]), str(found["ctas_per_sm"])]
        spread = [f"{found['waves']:.2f}", percent(found["tail_fraction"])]
        rows.append([name, named(point), *limits, *spread, scaled(wavefronts), scaled(conflicts), share])
    head = ["kernel", "chip", "limited by", "occupancy", "CTAs per SM", "waves", "tail", "wavefronts", "conflicts", "share"]
    return Table(head, rows, 3, "A change of occupancy or of bank conflicts is a change that software can use or must repair.")


def clocks(results: StudyResults) -> Table:
    rows = [
        [name, named(point), f"{found['clock_mhz']:.0f} MHz", duration(found["time_us"])]
        for name, point, found in _compared_outcomes(results)
    ]
    return Table(["kernel", "chip", "clock", "time"], rows, 2)


def power(results: StudyResults) -> Table:
    """Values behind the clock of the base chip."""
    chip = results.chips[results.base.base]
    rows = [
        [path, str(origin.value), origin.confidence, origin.note]
        for path, origin in chip.provenance.origins.items()
        if path.startswith(("clock.", "power.", "timing.clock."))
    ]
    note = (
        "The clock follows the share of time that the tensor cores are busy, as measured on the base chip; "
        "a design point keeps that table."
    )
    return Table(["assumption", "value", "confidence", "note"], rows, 4, note)


def weakest(results: StudyResults) -> Table:
    """Hardware numbers that rest on less than a measurement, by what a step of them does to the suite."""
    chip = results.chips[results.base.base]
    frame = results.tornado
    rows = []
    for _, row in frame[(frame["kernel"] == SUITE) & (frame["span"] > 0)].iterrows():
        origin = chip.provenance.get(row["parameter"])
        if origin is not None and origin.confidence in WEAK:
            rows.append(
                [
                    row["parameter"],
                    str(origin.value),
                    origin.confidence,
                    origin.source,
                    change(row["time_down"] - 1),
                    change(row["time_up"] - 1),
                ]
            )
    head = ["hardware number", "value", "confidence", "source", "suite, step down", "suite, step up"]
    return Table(head, rows[:12], 4, "Ranked by what a step of the number does to the suite's time.")


def certainty(results: StudyResults) -> Table:
    """Half width of each kernel's interval and of the suite's, and how many designs differ by more."""
    rows = []
    for kernel in results.kernels:
        found = results.uncertainties[kernel.name]
        shift = f"{change(found.budget_shift)} of {found.budget / 1e6:g} M"
        ends = f"{change(found.low - 1)} to {change(found.high - 1)}"
        rows.append([kernel.name, found.kernel_class, found.basis, ends, shift, plus_minus(found.half_width)])
    rows.append([SUITE, "", "weighted mean", "", "", plus_minus(results.half_width)])
    n_all, n_clear = counts(results)
    rows.append(["designs", "", f"{n_clear} of {n_all} differ from the base by more than the interval", "", "", ""])
    head = ["kernel", "class", "from", "measured over projected", "full budget", "half width"]
    note = (
        "Measured over projected: where four of five measured kernels of this class and duration lie. Full budget: what "
        "simulating more of the launch would change on the base, beside the instructions simulated here. Measured on silicon "
        "that exists; a design point was never measured, so that its interval is at least this wide."
    )
    return Table(head, rows, 3, note)


def counts(results: StudyResults) -> tuple[int, int]:
    """Designs other than the base, and those that differ from it by more than the interval."""
    others = results.designs[results.designs["point"] != results.base.id]
    return len(others), int(others["is_distinguishable"].sum())


def rejected(results: StudyResults) -> Table | None:
    rows = [[p.id, "rejected", p.rejected] for p in results.rejected]
    rows += [[f"{point}, {kernel}", "failed", reason] for point, kernel, reason in results.failed]
    return Table(["point", "", "reason"], rows, 3) if rows else None


def changed_values(results: StudyResults) -> Iterator[tuple[str, Table]]:
    """Exact values that each compared design changes, with its chip's digest."""
    base = results.chips[results.base.base]
    for point in compared_points(results):
        if point.overrides:
            chip = with_overrides(results.chips[point.base], point.overrides)
            rows = [
                [path, str(base.provenance[path].value) if path in base.provenance else "-", str(origin.value)]
                for path, origin in chip.provenance.origins.items()
                if any(text.startswith(path + "=") for text in point.overrides)
            ]
            yield f"{titled(results, point.id)}, chip {point.digest[:16]}", Table(["path", "base", "here"], rows, 3)
