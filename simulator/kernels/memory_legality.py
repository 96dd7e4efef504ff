"""The limits of streaming, reduction and normalization designs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simulator.errors import UserError
from simulator.hw.config import HardwareConfig
from simulator.kernels import normalization, reduction, streaming
from simulator.kernels.instruction_sets import instruction_set
from simulator.kernels.legality import Violation, check_threads
from simulator.kernels.normalization_design import NormalizationDesign
from simulator.kernels.reduction_design import ReductionDesign
from simulator.kernels.streaming_design import StreamingDesign
from simulator.kernels.transpose import MATRIX_ROWS
from simulator.kernels.vectors import FORMATS, WIDEST_BYTES

MOST_CTAS = 1 << 22
"""Of a launch that is replayed: each has its own addresses."""
MOST_VALUES = 1024
"""Registers per thread beyond which code is not even generated."""


def check_streaming(design: StreamingDesign, hw: HardwareConfig) -> list[Violation]:
    """Every limit that ``design`` breaks on ``hw``."""
    found = _formats({"dtype": design.dtype, "result": design.result}, hw)
    found += check_threads(design.threads, hw)
    if design.operation == "transpose":
        found += _transpose(design, hw)
    else:
        n_bytes = design.n_elements * design.n_bytes
        found += _vector(design.vector_bytes, design.n_bytes, n_bytes, "an array")
        found += _whole(design.masked, "elements", design.n_elements, design.tile_elements)
        found += [] if design.loop == "grid_stride" else _grid(design.n_ctas, {"loop": "grid_stride"}, "loop grid_stride")
        found += _fits(design.unroll * design.inputs * design.vector * design.n_bytes // 4, "unroll", design.unroll)
    return found or _registers(streaming.resources, design, hw, _fewer(design, "unroll"))


def check_reduction(design: ReductionDesign, hw: HardwareConfig) -> list[Violation]:
    """Every limit that ``design`` breaks on ``hw``."""
    found = _formats({"dtype": design.dtype}, hw)
    found += check_threads(design.threads, hw)
    contiguous = design.length if design.axis == "all" else design.columns
    found += _vector(design.vector_bytes, design.format.n_bytes, contiguous * design.format.n_bytes, "a row")
    along = {"all": ("elements", design.length), "row": ("columns", design.columns), "column": ("rows", design.split_rows)}
    found += _whole(design.masked, *along[design.axis], design.step)
    if design.axis != "all" or design.loop == "one_tile":
        found += _grid(design.n_ctas, {"loop": "grid_stride"} if design.axis == "all" else {}, "loop grid_stride")
    if design.splits > design.rows:
        message = f"splits {design.splits} are more than the {design.rows} rows"
        found.append(Violation("splits", message, design.splits, design.rows, f"splits {design.rows}", {"splits": design.rows}))
    found += _smem(design.smem_bytes, hw, f"{design.warps} warps", {"warps": max(1, design.warps // 2)})
    found += _fits(design.unroll * design.vector, "unroll", design.unroll)
    return found or _registers(reduction.resources, design, hw, _fewer(design, "unroll"))


def check_normalization(design: NormalizationDesign, hw: HardwareConfig) -> list[Violation]:
    """Every limit that ``design`` breaks on ``hw``."""
    found = _formats({"dtype": design.dtype, "result": design.result}, hw)
    found += check_threads(design.threads, hw)
    found += _vector(design.vector_bytes, design.format.n_bytes, design.columns * design.format.n_bytes, "a row")
    found += _whole(design.masked, "columns", design.columns, design.vectors * design.span)
    found += [] if design.persistent else _grid(design.n_ctas, {"persistent": True}, "persistent")
    if found:
        return found
    if design.vectors * design.vector > design.max_registers:
        return [_row_registers(design, design.vectors * design.vector)]
    return _registers(normalization.resources, design, hw, lambda needed, _: _row_registers(design, needed), design.max_registers)


def _row_registers(design: NormalizationDesign, needed: int) -> Violation:
    what = "a row" if design.passes == 1 else "a block"
    message = (
        f"{what} shared by {design.row_threads} threads takes {needed} registers per thread, more than {design.max_registers}"
    )
    change: tuple[str, dict[str, Any]] = ("passes 2", {"passes": 2})
    if design.passes > 1:
        change = ("block of one vector a thread", {"block": design.span})
    elif needed <= 2 * design.max_registers and design.warps <= 16:
        change = (f"warps {design.warps * 2}", {"warps": design.warps * 2})
    return Violation("registers", message, needed, design.max_registers, *change)


def _formats(fields: dict[str, str | None], hw: HardwareConfig) -> list[Violation]:
    """Whether the chip converts the formats."""
    known = instruction_set(hw.identity.instruction_set)
    if known.generation == 0:
        raise UserError(
            f"designs are generated for chips of the sm_* instruction sets; {hw.name} executes {hw.identity.instruction_set}"
        )
    available = [name for name in FORMATS if known.converts(name)]
    return [
        Violation(
            "dtype",
            f"{hw.name} ({known.name}) has no conversion of {name} to fp32; it has {', '.join(available)}",
            name,
            ", ".join(available),
            f"{field} fp16",
            {field: "fp16"},
        )
        for field, name in fields.items()
        if name is not None and name not in available
    ]


def _vector(given: int | None, element: int, row_bytes: int, what: str) -> list[Violation]:
    """A lane's access: whole elements, aligned in every row."""
    if given is None:
        return []
    if given < element:
        message = f"vectors of {given} bytes are smaller than an element of {element}"
        return [Violation("vector", message, given, element, f"vector_bytes {element}", {"vector_bytes": element})]
    if row_bytes % given == 0:
        return []
    fits = max(element, min(WIDEST_BYTES, row_bytes & -row_bytes))
    message = f"{what} of {row_bytes:,} bytes is not a multiple of {given}-byte vectors: they would not be aligned"
    return [Violation("vector", message, given, fits, f"vector_bytes {fits}", {"vector_bytes": fits})]


def _whole(masked: bool, name: str, extent: int, step: int) -> list[Violation]:
    if masked or extent % step == 0:
        return []
    message = f"{extent:,} {name} are not a multiple of the {step:,} that a CTA takes at once, and masked is false"
    return [Violation("masked", message, extent, step, "masked true", {"masked": True})]


def _grid(n_ctas: int, update: dict[str, Any], change: str) -> list[Violation]:
    if n_ctas <= MOST_CTAS:
        return []
    message = f"{n_ctas:,} CTAs are more than {MOST_CTAS:,}"
    return [Violation("grid", message, n_ctas, MOST_CTAS, change if update else "", update)]


def _smem(needed: int, hw: HardwareConfig, what: str, update: dict[str, Any]) -> list[Violation]:
    limit = hw.shared_memory.max_per_cta_bytes
    if needed <= limit:
        return []
    message = f"{needed:,} bytes of shared memory ({what}) are more than the {limit:,} that a CTA can have on {hw.name}"
    change = ", ".join(f"{name} {_short(value)}" for name, value in update.items())
    return [Violation("shared_memory", message, needed, limit, change, update)]


def _short(value: object) -> str:
    return "x".join(str(part) for part in value.values()) if isinstance(value, dict) else str(value)


def _fits(values: int, field: str, given: int) -> list[Violation]:
    """A guard against code of absurd length."""
    if values <= MOST_VALUES:
        return []
    fewer = max(1, given * 128 // values)
    message = f"{field} {given} takes {values:,} registers per thread"
    return [Violation("registers", message, values, MOST_VALUES, f"{field} {fewer}", {field: fewer})]


Repair = Callable[[int, int], Violation]


def _fewer(design: StreamingDesign | ReductionDesign, field: str) -> Repair:
    def change(registers: int, limit: int) -> Violation:
        given = int(getattr(design, field))
        fewer = max(1, min(given - 1, given * limit // registers))
        message = f"{registers} registers per thread are more than {limit}"
        return Violation("registers", message, registers, limit, f"{field} {fewer}", {field: fewer} if given > 1 else {})

    return change


def _registers(
    resources: Callable[[Any], tuple[int, int, int]], design: Any, hw: HardwareConfig, change: Repair, most: int | None = None
) -> list[Violation]:
    """Registers of a thread, from the generated code."""
    registers, _, _ = resources(design)
    limit = min(most or hw.sm.max_registers_per_thread, hw.sm.max_registers_per_thread)
    return [change(registers, limit)] if registers > limit else []


def _transpose(design: StreamingDesign, hw: HardwareConfig) -> list[Violation]:
    tile, rows, columns = design.block, design.rows or 1, design.columns or 1
    found = _vector(design.vector_bytes, design.n_bytes, columns * design.n_bytes, "a row of the input")
    found += _vector(design.vector_bytes, design.n_bytes, rows * design.n_bytes, "a row of the result")
    vector = design.vector
    for name, extent in (("rows", tile.rows), ("columns", tile.columns)):
        if extent % vector:
            up = -(-extent // vector) * vector
            message = f"tile {name} {extent} is not a multiple of a vector's {vector} elements"
            found.append(Violation("tile", message, extent, vector, f"tile {name} {up}", {f"tile.{name}": up}))
    if not design.masked:
        for name, whole, part in (("rows", rows, tile.rows), ("columns", columns, tile.columns)):
            found += _whole(False, name, whole, part)
    smaller = {"rows": max(1, tile.rows // 2), "columns": max(1, tile.columns // 2)}
    found += _smem(design.smem_bytes, hw, f"a tile of {tile.rows} x {tile.columns}", {"tile": smaller})
    found += _grid(design.n_ctas, {"tile": {"rows": tile.rows * 2, "columns": tile.columns * 2}}, "a larger tile")
    values = tile.rows * tile.columns * design.n_bytes // 4 // design.threads
    if values > MOST_VALUES:
        message = f"a tile of {tile.rows} x {tile.columns} takes {values:,} registers per thread"
        found.append(Violation("registers", message, values, MOST_VALUES, f"tile {_short(smaller)}", {"tile": smaller}))
    return found + (_matrix(design, hw) if design.is_matrix and design.layout != "plain" else [])


def _matrix(design: StreamingDesign, hw: HardwareConfig) -> list[Violation]:
    """Transposing matrix loads."""
    known = instruction_set(hw.identity.instruction_set)
    reason = ""
    if known.generation < 75:
        reason = f"need sm_75, {hw.name} executes {known.name}"
    elif design.n_bytes != 2:
        reason = f"gather elements of 16 bits, not {design.dtype}"
    elif design.access_bytes != WIDEST_BYTES:
        reason = f"read rows of 16 bytes, not of {design.access_bytes}"
    elif design.block.rows % MATRIX_ROWS:
        reason = f"gather {MATRIX_ROWS} rows, tile rows {design.block.rows} is not a multiple"
    elif design.pitch_bytes % WIDEST_BYTES:
        reason = f"need rows that begin at multiples of 16 bytes, not {design.pitch_bytes}"
    if not reason:
        return []
    return [Violation("gather", f"transposing matrix loads {reason}", "matrix", "scalar", "gather scalar", {"gather": "scalar"})]
