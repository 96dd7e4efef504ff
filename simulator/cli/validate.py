"""``kernelcast validate``: predict every measured kernel of a file, and say how far off we are."""

from __future__ import annotations

import gzip
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from simulator.cli.output import atomic_path, atomic_write, emit_json, require_writable, stderr, stdout
from simulator.cli.progress import announce_compilation, progress
from simulator.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

    from simulator.validation.published import Published

PREDICTIONS, ERRORS, INTERVALS, PAGE = "predictions.csv.gz", "errors.csv", "intervals.yaml", "index.html"
DESIGNS = "tile_designs.csv"


def register(app: typer.Typer) -> None:
    """Add ``validate`` to the command line."""
    app.command("validate")(validate)


def validate(
    measured: Annotated[Path, typer.Option(help="CSV or CSV.gz with the columns id, cubin, launch; more if measured.")],
    hw: Annotated[str, typer.Option(help="Chip: a name, or a YAML file.")],
    cubins: Annotated[Path | None, typer.Option(help="Folder or tar archive of <cubin>.cubin files.")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="CSV to write: one row per case, in file order.")] = None,
    kept: Annotated[
        list[Path] | None, typer.Option("--from", metavar="PREDICTIONS", help="Read what an earlier -o wrote; simulate nothing.")
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--publish", metavar="DIR", help="Write predictions, error table, intervals and the dashboard index.html there."
        ),
    ] = None,
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
    from simulator.validation.evaluation import evaluate
    from simulator.validation.measured import read_measured, select

    overrides = tuple(set_values or ())
    _check_choice(cubins, output, kept, folder, overrides)
    chip = load_hw(hw, overrides)
    chip.execution_sections()
    whole_file = read_measured(measured)
    frame = select(whole_file, split, _listed(ids), limit)
    if output is not None:
        require_writable(output)
    if kept:
        frame, predicted = _read(kept, frame, whole_file)
    else:
        assert cubins is not None
        predicted = _simulate(frame, cubins, hw, overrides, jobs)
    written = []
    if output is not None:
        with atomic_path(output) as temporary:
            predicted.to_csv(temporary, index=False, compression="gzip" if output.suffix == ".gz" else None)
        written.append(output)
    if folder is not None:
        from simulator.validation.published import publish

        run = publish(frame, predicted, whole_file, chip, measured, folder / DESIGNS)
        evaluation = run.evaluation
        written += _publish(run, predicted, folder, measured, hw)
    else:
        evaluation = evaluate(frame, predicted, chip, whole_file)
    if as_json:
        emit_json({"output": str(output or folder), "hw": chip.name, "hw_digest": chip.digest(), **asdict(evaluation)})
    else:
        stdout().print(validation_report.render(evaluation))
        for path in written:
            stderr.print(f"Wrote {path}", soft_wrap=True)


def _check_choice(
    cubins: Path | None, output: Path | None, kept: Sequence[Path] | None, folder: Path | None, overrides: Sequence[str]
) -> None:
    if kept and cubins is not None:
        raise UserError("--from reads predictions and simulates nothing: leave out --cubins, or leave out --from")
    if not kept and cubins is None:
        raise UserError("Missing option '--cubins': give the compiled kernels, or earlier predictions with --from")
    if output is None and folder is None and not kept:
        raise UserError("Missing option '--output' / '-o': give the CSV to write, or a folder with --publish")
    if folder is not None and overrides:
        raise UserError("--publish says how well a chip is projected: leave out --set, which makes it another chip")
    if folder is not None and folder.exists() and not folder.is_dir():
        raise UserError(f"--publish {folder} is a file; give a folder")


def _read(kept: Sequence[Path], frame: pd.DataFrame, whole_file: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The chosen rows that have predictions, and these."""
    from simulator.validation.predictions import read_predictions

    predicted = read_predictions(kept, whole_file)
    predicted = predicted[predicted["id"].isin(frame["id"])].reset_index(drop=True)
    if predicted.empty:
        raise UserError(f"{' and '.join(map(str, kept))} predicts none of the chosen cases")
    return frame[frame["id"].isin(predicted["id"])].reset_index(drop=True), predicted


def _simulate(frame: pd.DataFrame, cubins: Path, hw: str, overrides: tuple[str, ...], jobs: int | None) -> pd.DataFrame:
    from simulator.validation.cubins import locate_cubins
    from simulator.validation.measured import cases_of
    from simulator.validation.predict import jobs_for, project_all
    from simulator.validation.predictions import outcome_row, to_frame
    from simulator.validation.warm_up import ensure_compiled

    work = jobs_for(cases_of(frame), locate_cubins(cubins), hw, overrides)
    ensure_compiled(hw, announce_compilation)
    with progress("Projecting", len(work)) as advance:
        outcomes = project_all(work, jobs or n_cores(), lambda outcome: advance(f"case {outcome.case.id}"))
    return to_frame([outcome_row(outcome) for outcome in outcomes])


def _publish(run: Published, predicted: pd.DataFrame, folder: Path, measured: Path, hw: str) -> list[Path]:
    """Write everything that is kept of a run; the text of every file is made before the first one is written."""
    from simulator.report.validation_dashboard import render_dashboard
    from simulator.validation.error_table import error_table

    again = f"kernelcast validate --measured {measured} --hw {hw}"
    commands = (
        f"{again} --cubins CUBINS -o out/predictions.csv      # simulates",
        f"{again} --from {folder / PREDICTIONS} --publish {folder}      # this page and its tables, from the predictions",
    )
    texts = {
        ERRORS: error_table(run.evaluation).to_csv(index=False, lineterminator="\n"),
        PAGE: render_dashboard(run, commands),
        **({INTERVALS: run.intervals()} if run.spreads else {}),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"folder {folder} cannot be made: {error.strerror}") from error
    atomic_write(folder / PREDICTIONS, gzip.compress(predicted.to_csv(index=False).encode(), mtime=0))
    for name, text in texts.items():
        atomic_write(folder / name, text)
    return [folder / name for name in (PREDICTIONS, *texts)]


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
