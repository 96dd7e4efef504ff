"""``kernelcast occupancy``: CTAs per SM of a launch, what limits them, and the next cliff."""

from __future__ import annotations

import csv
import io
import json as json_text
from typing import Annotated, Any

import typer
from rich.table import Table

from simulator.cli.output import atomic_write, emit_json, read_text, require_columns, stdout
from simulator.errors import UserError
from simulator.hw.config import HardwareConfig
from simulator.hw.loader import load_hw
from simulator.projection.occupancy import Cliff, Occupancy, occupancy
from simulator.units import parse_quantity

BATCH_COLUMNS = ("hw", "regs", "threads", "smem")
OPTIONAL_COLUMNS = ("cluster", "carveout", "accumulator_regs")
_WORDS = {"ctas": "CTA slots", "registers": "registers", "smem": "shared memory", "warps": "warp slots"}


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command("occupancy")(occupancy_command)


def occupancy_command(
    hw: Annotated[str | None, typer.Option("--hw", help="A chip, or a path to a .yaml file.")] = None,
    regs: Annotated[int | None, typer.Option("--regs", help="Registers per thread.")] = None,
    threads: Annotated[int | None, typer.Option("--threads", help="Threads per CTA.")] = None,
    smem: Annotated[str, typer.Option("--smem", help="Shared memory per CTA, static and dynamic (48KiB works).")] = "0",
    cluster: Annotated[int, typer.Option("--cluster", help="CTAs per cluster.")] = 1,
    carveout: Annotated[
        str | None, typer.Option("--carveout", help="Shared-memory carve-out of the SM; default: the largest.")
    ] = None,
    accumulator_regs: Annotated[
        int, typer.Option("--accumulator-regs", help="Matrix accumulators per thread in a shared register file.")
    ] = 0,
    nonportable_cluster: Annotated[
        bool, typer.Option("--nonportable-cluster", help="The kernel asks for clusters above the portable size.")
    ] = False,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Override a value of the chip.")
    ] = None,
    batch: Annotated[
        str | None, typer.Option("--batch", metavar="FILE.csv", help="Rows of hw,regs,threads,smem.")
    ] = None,
    output: Annotated[str | None, typer.Option("-o", "--output", metavar="OUT.csv", help="Answers of --batch.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Write one JSON document to stdout.")] = False,
) -> None:
    """CTAs per SM of a launch, what limits them, and the next cliff."""
    changes = tuple(overrides or ())
    if batch is not None:
        _answer_batch(batch, output, hw, changes, json)
        return
    if hw is None or regs is None or threads is None:
        raise UserError("occupancy needs --hw, --regs and --threads (or --batch FILE.csv -o OUT.csv)")
    if output is not None:
        raise UserError("-o goes with --batch; use --json for one launch")
    answer = occupancy(
        load_hw(hw, changes),
        regs,
        threads,
        _bytes(smem, "--smem"),
        cluster=cluster,
        carveout=None if carveout is None else _bytes(carveout, "--carveout"),
        accumulator_regs=accumulator_regs,
        is_nonportable_cluster=nonportable_cluster,
    )
    if json:
        emit_json(answer.to_json())
    else:
        _print(answer)


def _bytes(text: str, option: str) -> int:
    try:
        value = parse_quantity(text, "bytes")
    except UserError as error:
        raise UserError(f"{option}: {error}") from error
    if not isinstance(value, int):
        raise UserError(f"{option}: '{text}' is not a whole number of bytes")
    return value


def _answer_batch(batch: str, output: str | None, hw: str | None, changes: tuple[str, ...], json: bool) -> None:
    """Answer every row of a CSV file; the answers go to ``output``, and to stdout with ``json``."""
    if output is None and not json:
        raise UserError("--batch needs -o OUT.csv or --json")
    reader = csv.DictReader(io.StringIO(read_text(batch, "batch file")))
    header = list(reader.fieldnames or ())
    require_columns(batch, header, [name for name in BATCH_COLUMNS if name != "hw" or hw is None])
    chips: dict[str, HardwareConfig] = {}
    rows: list[dict[str, Any]] = []
    for row in reader:
        try:
            rows.append({**row, **_answer_row(row, hw, changes, chips)})
        except UserError as error:
            raise UserError(f"{batch} line {reader.line_num}: {error}") from error
    if output is not None:
        atomic_write(output, _to_csv(rows, header))
    if json:
        emit_json({"rows": rows})
    else:
        stdout().print(f"{len(rows)} launches answered: {output}")


def _answer_row(
    row: dict[str, Any], hw: str | None, changes: tuple[str, ...], chips: dict[str, HardwareConfig]
) -> dict[str, Any]:
    name = (row.get("hw") or hw or "").strip()
    if not name:
        raise UserError("the column hw is empty")
    if name not in chips:
        chips[name] = load_hw(name, changes)
    wanted = {column: _cell(row, column) for column in OPTIONAL_COLUMNS if (row.get(column) or "").strip()}
    answer = occupancy(chips[name], *(_cell(row, column) for column in BATCH_COLUMNS[1:]), **wanted)  # type: ignore[arg-type]
    return answer.to_json()


def _cell(row: dict[str, Any], column: str) -> int:
    text = (row.get(column) or "").strip()
    if column in ("smem", "carveout"):
        return _bytes(text, f"column {column}")
    try:
        return int(text)
    except ValueError as error:
        raise UserError(f"column {column} is '{text}', which is not a whole number") from error


def _to_csv(rows: list[dict[str, Any]], header: list[str]) -> str:
    """Input columns, then the JSON keys; limits also one column each, lists joined by spaces, cliffs as JSON."""
    flat = [_flat(row) for row in rows]
    columns = list(dict.fromkeys([*header, *(key for row in flat for key in row)]))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return text.getvalue()


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    limits = {f"limits.{name}": value for name, value in row["limits"].items()}
    return {
        **row,
        "limiters": " ".join(row["limiters"]),
        "limits": json_text.dumps(row["limits"]),
        **limits,
        "cliffs": json_text.dumps(row["cliffs"]),
    }


def _print(answer: Occupancy) -> None:
    console = stdout()
    limiters = " and ".join(_WORDS[name] for name in answer.limiters)
    console.print(
        f"{_count(answer.ctas_per_sm, 'CTA')} per SM on {answer.hw}: {answer.warps_per_sm} warps, "
        f"{answer.occupancy:.1%} occupancy, limited by {limiters}"
    )
    table = Table("resource", "CTAs that fit", "a CTA takes", box=None)
    takes = {
        "registers": f"{answer.regs_allocated_per_warp:,} registers per warp",
        "smem": f"{answer.smem_allocated_per_cta:,} of {answer.smem_carveout:,} bytes",
        "warps": _count(answer.warps_per_cta, "warp"),
    }
    for name, count in answer.limits.items():
        table.add_row(
            _WORDS[name], str(count), takes.get(name, "1 slot"), style="bold" if name in answer.limiters else ""
        )
    console.print(table)
    for cliff in answer.cliffs:
        console.print(f"cliff: {_sentence(cliff)}")


def _sentence(cliff: Cliff) -> str:
    words = {"registers": ("register", "per thread"), "smem": ("byte", "of shared memory")}
    steps = []
    for name, change in cliff.change.items():
        noun, rest = words[name]
        steps.append(
            f"{_count(abs(change), noun)} {'more' if change > 0 else 'fewer'} {rest} ({cliff.reaches[name]:,})"
        )
    result = f"{_count(cliff.ctas_per_sm, 'CTA')} per SM" if cliff.ctas_per_sm else "the launch fails"
    return f"{' and '.join(steps)}: {result}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
