"""Where A and B lie, in global and in shared memory, and the bulk copies between the two."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from simulator.kernels.gemm_design import GemmDesign
from simulator.kernels.gemm_tiles import Work
from simulator.kernels.ring import Ring
from simulator.kernels.writer import CtaClass, KernelWriter

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
class Operands:
    """Buffers, tensor maps and boxes of a design."""

    design: GemmDesign
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


def allocate(design: GemmDesign, kernel: KernelWriter) -> Operands:
    """Buffers of A, B and C, and the tensor maps of A and B where they are loaded in bulk."""
    n_bytes = design.format.n_bytes
    a = kernel.buffer("a", design.m * design.k * n_bytes)
    b = kernel.buffer("b", design.n * design.k * n_bytes)
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
    design: GemmDesign, kernel: KernelWriter, name: str, address: int, extent: int, tile_rows: int, sharers: int
) -> list[Box]:
    """Boxes of one operand's tile. A CTA of a multicast cluster loads its part of the rows, and its peers send the rest:
    a box stands for ``sharers`` times its bytes at the mbarrier (peers keep pace)."""
    element = design.format.n_bytes
    columns = design.box_row_bytes // element
    own_rows = tile_rows // sharers
    rows = min(own_rows, LARGEST_BOX)
    tensor = kernel.tensor_map(name, element, (design.k, extent), (columns, rows), design.swizzle, address)
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
    keys = {"m": cta.difference(_rows(design, work, unit, "m")), "n": cta.difference(_rows(design, work, unit, "n"))}
    found = []
    for box in operands.boxes:
        start = _rows(design, work, unit, box.along)[0]
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


def _rows(design: GemmDesign, work: Work, unit: int, along: str) -> np.ndarray:
    """First row that each member loads of the operand along ``along``."""
    rows = (work.m if along == "m" else work.n)[unit]
    if (along == "m" and design.multicast == "a") or (along == "n" and design.multicast == "b"):
        extent = design.tile.m if along == "m" else design.tile.n
        return rows + work.members % design.cluster * (extent // design.cluster)
    return rows


def ring_events(operands: Operands, cta: CtaClass, first: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """(try_wait for a full stage, expect of its bytes): event rows int32 [steps] of ring positions from ``first``."""
    return operands.ring.filled(cta, first, steps)
