"""``kernelcast demo``: real kernels, projected without a GPU, beside what silicon measured."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from simulator.cli.output import atomic_write, emit_json, stderr, stdout
from simulator.cli.progress import announce_compilation, progress

if TYPE_CHECKING:
    from simulator.report.comparison import Compared


def register(app: typer.Typer) -> None:
    """Add ``demo`` to the command line."""
    app.command("demo")(demo)


def demo(
    report: Annotated[Path, typer.Option(help="HTML page to write.")] = Path("out/demo.html"),
    jobs: Annotated[int | None, typer.Option(min=1, help="Worker processes (default: one per core).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Project real compiled kernels and print them beside what silicon measured."""
    from simulator.cli.validate import n_cores
    from simulator.report import comparison
    from simulator.validation.demo_cases import load_demo
    from simulator.validation.predict import jobs_for, project_all
    from simulator.validation.warm_up import ensure_compiled

    started = time.perf_counter()
    cases = load_demo()
    stderr.print(f"Replaying {len(cases.cases)} compiled kernels on the model of {cases.hw}")
    work = jobs_for([item.case for item in cases.cases], cases.cubins, cases.hw)
    ensure_compiled(cases.hw, announce_compilation)
    with progress("Projecting", len(work)) as advance:
        outcomes = project_all(work, jobs or n_cores(), lambda outcome: advance())
    rows = [
        comparison.Compared(item.name, item.tile, item.cycles, item.time_us, outcome.projection, outcome.reason)
        for item, outcome in zip(cases.cases, outcomes, strict=True)
    ]
    report.parent.mkdir(parents=True, exist_ok=True)
    subtitle = f"Compiled kernels replayed on the model of {cases.hw}; nothing measured goes in"
    atomic_write(report, comparison.page("kernelcast demo", subtitle, rows, comparison.average(rows)))
    if as_json:
        emit_json({"hw": cases.hw, "report": str(report), "cases": [_document(row) for row in rows]})
        return
    stdout().print(comparison.table(rows))
    stdout().print(f"\n{comparison.average(rows)}; {time.perf_counter() - started:.0f} s in all")
    stdout().print(f"Report: {report.resolve()}")


def _document(row: Compared) -> dict[str, object]:
    projection = row.projection
    return {
        "kernel": row.name,
        "tile": row.tile,
        "cycles": projection.cycles if projection else None,
        "measured_cycles": row.measured_cycles,
        "error_percent": row.error if projection else None,
        "reason": row.reason,
    }
