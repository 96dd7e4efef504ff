"""Ranked designs as text for a terminal."""

from __future__ import annotations

from pydantic import BaseModel
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from simulator.kernels.families import family_of
from simulator.report.format import duration, words
from simulator.tuning.families import title
from simulator.tuning.query import ENVELOPE, EXACT, Answer
from simulator.tuning.search import Tuned
from simulator.tuning.simulate import as_json
from simulator.tuning.words import describe


def render(tuned: Tuned, top: int) -> RenderableType:
    """The ranked table, and what it rests on."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 1))
    moves_data = family_of(tuned.best.design).moves_data
    speed = "GB/s" if moves_data else "TFLOP/s"
    for name in ("#", "design", "time", speed, "of bound", "occ.", "bound by"):
        is_text = name in ("design", "bound by")
        table.add_column(name, justify="left" if is_text else "right", no_wrap=name != "design")
    for number, one in enumerate(tuned.ranked[:top], start=1):
        table.add_row(
            str(number),
            describe(as_json(one.design)),
            duration(one.time_us),
            _speed(one.gigabytes_per_second if moves_data else one.tflops),
            f"{one.bound_share:.0%}",
            f"{one.occupancy:.0%}",
            words(one.bound_by),
            style="bold green" if number == 1 else "",
        )
    lines: list[RenderableType] = [Text.assemble((title(tuned.problem), "bold"), f" on {tuned.hw}"), table]
    note = f"{tuned.n_space:,} designs screened, {tuned.n_simulated} simulated in parts, the best {len(tuned.ranked)} whole"
    lines.append(Text(f"{note}; {tuned.seconds:.1f} s", style="dim"))
    if tuned.failed:
        lines.append(Text(f"{len(tuned.failed)} designs could not run: {tuned.failed[0].failure}", style="yellow"))
    if any(_adds(one.design) for one in tuned.ranked[:top]):
        lines.append(Text("Splits and streams of k add into C: it must be zero before; that is not in the time.", style="yellow"))
    return Group(*lines)


def _speed(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2f}"


def _adds(design: BaseModel) -> bool:
    return getattr(design, "split_k", 1) > 1 or bool(getattr(design, "stream_k", False))


def batch_line(tuned: Tuned) -> Text:
    """One problem of many."""
    best = tuned.best
    head = f"{title(tuned.problem):34} {duration(best.time_us):>9}  {words(best.bound_by):13} "
    return Text(head + describe(as_json(best.design)))


def render_answer(answer: Answer) -> RenderableType:
    """What a database says of a shape, and why."""
    entry = answer.entry
    shape = "x".join(map(str, answer.shape.values()))
    tuned = "x".join(map(str, entry.shape.values()))
    if answer.kind == EXACT:
        why = f"exact: tuned for this shape, {duration(entry.time_us)}"
    elif answer.kind == ENVELOPE:
        low, high = ("x".join(map(str, entry.envelope[side].values())) for side in ("low", "high"))
        why = f"envelope: tuned for {tuned}, within {entry.envelope['loss']:.0%} of the best from {low} to {high}"
    else:
        why = f"fallback: nothing is known here; a design that loses {entry.fallback['expected_loss']:.0%} on average"
    version = "" if answer.to_json()["is_current"] else f"\nby another version of the simulator ({entry.version})"
    return Group(
        Text.assemble((f"{entry.family} {shape} {entry.dtype}", "bold"), f" on {entry.chip}: {describe(answer.design)}"),
        Text(why + version, style="dim"),
    )
