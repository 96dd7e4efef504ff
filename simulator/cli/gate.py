"""``kernelcast gate``: fail a build when a result does not meet its expectations."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from simulator.cli.output import atomic_write, emit_json, read_text, require_writable, stderr, stdout, to_json

EXIT_FAILED = 1


def register(app: typer.Typer) -> None:
    """Add ``gate`` to the command line."""
    app.command("gate")(gate)


def gate(
    result: Annotated[Path, typer.Argument(metavar="RESULT", help="A JSON result of any command.")],
    expect: Annotated[
        list[str],
        typer.Option(metavar="EXPR", help="Expectations, as in: cycles <= 120000; smem.bank_conflicts == 0"),
    ],
    sarif: Annotated[Path | None, typer.Option(metavar="F.sarif", help="Write the outcome as SARIF 2.1.0.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Write one JSON document to stdout.")] = False,
) -> None:
    """Check expectations of a result: exit 0 if all hold, 1 if one does not."""
    from simulator.projection.document import parse_document
    from simulator.projection.expectation import SEPARATOR, check_expectations
    from simulator.projection.sarif import sarif_log
    from simulator.report.difference_text import render_checks

    if sarif is not None:
        require_writable(sarif)
    document = parse_document(read_text(result, "result"), str(result))
    checks = check_expectations(document, SEPARATOR.join(expect))
    passed = all(check.passed for check in checks)
    if sarif is not None:
        atomic_write(sarif, to_json(sarif_log(checks, result.as_posix(), version("kernelcast"))) + "\n")
        stderr.print(f"Wrote {sarif}")
    if json:
        rows = [{"expression": c.expression, "passed": c.passed, "values": c.values} for c in checks]
        emit_json({"passed": passed, "expectations": rows})
    else:
        stdout().print(render_checks(checks))
    if not passed:
        raise typer.Exit(EXIT_FAILED)
