"""``kernelcast access``: wavefronts, bank conflicts and sectors of a memory instruction, and what removes them."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict
from typing import Annotated, Any

import numpy as np
import typer

from simulator.cli.lane_offsets import evaluate_lanes, parse_lanes
from simulator.cli.output import atomic_path, atomic_write, emit_json, read_text, require_columns, stdout
from simulator.errors import UserError
from simulator.hw.config import HardwareConfig
from simulator.hw.loader import load_hw
from simulator.lower.access_answer import (
    AccessAnswer,
    AccessPattern,
    access_costs,
    answer_access,
    bank_rules,
    l1_geometry,
)
from simulator.lower.access_kinds import KIND_NAMES, KIND_RULES, AccessKind, check_access, kind_named
from simulator.lower.bank_use import bank_use
from simulator.lower.global_access import sector_use
from simulator.report.bank_picture import bank_text, sector_text

BATCH_COLUMNS = ("kind", "width_bytes", "lane_offsets")
ANSWER_COLUMNS = ("wavefronts", "ideal_wavefronts", "bank_conflicts", "sectors")
_INCREMENT_NOTE = (
    "atoms counts increments by one, which combine lanes of equal address; other atomics: atoms_rmw, atoms_cas"
)


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command("access")(access_command)


def access_command(
    kind: Annotated[str | None, typer.Argument(metavar="KIND", help=f"One of {', '.join(KIND_NAMES)}.")] = None,
    width: Annotated[
        int | None, typer.Option("--width", help="Bytes per lane; ldsm, ldsmt, stsm: number of 8x8 matrices.")
    ] = None,
    lanes: Annotated[
        str | None, typer.Option("--lanes", metavar="'O0 O1 ..'", help="Byte offset of every lane, -1 = inactive.")
    ] = None,
    expr: Annotated[
        str | None, typer.Option("--expr", help="Byte offset as an integer expression, e.g. '128*lane + 16*(lane%4)'.")
    ] = None,
    hw: Annotated[str | None, typer.Option("--hw", help="A chip, or a path to a .yaml file.")] = None,
    png: Annotated[str | None, typer.Option("--png", metavar="FILE.png", help="Draw the picture into a file.")] = None,
    batch: Annotated[
        str | None, typer.Option("--batch", metavar="FILE.csv", help="Rows of kind,width_bytes,lane_offsets.")
    ] = None,
    output: Annotated[str | None, typer.Option("-o", "--output", metavar="OUT.csv", help="Answers of --batch.")] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Override a value of the chip.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Write one JSON document to stdout.")] = False,
) -> None:
    """Wavefronts, bank conflicts and sectors of one memory instruction, and a layout that removes the conflicts."""
    if hw is None:
        raise UserError("access needs --hw, the name of a chip or a path to its .yaml file")
    chip = load_hw(hw, tuple(overrides or ()))
    if batch is not None:
        if any(option is not None for option in (kind, width, lanes, expr, png)):
            raise UserError("--batch takes kind, width and lanes from its file: leave KIND and those options away")
        _answer_batch(batch, output, chip, json)
        return
    if output is not None:
        raise UserError("-o goes with --batch; use --json for one pattern")
    if kind is None or width is None or (lanes is None) == (expr is None):
        raise UserError("access needs KIND, --width, and either --lanes or --expr (or --batch FILE.csv -o OUT.csv)")
    the_kind = kind_named(kind)
    offsets = parse_lanes(lanes) if lanes is not None else evaluate_lanes(expr or "", chip.sm.warp_size)
    answer = answer_access(the_kind, width, offsets, chip)
    if png is not None:
        _draw(answer, offsets, chip, png)
    if json:
        emit_json(answer.to_json())
    else:
        _print(answer, offsets, chip)


def _print(answer: AccessAnswer, offsets: np.ndarray, chip: HardwareConfig) -> None:
    console = stdout()
    console.print(_headline(answer, chip), style="bold", soft_wrap=True)
    if KIND_RULES[answer.kind].is_shared:
        picture = bank_text(bank_use(answer.kind, answer.width_bytes, offsets, bank_rules(chip)))
    else:
        l1 = l1_geometry(chip)
        used = sector_use(answer.width_bytes, offsets, l1.sector_bytes, l1.line_bytes)
        picture = sector_text(*used, l1.sector_bytes)
    console.print(picture, soft_wrap=True, end="")
    advice = answer.advice
    if advice.suggestion is not None:
        console.print(f"suggestion: {advice.suggestion.text}", style="bold green", soft_wrap=True)
    for other in advice.alternatives:
        console.print(f"or: {other.text}", soft_wrap=True)
    if advice.reason is not None:
        console.print(f"no suggestion: {advice.reason}", soft_wrap=True)
    if answer.kind is AccessKind.ATOMS:
        console.print(_INCREMENT_NOTE, style="dim", soft_wrap=True)


def _headline(answer: AccessAnswer, chip: HardwareConfig) -> str:
    rules, cost = KIND_RULES[answer.kind], answer.cost
    one, many = ("matrix", "matrices") if rules.is_matrix else ("byte per lane", "bytes per lane")
    what = f"{rules.name}, {answer.width_bytes} {one if answer.width_bytes == 1 else many}"
    if not rules.is_shared:
        return (
            f"{what}, on {chip.name}: sectors {cost.sectors}, lines {cost.lines}, ideal sectors {answer.ideal_sectors}"
        )
    banks = f"{chip.shared_memory.n_banks} banks of {chip.shared_memory.bank_width_bytes} bytes"
    return (
        f"{what}, on {chip.name} ({banks}): wavefronts {cost.wavefronts}, ideal {cost.ideal_wavefronts}, "
        f"bank conflicts {cost.bank_conflicts}"
    )


def _draw(answer: AccessAnswer, offsets: np.ndarray, chip: HardwareConfig, png: str) -> None:
    """The picture as a PNG file; the drawing library is only loaded here."""
    from simulator.report.bank_figure import save_bank_png, save_sector_png

    title = _headline(answer, chip)
    with atomic_path(png) as path:
        if KIND_RULES[answer.kind].is_shared:
            save_bank_png(bank_use(answer.kind, answer.width_bytes, offsets, bank_rules(chip)), path, title)
        else:
            l1 = l1_geometry(chip)
            used = sector_use(answer.width_bytes, offsets, l1.sector_bytes, l1.line_bytes)
            save_sector_png(*used, l1.sector_bytes, path, title)


def _answer_batch(batch: str, output: str | None, chip: HardwareConfig, json: bool) -> None:
    """Answer every row of a CSV file; the answers go to ``output``, and to stdout with ``json``."""
    if output is None and not json:
        raise UserError("--batch needs -o OUT.csv or --json")
    reader = csv.DictReader(io.StringIO(read_text(batch, "batch file")))
    header = list(reader.fieldnames or ())
    require_columns(batch, header, BATCH_COLUMNS)
    rows: list[dict[str, Any]] = []
    patterns: list[AccessPattern] = []
    for row in reader:
        try:
            patterns.append(_pattern(row, chip))
        except UserError as error:
            raise UserError(f"{batch} line {reader.line_num}: {error}") from error
        rows.append(row)
    for row, cost in zip(rows, access_costs(patterns, chip), strict=True):
        row.update({name: value for name, value in asdict(cost).items() if name in ANSWER_COLUMNS})
    if output is not None:
        atomic_write(output, _to_csv(rows, header))
    if json:
        emit_json({"rows": rows})
    else:
        stdout().print(f"{len(rows)} patterns answered: {output}", soft_wrap=True)


def _pattern(row: dict[str, Any], chip: HardwareConfig) -> AccessPattern:
    """The question of one row, checked."""
    if None in row:
        raise UserError("the row has more cells than the header has columns")
    kind_text, width_text, lanes_text = ((row.get(column) or "").strip() for column in BATCH_COLUMNS)
    kind = kind_named(kind_text)
    try:
        width = int(width_text)
    except ValueError:
        raise UserError(f"column width_bytes is '{width_text}', which is not a whole number") from None
    offsets = parse_lanes(lanes_text, "column lane_offsets")
    check_access(kind, width, offsets, chip.sm.warp_size)
    return AccessPattern(kind, width, offsets)


def _to_csv(rows: list[dict[str, Any]], header: list[str]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(dict.fromkeys([*header, *ANSWER_COLUMNS])), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
