"""Where A and B lie, in global and in shared memory, and the bulk copies between the two."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from simulator.kernels.control_words import Value
from simulator.kernels.gemm_design import ProductDesign
from simulator.kernels.gemm_tiles import Work
from simulator.kernels.ring import Ring
from simulator.kernels.writer import Block, CtaClass, KernelWriter

LARGEST_BOX = 256
"""Elements of a box along one dimension."""


@dataclass(frozen=True)
class Box:
    """One bulk copy of a stage: its tensor, column and row within the tile, and place within the stage. ``along``: "m" or
    "n"; ``share`` of a multicast operand that this CTA loads (its row depends on the rank)."""

    tensor: int
    along: str
    column: int
    row: int
    offset: int
    n_bytes: int


@dataclass(frozen=True)
class Chunks:
    """Global side of one asynchronous copy of a warp in every step of a unit: numbers of lane patterns, addresses and
    active lanes, int [k_steps] each, and the key of the difference to add to the addresses."""

    pattern: np.ndarray
    address: np.ndarray
    lanes: np.ndarray
    base: int


@dataclass(frozen=True)
class Operands:
    """Buffers, tensor maps and boxes of a GEMM; a family whose A has other addresses overrides what follows them."""

    design: ProductDesign
    a: int
    b: int
    c: int
    boxes: tuple[Box, ...] = field(default=())

    @property
    def ring_bytes(self) -> int:
        return self.design.stages * self.design.stage_bytes

    @property
    def ring(self) -> Ring:
        """Barriers of the stages, behind the result's tile."""
        return Ring(self.design.stages, self.design.stage_bytes, self.ring_bytes + self.design.result_tile_bytes)

    def full(self, stage: np.ndarray | int) -> np.ndarray | int:
        """Offset of the mbarrier that a stage's bytes complete."""
        return self.ring.full(stage)

    def empty(self, stage: np.ndarray | int) -> np.ndarray | int:
        """Offset of the mbarrier that a stage's readers release."""
        return self.ring.empty(stage)

    def copies_of_a_box(self, number: int) -> int:
        """Bulk copies that box ``number`` is written as; those behind the first follow it without further code."""
        return 1

    def copy_events(self, cta: CtaClass, work: Work, unit: int, first: int) -> list[list[np.ndarray]]:
        """Event rows of each copy of each box of a unit's k steps, int32 [k_steps] each; ``first``: ring position of the
        first step."""
        return [[rows] for rows in copy_events(self, cta, work, unit, first)]

    def start_addresses(self, block: Block, n_copies: int) -> None:
        """Append what is computed once for the addresses of A's ``n_copies`` asynchronous copies of a thread."""

    def guard_copies(self, block: Block, n_copies: int) -> list[Value | None]:
        """Append what decides, in every step, which of a thread's next copies of A lie inside; returns their predicates."""
        return [None] * n_copies

    def chunks(
        self, kernel: KernelWriter, cta: CtaClass, work: Work, unit: int, name: str, row: np.ndarray, byte: np.ndarray
    ) -> Chunks:
        """Global side of copies of operand ``name`` ("a" or "b"): lane i copies 16 bytes at ``row[i]`` and ``byte[i]`` of
        the tile."""
        design = self.design
        element, steps = design.format.n_bytes, np.arange(work.k_steps[unit])
        start, base = (work.m, self.a) if name == "a" else (work.n, self.b)
        tile_rows = design.tile.m if name == "a" else design.tile.n
        inside = (row < tile_rows) & (row < work.valid[unit][0 if name == "a" else 1])
        pitch = design.k * element
        first_row = int(row[0])
        left = (design.k - (work.k[unit, 0] + steps) * design.tile.k) * element
        tail = inside & (byte < left[-1])
        places = (row - first_row) * pitch + byte
        full, cut = kernel.pattern(np.where(inside, places, -1)), kernel.pattern(np.where(tail, places, -1))
        is_cut = left < design.row_bytes
        return Chunks(
            pattern=np.where(is_cut, cut, full),
            address=base + (start[unit, 0] + first_row) * pitch + (work.k[unit, 0] + steps) * design.row_bytes,
            lanes=np.where(is_cut, int(tail.sum()), int(inside.sum())),
            base=cta.difference(start[unit] * pitch + work.k[unit] * design.row_bytes),
        )


def allocate(design: ProductDesign, kernel: KernelWriter) -> Operands:
    """Buffers of A, B and C, and the tensor maps of A and B where they are loaded in bulk."""
    n_bytes = design.format.n_bytes
    a = kernel.buffer("a", design.m * design.k * n_bytes)
    b = kernel.buffer("b", design.stored_b_bytes(design.n * design.k))
    c = kernel.buffer("c", design.m * design.n * design.result_bytes)
    if design.loads != "tma":
        return Operands(design, a, b, c)
    shared = design.cluster if design.multicast != "none" else 1
    boxes = [
        *_boxes(design, kernel, "a", a, design.m, design.tile.m, shared if design.multicast == "a" else 1),
        *_boxes(design, kernel, "b", b, design.n, design.tile.n, shared if design.multicast == "b" else 1),
    ]
    return Operands(design, a, b, c, tuple(boxes))


def _boxes(
    design: ProductDesign, kernel: KernelWriter, name: str, address: int, extent: int, tile_rows: int, sharers: int
) -> list[Box]:
    """Boxes of one operand's tile. A CTA of a multicast cluster loads its part of the rows, and its peers send the rest:
    a box stands for ``sharers`` times its bytes at the mbarrier (peers keep pace)."""
    element = design.format.n_bytes
    columns, rows = box_shape(design, tile_rows, sharers)
    tensor = kernel.tensor_map(name, element, (design.k, extent), (columns, rows), design.swizzle, address)
    return boxes_of(design, name, tensor, tile_rows, sharers)


def box_shape(design: ProductDesign, tile_rows: int, sharers: int) -> tuple[int, int]:
    """Elements of a row and rows of a box."""
    return design.box_row_bytes // design.format.n_bytes, min(tile_rows // sharers, LARGEST_BOX)


def boxes_of(design: ProductDesign, name: str, tensor: int, tile_rows: int, sharers: int) -> list[Box]:
    """Boxes of operand ``name``'s tile: column after column, the rows of each."""
    element = design.format.n_bytes
    columns, rows = box_shape(design, tile_rows, sharers)
    own_rows = tile_rows // sharers
    start = 0 if name == "a" else design.a_bytes
    found = []
    for column in range(0, design.tile.k, columns):
        for row in range(0, own_rows, rows):
            offset = start + column * element * tile_rows + row * columns * element
            n_bytes = rows * columns * element * sharers
            found.append(Box(tensor, "m" if name == "a" else "n", column, row, offset, n_bytes))
    return found


def copy_events(operands: Operands, cta: CtaClass, work: Work, unit: int, first: int) -> list[np.ndarray]:
    """Event rows of each box of a unit's k steps, int32 [k_steps] each; ``first``: ring position of the first step."""
    design = operands.design
    steps = np.arange(work.k_steps[unit])
    stage = (first + steps) % design.stages
    k_key = cta.difference(work.k[unit] * design.tile.k)
    keys = {"m": cta.difference(loaded_rows(design, work, unit, "m")), "n": cta.difference(loaded_rows(design, work, unit, "n"))}
    found = []
    for box in operands.boxes:
        start = loaded_rows(design, work, unit, box.along)[0]
        found.append(
            cta.events(
                tensor=box.tensor,
                shared_address=stage * design.stage_bytes + box.offset,
                count=box.n_bytes,
                mbarrier=operands.full(stage),
                coordinate=((work.k[unit, 0] + steps) * design.tile.k + box.column, start + box.row),
                moves=(k_key, keys[box.along]),
            )
        )
    return found


def loaded_rows(design: ProductDesign, work: Work, unit: int, along: str) -> np.ndarray:
    """First row that each member loads of the operand along ``along``."""
    rows = (work.m if along == "m" else work.n)[unit]
    if (along == "m" and design.multicast == "a") or (along == "n" and design.multicast == "b"):
        extent = design.tile.m if along == "m" else design.tile.n
        return rows + work.members % design.cluster * (extent // design.cluster)
    return rows


def ring_events(operands: Operands, cta: CtaClass, first: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """(try_wait for a full stage, expect of its bytes): event rows int32 [steps] of ring positions from ``first``."""
    return operands.ring.filled(cta, first, steps)


def write_copies(block: Block, operands: Operands, number: int) -> None:
    """Append the bulk copies of box ``number``, in slots "copy<number>", "copy<number>.1", ..."""
    for slot in _slots(operands, number):
        block.op("UTMALDG.2D", [], [Value(f"UR{8 * number + 8}", kind="UR")], slot=slot)


def copy_slots(operands: Operands, cta: CtaClass, work: Work, unit: int, first: int) -> dict[str, np.ndarray]:
    """Event rows of the slots of ``write_copies`` for every box, int32 [k_steps] each."""
    found = operands.copy_events(cta, work, unit, first)
    return {slot: rows for i, box in enumerate(found) for slot, rows in zip(_slots(operands, i), box, strict=True)}


def _slots(operands: Operands, number: int) -> list[str]:
    return [f"copy{number}" + (f".{i}" if i else "") for i in range(operands.copies_of_a_box(number))]
