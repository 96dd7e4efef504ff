"""The dashboard of a validation run: one page that opens from disk, every figure of it from the evaluation."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from statistics import mean
from typing import Any

from simulator.projection.interval import ALL, DESIGN, KERNEL, MEMORY, OTHER, TENSOR, duration_buckets
from simulator.report import validation_figures
from simulator.report.format import signed_percent, whole, words
from simulator.report.projection_html import render_template
from simulator.report.study_style import Drawing
from simulator.report.study_tables import Table
from simulator.report.summary import Fact
from simulator.validation.errors import POINTS, Agreement, ErrorSummary
from simulator.validation.evaluation import FEWEST_CONFIGS, FIT_SPLIT, REPORTED_SPLIT, SplitEvaluation
from simulator.validation.predictions import STALL
from simulator.validation.published import DIGEST_DIGITS, Published

N_WORST = 20
N_IDS = 12
CLASSES = (TENSOR, MEMORY, OTHER, ALL)
ERROR_HEAD = ("n", "MAPE", "median", "p90", "bias", "worst (case)")


def render_dashboard(run: Published, commands: Sequence[str]) -> str:
    """The HTML page. ``commands``: what makes it again."""
    splits = run.evaluation.splits
    reported = splits.get(REPORTED_SPLIT) or next(iter(splits.values()), None)
    return render_template(
        "validation.html.j2",
        title=f"How well {run.chip} is projected",
        sub=f"{run.evaluation.n_supported} of {run.evaluation.n_cases} rows of {run.measured_name} projected; figures are of the "
        f"split {REPORTED_SPLIT}, to which nothing was fitted, unless a table says otherwise.",
        tiles=_tiles(run, reported) if reported else [],
        sections=[*(_measured(run, reported) if reported else ()), *_rest(run)],
        foot=list(_foot(run)),
        commands=commands,
    )


def _tiles(run: Published, split: SplitEvaluation) -> Iterator[Fact]:
    yield Fact("Kernels", f"{split.n_supported} of {split.n_with_cubin}", "compiled kernels projected")
    if split.total is not None:
        yield Fact("Mean error", f"{split.total.mape:.1f} %", f"of the cycles; bias {signed_percent(split.total.bias)}")
        yield Fact("Median error", f"{split.total.median:.1f} %", f"90 % are within {split.total.p90:.1f} %")
    if split.rankings:
        yield Fact("Kendall tau", f"{mean(r['tau'] for r in split.rankings):.2f}", f"over {len(split.rankings)} problems")
    if run.coverage is not None:
        yield Fact("Inside the interval", f"{run.coverage.inside:.0f} %", f"{run.coverage.wanted:.0f} % are meant to be")


def _measured(run: Published, split: SplitEvaluation) -> Iterator[dict[str, Any]]:
    yield _section("Cycles by kernel family", [validation_figures.scatter(run.cases)], [_families(split)])
    groups = _groups(split, "measured duration", split.buckets), _groups(split, "kernel class", split.classes)
    yield _section("Cycles by duration and class", [validation_figures.errors(run.cases)], groups)
    yield _section("The interval of a projection", [], [_intervals(run)], _coverage(run))
    yield _section("Time", [], [_times(split)], "Microseconds at the modelled clock against the profiler's duration.")
    counters = [item for item in split.agreements if not item.counter.startswith((STALL, "ncu_time"))]
    stalls = [item for item in split.agreements if item.counter.startswith(STALL)]
    yield _section("Counters", [], [_counters("counter", counters)])
    text = "Share of the resident warps' time by reason, projected minus measured, in points."
    yield _section("Stall reasons", [], [_counters("reason", stalls)], text)
    text = f"Problems with at least {FEWEST_CONFIGS} measured configurations. Regret: what the configuration that the projection "
    yield _section("Rankings", [], [_rankings(split)], text + "picks costs over the best one.")
    yield _section("Largest errors", [], [_worst(run)])
    fit = run.evaluation.splits.get(FIT_SPLIT)
    if fit is not None and fit is not split:
        yield _section("The split that the model was calibrated on", [], [_groups(fit, "family", fit.families, fit.total)])


def _rest(run: Published) -> Iterator[dict[str, Any]]:
    if len(run.unsupported):
        yield _section("Not projected", [], [_unsupported(run)])


def _section(title: str, drawings: Sequence[Drawing], tables: Sequence[Table], text: str = "") -> dict[str, Any]:
    figures = [
        {"source": "data:image/svg+xml;base64," + base64.b64encode(d.svg()).decode(), "alt": d.alt, "caption": d.caption}
        for d in drawings
    ]
    return {"title": title, "figures": figures, "tables": [t for t in tables if t.rows], "text": text}


def _families(split: SplitEvaluation) -> Table:
    """Errors, rankings and formulas of each family and of all."""
    rows = []
    named = {**split.families, **({ALL: split.total} if split.total is not None else {})}
    for family, summary in named.items():
        ranked = [r for r in split.rankings if family in (r["kernel"], ALL)]
        tau, regret = (mean(r[name] for r in ranked) if ranked else None for name in ("tau", "regret"))
        order = ["", ""] if tau is None or regret is None else [f"{tau:.2f}", f"{100 * regret:.1f} %"]
        formulas = [groups.get(family) for groups in split.baselines.values()]
        n_compiled = split.n_with_cubin if family == ALL else split.compiled.get(family, 0)
        missing = f" of {n_compiled}" if n_compiled != summary.n else ""
        cells = _errors(split, family, summary)
        others = (f"{formula.mape:.0f} %" if formula else "" for formula in formulas)
        rows.append([family, f"{cells[0]}{missing}", *cells[1:], *order, *others])
    head = ["family", *ERROR_HEAD, "tau", "regret", *split.baselines]
    note = (
        "Error: projected over measured SM cycles (sm__cycles_elapsed.max of one cold launch) minus one; MAPE, median and p90 of "
        "its size, bias with its sign (positive: projected too slow). tau: Kendall's, mean over problems; regret: mean. Roofline "
        "and the wave model (efficiency, bandwidth and overhead for each family, fitted on split fit) are what a formula reaches "
        "on the same cases: mean error."
    )
    return Table(head, rows, 1, note, frozenset({len(rows) - 1}))


def _groups(
    split: SplitEvaluation, title: str, groups: Mapping[str, ErrorSummary], total: ErrorSummary | None = None
) -> Table:
    named = {**groups, **({ALL: total} if total is not None else {})}
    rows = [[name, *_errors(split, name, summary)] for name, summary in named.items()]
    return Table([title, *ERROR_HEAD], rows)


def _errors(split: SplitEvaluation, name: str, summary: ErrorSummary) -> list[str]:
    worst = split.worst.get(name)
    furthest = f"{signed_percent(worst.error)} ({worst.id})" if worst else ""
    return [str(summary.n), *_figures(summary), furthest]


def _figures(summary: ErrorSummary) -> list[str]:
    sizes = (summary.mape, summary.median, summary.p90)
    return [*(f"{size:.1f} %" for size in sizes), signed_percent(summary.bias)]


def _times(split: SplitEvaluation) -> Table:
    rows = [[name, str(summary.n), *_figures(summary)] for name, summary in split.times.items()]
    return Table(["family", "n", "MAPE", "median", "p90", "bias"], rows, 1, "", frozenset({len(rows) - 1}))


def _intervals(run: Published) -> Table:
    order = [*duration_buckets(), ALL]
    rows = [
        [
            "generated designs" if s.of == DESIGN else "compiled kernels",
            s.kernel_class,
            s.duration,
            str(s.n),
            signed_percent(100 * (min(s.low, 1.0) - 1)),
            signed_percent(100 * (max(s.high, 1.0) - 1)),
        ]
        for s in sorted(run.spreads, key=lambda s: (s.of != KERNEL, CLASSES.index(s.kernel_class), order.index(s.duration)))
    ]
    return Table(["of", "class", "projected duration", "n", "low", "high"], rows, 3)


def _coverage(run: Published) -> str:
    text = (
        "Where four of five measured kernels lie, relative to the projection, by kernel class (uses tensor cores; moves data "
        "longer than its SMs work; other) and projected duration; groups with few cases use a wider one."
    )
    c = run.coverage
    if c is None:
        return text
    classes = ", ".join(f"{name} {share:.0f} %" for name, share in c.classes.items())
    return (
        f"{text} Checked: of {c.n} cases of split {REPORTED_SPLIT}, {c.inside:.0f} % ({classes}) lie inside intervals made from "
        f"the {c.n_made_from} cases of split {FIT_SPLIT} alone; {c.wanted:.0f} % are meant to. Those below use both splits."
    )


def _counters(title: str, items: Sequence[Agreement]) -> Table:
    rows = []
    for item in items:
        unit = "points" if item.unit == POINTS else "%"
        figures = ["missed a zero" if value is None else f"{value:.2f} {unit}" for value in (item.median, item.p90)]
        within = f"{item.within:.0f} % within {item.tolerance:g} {unit}"
        rows.append([words(item.counter.removeprefix(STALL)), str(item.n), *figures, within])
    return Table([title, "n", "median error", "p90", "cases"], rows)


def _rankings(split: SplitEvaluation) -> Table:
    rows = [
        [r["kernel"], r["dtype"], _plain(r["shape"]), str(r["n"]), f"{r['tau']:.2f}", f"{100 * r['regret']:.1f} %",
         f"{100 * r['median_error']:.1f} %"]
        for r in split.rankings
    ]  # fmt: skip
    return Table(["family", "dtype", "problem", "configurations", "tau", "regret", "median error"], rows, 3)


def _worst(run: Published) -> Table:
    cases = run.cases[run.cases["split"] == REPORTED_SPLIT]
    cases = cases.sort_values("error", key=abs, ascending=False, kind="stable").head(N_WORST)
    rows = [
        [str(c["id"]), c["family"], c["dtype"], _plain(c["shape"]), _plain(c["config"]), whole(c["measured"]),
         whole(c["predicted"]), signed_percent(c["error"])]
        for c in cases.to_dict("records")
    ]  # fmt: skip
    return Table(["case", "family", "dtype", "problem", "configuration", "measured", "projected", "error"], rows, 5)


def _unsupported(run: Published) -> Table:
    rows = []
    for (family, reason), part in run.unsupported.groupby(["family", "reason"]):
        more = f" and {len(part) - N_IDS} more" if len(part) > N_IDS else ""
        rows.append([str(family), str(reason), ", ".join(part["id"].head(N_IDS)) + more, str(len(part))])
    return Table(["family", "reason", "cases", "n"], rows, 3)


def _plain(text: str) -> str:
    """A JSON object as words: ``{"M": 64, "trans": "nt"}`` -> ``M 64, trans nt``."""
    return text.strip("{}").replace('"', "").replace(":", "")


def _foot(run: Published) -> Iterator[tuple[str, str]]:
    yield "chip", f"{run.chip}, configuration {run.chip_digest[:DIGEST_DIGITS]}"
    yield "measured data", f"{run.measured_name}, SHA-256 {run.measured_digest}"
    yield "predictions", f"SHA-256 {run.predictions_digest}"
    yield "simulator", " and ".join(run.simulators) or "not recorded"
    other = [digest[:DIGEST_DIGITS] for digest in run.chip_digests if digest != run.chip_digest]
    if other:
        yield "caution", f"predicted with another configuration of the chip: {' and '.join(other)}"
