"""``kernelcast tile``: pre-check of a kernel that nobody has written yet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from simulator.cli.output import atomic_write, emit_json, require_writable, stdout
from simulator.errors import UserError

if TYPE_CHECKING:
    from pydantic import BaseModel

ILLEGAL = 1


def register(app: typer.Typer) -> None:
    """Add ``tile`` to the command line."""
    settings = {"allow_extra_args": True, "ignore_unknown_options": True}
    app.command("tile", context_settings=settings)(tile)


def tile(
    context: typer.Context,
    source: Annotated[
        str, typer.Argument(metavar="FAMILY|FILE.yaml", help="A family (gemm, softmax, ...) with its options, or a design.")
    ],
    hw: Annotated[str | None, typer.Option(help="Chip: a name, or a YAML file. [required]")] = None,
    overrides: Annotated[list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Override a hardware value.")] = None,
    compare: Annotated[int, typer.Option(metavar="N", help="Single-step changes to simulate.")] = 3,
    png: Annotated[Path | None, typer.Option(metavar="F.png", help="Draw the access with most bank conflicts.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Write one JSON document to stdout.")] = False,
) -> None:
    """Legality, occupancy, bank conflicts and time of a tile design, and what single-step changes are worth."""
    from simulator.hw.loader import load_hw
    from simulator.projection.tile_card import make_card
    from simulator.report import tile_text
    from simulator.validation.library_times import library_time_us

    design = _design(source, context.args)
    if hw is None:
        raise UserError("Missing option '--hw' (see kernelcast tile --help)")
    chip = load_hw(hw, tuple(overrides or ()))
    chip.execution_sections()
    if png is not None:
        require_writable(png)
    card = make_card(design, chip, None if overrides else library_time_us(design, chip.name), n_compared=max(0, compare))
    if png is not None and card.accesses:
        from simulator.report.bank_figure import bank_drawing

        atomic_write(png, bank_drawing(card.accesses[0], chip).png())
    if json:
        emit_json(card.to_json())
    else:
        stdout().print(tile_text.render(card))
    if not card.is_legal:
        raise typer.Exit(ILLEGAL)


def _design(source: str, options: list[str]) -> BaseModel:
    from simulator.cli.design_options import design_from_options
    from simulator.kernels.families import FAMILIES, load_design

    if source in FAMILIES:
        return design_from_options(source, options)
    if options:
        raise UserError(f"'{options[0]}' goes with a family ({', '.join(FAMILIES)}); {source} is read as a design file")
    if not Path(source).suffix:
        raise UserError(f"'{source}' is neither a family ({', '.join(FAMILIES)}) nor a design file (.yaml)")
    return load_design(Path(source))
