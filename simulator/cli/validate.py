"""``kernelcast validate``: predict every measured kernel of a file, and say how far off we are."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from simulator.cli.output import atomic_path, emit_json, require_writable, stderr, stdout
from simulator.cli.progress import announce_compilation, progress
from simulator.errors import UserError


def register(app: typer.Typer) -> None:
    """Add ``validate`` to the command line."""
    app.command("validate")(validate)


def validate(
    measured: Annotated[Path, typer.Option(help="CSV or CSV.gz with the columns id, cubin, launch; more if measured.")],
    cubins: Annotated[Path, typer.Option(help="Folder or tar archive of <cubin>.cubin files.")],
    hw: Annotated[str, typer.Option(help="Chip: a name, or a YAML file.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="CSV to write: one row per case, in file order.")],
    split: Annotated[str | None, typer.Option(help="Only the cases of this split.")] = None,
    ids: Annotated[str | None, typer.Option(help="Only these cases: ids separated by commas.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many of the chosen cases.")] = None,
    set_values: Annotated[list[str] | None, typer.Option("--set", help="Override a hardware value: path=value.")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Worker processes (default: one per core).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Predict every measured kernel of a file, write predictions beside it, and print error tables."""
    from simulator.hw.loader import load_hw
    from simulator.report import validation_report
    from simulator.validation.cubins import locate_cubins
    from simulator.validation.evaluation import evaluate
    from simulator.validation.measured import cases_of, read_measured, select
    from simulator.validation.predict import jobs_for, project_all
    from simulator.validation.predictions import outcome_row, to_frame
    from simulator.validation.warm_up import ensure_compiled

    overrides = tuple(set_values or ())
    chip = load_hw(hw, overrides)
    chip.execution_sections()
    whole_file = read_measured(measured)
    frame = select(whole_file, split, _listed(ids), limit)
    require_writable(output)
    work = jobs_for(cases_of(frame), locate_cubins(cubins), hw, overrides)
    ensure_compiled(hw, announce_compilation)
    with progress("Projecting", len(work)) as advance:
        outcomes = project_all(work, jobs or n_cores(), lambda outcome: advance(f"case {outcome.case.id}"))
    predicted = to_frame([outcome_row(outcome) for outcome in outcomes])
    with atomic_path(output) as temporary:
        predicted.to_csv(temporary, index=False, compression="gzip" if output.suffix == ".gz" else None)
    evaluation = evaluate(frame, predicted, chip, whole_file)
    if as_json:
        emit_json({"output": str(output), "hw": chip.name, "hw_digest": chip.digest(), **asdict(evaluation)})
    else:
        stdout().print(validation_report.render(evaluation))
        stderr.print(f"Wrote {output}")


def n_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _listed(ids: str | None) -> list[str]:
    if ids is None:
        return []
    listed = [part.strip() for part in ids.split(",") if part.strip()]
    if not listed:
        raise UserError(f"--ids '{ids}' names no case; give ids separated by commas")
    return listed
