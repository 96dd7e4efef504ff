"""``kernelcast ncu``: measured counters beside a projection."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from simulator.cli.output import emit_json, read_text, stdout


def register(app: typer.Typer) -> None:
    """Add ``ncu`` to the command line."""
    app.command("ncu")(ncu)


def ncu(
    file: Annotated[Path, typer.Argument(metavar="FILE.csv", help="From ncu --csv --page raw (or --page details).")],
    result: Annotated[Path, typer.Option(metavar="R.json", help="The result of 'project --json' to set beside it.")],
    id: Annotated[str | None, typer.Option(help="ID of the launch in the CSV (default: the first of that kernel).")] = None,
    json: Annotated[bool, typer.Option("--json", help="Write one JSON document to stdout.")] = False,
) -> None:
    """Set a profiler's counters beside a projection, and name the first that explains a difference in time."""
    from simulator.projection.document import parse_projection
    from simulator.report.difference_text import render_profiler
    from simulator.validation.profiler_comparison import choose_launch, compare_with_profiler
    from simulator.validation.profiler_csv import read_launches

    document = parse_projection(read_text(result, "result"), str(result))
    launch = choose_launch(read_launches(read_text(file, "profiler CSV"), str(file)), document, id)
    found = compare_with_profiler(document, launch)
    if json:
        emit_json(found.to_json())
    else:
        stdout().print(render_profiler(found))
