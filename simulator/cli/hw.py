"""``kernelcast hw``: which chips there are, what a chip's values are and where they come from, is a file valid."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from simulator.cli.output import emit_json, stdout
from simulator.errors import UserError
from simulator.hw.catalog import chip_names
from simulator.hw.config import HardwareConfig
from simulator.hw.consumers import consumers
from simulator.hw.loader import load_hw
from simulator.hw.provenance import Origin
from simulator.hw.schema import did_you_mean
from simulator.units import format_quantity, unit_of

hw_app = typer.Typer(help="Chips: list them, show a value with its source, check a file.", rich_markup_mode=None)

MOST_ROWS_WITH_NOTES = 40
"""A longer listing leaves the notes out: they would wrap; one section or one value shows them."""

JsonFlag = Annotated[bool, typer.Option("--json", help="Write one JSON document to stdout.")]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Override a value, e.g. clock.boost_hz=1755MHz.")
]


def register(app: typer.Typer) -> None:
    """Add the command group to ``app``."""
    app.add_typer(hw_app, name="hw")


@hw_app.command("list")
def list_chips(json: JsonFlag = False) -> None:
    """List the chips that are shipped, and what each can answer."""
    chips = [_summary(load_hw(name)) for name in chip_names()]
    if json:
        emit_json({"chips": chips})
        return
    table = Table("chip", "product", "instruction set", "SMs", "answers", box=None)
    for chip in chips:
        table.add_row(*(str(chip[key]) for key in ("name", "product", "instruction_set", "sms")), _answers(chip))
    stdout().print(table)


@hw_app.command("show")
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A chip, or a path to a .yaml file.")],
    path: Annotated[str | None, typer.Argument(metavar="[DOTTED.PATH]", help="One value, or a section.")] = None,
    overrides: SetOption = None,
    json: JsonFlag = False,
) -> None:
    """Show a chip's values with unit, source, confidence and note."""
    chip = load_hw(name, tuple(overrides or ()))
    paths = _selected(chip, path)
    if path is not None and paths == [path]:
        _show_value(chip, path, json)
    elif json:
        values = {dotted: _value(chip, dotted) for dotted in paths}
        emit_json({**_summary(chip), "digest": chip.digest(), "values": values})
    else:
        _print_section(chip, paths)


@hw_app.command("check")
def check(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A chip's YAML file.")],
    overrides: SetOption = None,
    json: JsonFlag = False,
) -> None:
    """Validate a chip's file: exit 0 and a summary, or exit 2 and one sentence."""
    chip = load_hw(Path(file) if Path(file).exists() else file, tuple(overrides or ()))
    report = {
        **_summary(chip),
        "ok": True,
        "digest": chip.digest(),
        "n_values": len(chip.provenance),
        "by_confidence": chip.provenance.count_by_confidence(),
        "missing_for_project": chip.missing_for_execution(),
    }
    if json:
        emit_json(report)
        return
    counts = ", ".join(f"{count} {word}" for word, count in chip.provenance.count_by_confidence().items() if count)
    stdout().print(f"{file} is valid: {chip.identity.product}, {len(chip.provenance)} values ({counts})")
    stdout().print(f"digest {chip.digest()}; answers {_answers(report)}")


def _summary(chip: HardwareConfig) -> dict[str, Any]:
    missing = chip.missing_for_execution()
    return {
        "name": chip.name,
        "vendor": chip.identity.vendor,
        "product": chip.identity.product,
        "architecture": chip.identity.architecture,
        "instruction_set": chip.identity.instruction_set,
        "sms": chip.sm.count,
        "answers": ["occupancy", "access", *([] if missing else ["project"])],
    }


def _answers(summary: dict[str, Any]) -> str:
    return ", ".join(summary["answers"])


def _selected(chip: HardwareConfig, path: str | None) -> list[str]:
    """Value paths that ``path`` names: itself, or everything below a section."""
    known = list(chip.provenance)
    if path is None or path in chip.provenance:
        return known if path is None else [path]
    below = [dotted for dotted in known if dotted.startswith(path + ".")]
    if not below:
        hint = did_you_mean(path, known) or f"; sections: {', '.join(dict.fromkeys(_section(k) for k in known))}"
        raise UserError(f"{chip.name} has no value {path}{hint}")
    return below


def _section(dotted: str) -> str:
    return dotted.partition(".")[0]


def _value(chip: HardwareConfig, dotted: str) -> dict[str, Any]:
    origin = chip.provenance[dotted]
    source = chip.provenance.sources.get(origin.source)
    unit = unit_of(dotted.rpartition(".")[2])
    return {
        "value": origin.value,
        "unit": unit.symbol if unit else "",
        "source": origin.source,
        "source_title": source.title if source else "set by the user",
        "source_address": source.address if source else "",
        "confidence": origin.confidence,
        "note": origin.note,
        "file": origin.file,
    }


def _show_value(chip: HardwareConfig, dotted: str, json: bool) -> None:
    document = {"chip": chip.name, "path": dotted, **_value(chip, dotted), "consumers": consumers(dotted)}
    if json:
        emit_json(document)
        return
    table = Table(box=None, show_header=False)
    table.add_row("value", _written(dotted, chip.provenance[dotted]))
    table.add_row("confidence", document["confidence"])
    table.add_row("source", f"{document['source']}: {document['source_title']}")
    for label, text in (("", document["source_address"]), ("note", document["note"]), ("file", document["file"])):
        if text:
            table.add_row(label, text)
    table.add_row("read by", ", ".join(document["consumers"]) or "nothing yet")
    stdout().print(f"{chip.name} {dotted}")
    stdout().print(table)


def _print_section(chip: HardwareConfig, paths: list[str]) -> None:
    table = Table(box=None)
    table.add_column("path", overflow="fold", no_wrap=True)
    has_notes = len(paths) <= MOST_ROWS_WITH_NOTES
    for name in ("value", "confidence", "source", *(["note"] if has_notes else [])):
        table.add_column(name, overflow="fold")
    for dotted in paths:
        origin = chip.provenance[dotted]
        notes = [origin.note] if has_notes else []
        table.add_row(dotted, _written(dotted, origin), origin.confidence, origin.source, *notes)
    stdout().print(f"{chip.name}: {chip.identity.product}; digest {chip.digest()[:12]}")
    stdout().print(table)


def _written(dotted: str, origin: Origin) -> str:
    """A value for people: prefixed, with the exact number in base units where they differ."""
    field = dotted.rpartition(".")[2]
    values = origin.value if isinstance(origin.value, list) else [origin.value]
    return ", ".join(_written_scalar(value, field) for value in values)


def _written_scalar(value: object, field: str) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    return format_quantity(value, field)
