"""``kernelcast compare``: what changed between two projections, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from simulator.cli.output import emit_json, read_text, stdout


def register(app: typer.Typer) -> None:
    """Add ``compare`` to the command line."""
    app.command("compare")(compare)


def compare(
    a: Annotated[Path, typer.Argument(metavar="A.json", help="A result of 'project --json'.")],
    b: Annotated[Path, typer.Argument(metavar="B.json", help="Another one.")],
    json: Annotated[bool, typer.Option("--json", help="Write one JSON document to stdout.")] = False,
) -> None:
    """Attribute the difference between two projections to causes, waits, bytes and code."""
    from simulator.projection.difference import differ
    from simulator.projection.document import parse_projection
    from simulator.report.difference_text import render

    first, second = (parse_projection(read_text(path, "result"), str(path)) for path in (a, b))
    found = differ(first, second)
    if json:
        emit_json(found.to_json())
    else:
        stdout().print(render(found, str(a), str(b)))
