"""A progress bar on stderr, for runs of many cases."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from simulator.cli.output import stderr


class Advance(Protocol):
    """Marks one case as done; ``note`` appears beside the bar."""

    def __call__(self, note: str = "") -> None: ...


def announce_compilation() -> None:
    """Say why the first run of a version takes longer."""
    stderr.print("Compiling the simulator: once per version, one to two minutes")


@contextmanager
def progress(label: str, total: int) -> Iterator[Advance]:
    """A bar of ``total`` cases; on a stderr that is no terminal, a line at every tenth part."""
    if stderr.is_terminal:
        yield from _bar(label, total)
    else:
        yield _lines(label, total)


class _RateColumn(ProgressColumn):
    """Cases a second, of late."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:.1f}/s", style="progress.data.speed")


def _bar(label: str, total: int) -> Iterator[Advance]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _RateColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("[dim]{task.fields[note]}"),
    )
    with Progress(*columns, console=stderr, transient=True) as bar:
        task = bar.add_task(label, total=total, note="")

        def advance(note: str = "") -> None:
            bar.update(task, advance=1, note=note)

        yield advance


def _lines(label: str, total: int) -> Advance:
    n_done = 0

    def advance(note: str = "") -> None:
        nonlocal n_done
        n_done += 1
        if n_done == total or n_done * 10 // total > (n_done - 1) * 10 // total:
            stderr.print(f"{label}: {n_done} of {total}")

    return advance
