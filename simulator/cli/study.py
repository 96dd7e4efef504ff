"""``kernelcast study``: which hardware parameter is worth its cost, for which kernels, and how sure that is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simulator.cli.output import atomic_path, atomic_write, emit_json, read_text, stderr, stdout, to_json
from simulator.cli.progress import announce_compilation, progress
from simulator.errors import UserError

if TYPE_CHECKING:
    from simulator.study.folder import StudyFolder
    from simulator.study.results import StudyResults


def register(app: typer.Typer) -> None:
    """Add ``study`` to the command line."""
    app.command("study")(study)


def study(
    file: Annotated[Path, typer.Argument(metavar="STUDY.yaml", help="What to ask: chip, axes, kernels, objectives.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Folder for tables, figures and report.")],
    jobs: Annotated[int | None, typer.Option(min=0, help="Worker processes (default: one per core; 0: in this one).")] = None,
    dask: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Dask cluster: tcp://HOST:PORT, or local:N.")] = None,
    resume: Annotated[bool, typer.Option(help="Go on with the study that the folder holds.")] = False,
    store: Annotated[Path | None, typer.Option(metavar="DIR", help="Result store (default: the user's cache).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write one JSON document to stdout.")] = False,
) -> None:
    """Run a trade study: results table, figures, and one self-contained HTML report."""
    from simulator.cli.validate import n_cores
    from simulator.report.study import report_files, summary_text
    from simulator.study.execute import backend_for
    from simulator.study.folder import MANIFEST, StudyFolder
    from simulator.study.run import Study
    from simulator.study.store import ResultStore
    from simulator.validation.warm_up import ensure_compiled

    text = read_text(file, "study file")
    backend = backend_for(n_cores() if jobs is None else jobs, dask)
    asked = Study.from_file(file)
    folder = StudyFolder(output, text)
    folder.claim(resume)
    atomic_write(folder.file(MANIFEST), to_json(folder.manifest()) + "\n")
    ensure_compiled(next(iter(asked.chips)), announce_compilation)
    kept = ResultStore() if store is None else ResultStore(store)
    try:
        results = asked.run(backend, kept, progress)
    except KeyboardInterrupt:
        stderr.print(f"Stopped. Every finished point is kept: go on with kernelcast study {file} -o {output} --resume")
        raise
    _write_tables(folder, results)
    command = f"kernelcast study {file.name} -o {output.name}"
    for name, content in report_files(results, text, command):
        folder.file(name).parent.mkdir(exist_ok=True)
        atomic_write(folder.file(name), content)
    if as_json:
        emit_json(_document(folder, results))
    else:
        stdout().print(summary_text(results))
        stdout().print(f"Report: {folder.file('report.html').resolve()}")


def _write_tables(folder: StudyFolder, results: StudyResults) -> None:
    """The rows as Parquet and CSV, and the derived tables as CSV."""
    frame = results.frame
    try:
        with atomic_path(folder.file("results.parquet")) as path:
            frame.to_parquet(path, engine="pyarrow", index=False)
        for name, table in {
            "results": frame,
            "designs": results.designs,
            "tornado": results.tornado,
            "knees": results.knees,
        }.items():
            with atomic_path(folder.file(f"{name}.csv")) as path:
                table.to_csv(path, index=False, lineterminator="\n")
    except OSError as error:
        raise UserError(f"tables cannot be written to {folder.path}: {error.strerror}; go on with --resume") from error


def _document(folder: StudyFolder, results: StudyResults) -> dict[str, Any]:
    from simulator.report.study import answer

    best = results.best(results.spec.objectives[0])
    return {
        "study": results.spec.name,
        "folder": str(folder.path),
        "report": str(folder.file("report.html")),
        "points": len(results.points),
        "rejected": [{"point": point.id, "reason": point.rejected} for point in results.rejected],
        "failed": [dict(zip(("point", "kernel", "reason"), row, strict=True)) for row in results.failed],
        "corrupt_results_recomputed": results.n_corrupt,
        "best": {"point": best["point"], "speedup": best["speedup"], "is_distinguishable": bool(best["is_distinguishable"])},
        "half_width": results.half_width,
        "answer": answer(results),
    }
