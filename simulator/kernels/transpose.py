"""Transposes by tiles: straight, or through shared memory in one of three layouts."""

from __future__ import annotations

import numpy as np

from simulator.kernels.control_words import Value
from simulator.kernels.cta_classes import classes_of
from simulator.kernels.lane_reduction import BARRIER
from simulator.kernels.streaming_design import SWIZZLED_BYTES, StreamingDesign
from simulator.kernels.thread_index import parameter, read_thread
from simulator.kernels.vectors import LANE, REGISTER_BYTES, WIDTH_SUFFIX, load_vector, registers_of, store_vector
from simulator.kernels.writer import Block, CtaClass, KernelWriter

INDEX_OPERATIONS = ("SHF.R.U32.HI", "LOP3.LUT", "LOP3.LUT", "LEA", "LOP3.LUT", "IMAD", "LEA", "LEA.HI.X.SX32", "LEA", "LEA.HI.X")
"""Row, column and address of a thread's vector in a matrix, in compiled kernels."""
PLACE_OPERATIONS = ("IMAD.SHL.U32", "LOP3.LUT", "LOP3.LUT", "IMAD", "LOP3.LUT", "LEA", "IADD3")
"""Row, column and swizzle of a place in the tile."""
CHUNK_BYTES = 16
MATRIX_ROWS = 32
"""Rows of the tile that a transposing matrix load gathers, 8 a lane, from 8 columns."""


class Side:
    """Vectors of one side of the transpose, dealt to the threads of a CTA row by row. ``lines`` by ``length`` elements."""

    def __init__(self, design: StreamingDesign, lines: int, length: int, vector: int) -> None:
        self.threads, self.lines, self.length, self.vector = design.threads, lines, length, vector
        self.per_line = -(-length // vector)
        self.n = -(-lines * self.per_line // design.threads)

    def lanes(self, warp: int, i: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(line, first element, whether it is one of the tile's) int [32] of vector ``i`` of the lanes of a warp."""
        number = i * self.threads + warp * 32 + LANE
        line = number // self.per_line
        return line, number % self.per_line * self.vector, line < self.lines


class TransposeKernel:
    """Code and execution."""

    def __init__(self, design: StreamingDesign, kernel: KernelWriter) -> None:
        self.design, self.kernel = design, kernel
        n_bytes = design.n_elements * design.n_bytes
        self.x, self.y = kernel.buffer("x", n_bytes), kernel.buffer("y", n_bytes)
        tile, vector = design.block, design.vector
        is_plain = design.layout == "plain"
        reads_vectors = not is_plain or design.coalesced == "reads"
        self.reads = Side(design, tile.rows, tile.columns, vector)
        self.writes = Side(design, tile.columns, tile.rows, vector)
        if is_plain:  # one side moves single elements
            self.writes = self.reads = self.reads if reads_vectors else self.writes
        self.reads_vectors = reads_vectors
        block = kernel.block("transpose")
        thread = read_thread(block)
        block.op("S2UR", [Value("UR8", kind="UR")])
        block.op("S2UR", [Value("UR9", kind="UR")])
        self._plain(block, thread) if is_plain else self._staged(block, thread)
        block.op("EXIT")
        self.block = block

    def _matrix_address(self, block: Block, thread: Value, i: int) -> tuple[Value, Value | None]:
        """(address, guard) of vector ``i`` in a matrix."""
        address, place = Value("address", 2), Value("line")
        base = parameter(block) if i == 0 else Value("pointer", 2)
        again = INDEX_OPERATIONS[-5:] if self.design.masked else ()  # without comparisons a stride is added to the address
        for opcode in again if i else INDEX_OPERATIONS:
            block.op(opcode, [place], [place if i else thread])
        block.op("IMAD.WIDE", [address], [place] if i else [place, base])
        guard = None
        if self.design.masked:
            guard = Value("P", kind="P")
            if i == 0:
                block.op("ISETP.GE.AND", [guard], [place])
            block.op("ISETP.LT.AND", [guard], [place])
        return address, guard

    def _load(self, block: Block, thread: Value) -> list[list[Value]]:
        design = self.design
        raw = []
        for i in range(self.reads.n):
            address, guard = self._matrix_address(block, thread, i)
            fill = "CS2R" if design.masked else None
            raw.append(load_vector(block, design.format, design.vector, address, f"load{i}", guard, fill))
        return raw

    def _plain(self, block: Block, thread: Value) -> None:
        design = self.design
        suffix, width = WIDTH_SUFFIX[design.n_bytes], design.n_bytes
        if self.reads_vectors:
            raw = self._load(block, thread)
            for i, values in enumerate(raw):
                target, guard = self._matrix_address(block, thread, i)
                for j in range(design.vector):
                    value = values[j * design.n_bytes // REGISTER_BYTES]
                    block.op(f"STG.E{suffix}", [], [target, value], slot=f"store{i}.{j}", guard=guard, width=width)
            return
        for i in range(self.reads.n):
            address, guard = self._matrix_address(block, thread, i)
            values = registers_of(design.format, design.vector)
            for j in range(design.vector):
                value = values[j * design.n_bytes // REGISTER_BYTES]
                block.op(f"LDG.E{suffix}", [value], [address], slot=f"load{i}.{j}", guard=guard, width=width)
            target, guard = self._matrix_address(block, thread, i)
            store_vector(block, design.format, values, design.vector, target, f"store{i}", guard)

    def _staged(self, block: Block, thread: Value) -> None:
        design = self.design
        raw = self._load(block, thread)
        block.op("UMOV", [])
        block.op("ULEA", [])
        for i, values in enumerate(raw):
            self._put(block, thread, i, values)
        block.op(BARRIER, slot="staged")
        gathered = [self._get(block, thread, i) for i in range(self.writes.n)]
        for i, values in enumerate(gathered):
            target, guard = self._matrix_address(block, thread, i)
            store_vector(block, design.format, values, design.vector, target, f"store{i}", guard)

    def _place(self, block: Block, thread: Value, i: int) -> Value:
        place = Value("place")
        for opcode in PLACE_OPERATIONS if i == 0 else PLACE_OPERATIONS[-2:]:
            block.op(opcode, [place], [thread])
        return place

    def _put(self, block: Block, thread: Value, i: int, values: list[Value]) -> None:
        place = self._place(block, thread, i)
        width = staged_bytes(self.design)
        each = max(1, width // REGISTER_BYTES)
        for j in range(self.design.vector * self.design.n_bytes // width):
            own = values[j * width // REGISTER_BYTES :][:each]
            if j and not self.design.is_matrix:
                place = self._moved(block, place)
            block.op(f"STS{WIDTH_SUFFIX[width]}", [], [place, *own], slot=f"put{i}.{j}", width=width)

    def _moved(self, block: Block, place: Value) -> Value:
        """Another column: the XOR of a swizzle cannot be an immediate offset."""
        if self.design.layout != "xor":
            return place
        moved = Value("place")
        block.op("LOP3.LUT", [moved], [place])
        return moved

    def _get(self, block: Block, thread: Value, i: int) -> list[Value]:
        design = self.design
        place = self._place(block, thread, i)
        values = registers_of(design.format, design.vector)
        if design.is_matrix:
            block.op("LDSM.16.MT88.4", values, [place], slot=f"get{i}.0", width=CHUNK_BYTES)
            return values
        for j in range(design.vector):
            register = values[j * design.n_bytes // REGISTER_BYTES]
            is_first = j * design.n_bytes % REGISTER_BYTES == 0
            element = register if is_first else Value("element")
            block.op(f"LDS{WIDTH_SUFFIX[design.n_bytes]}", [element], [place], slot=f"get{i}.{j}", width=design.n_bytes)
            if not is_first:
                block.op("PRMT", [register], [register, element])
        return values

    def run(self, cta: CtaClass, origin: np.ndarray, inside: tuple[int, int]) -> None:
        """What every warp of a class executes. ``origin`` int [2, n]: first row and column of each member's tile;
        ``inside``: rows and columns of the tile that exist."""
        design = self.design
        read_at = (origin[0] * (design.columns or 1) + origin[1]) * design.n_bytes
        write_at = (origin[1] * (design.rows or 1) + origin[0]) * design.n_bytes
        self.input = (self.x + int(read_at[0]), cta.difference(read_at), (design.columns or 1) * design.n_bytes)
        self.output = (self.y + int(write_at[0]), cta.difference(write_at), (design.rows or 1) * design.n_bytes)
        for number, warp in enumerate(cta.warps):
            events: dict[str, np.ndarray] = {}
            active: dict[str, int] = {}
            self._global(cta, number, inside, events, active)
            if design.layout != "plain":
                events["staged"] = cta.events(count=0)
                self._shared(cta, number, events, active)
            warp.run(self.block, 1, events, active)

    def _access(
        self, cta: CtaClass, array: tuple[int, int, int], line: np.ndarray, element: np.ndarray, on: np.ndarray
    ) -> tuple[np.ndarray, int]:
        address, key, pitch = array
        offsets = np.where(on, line * pitch + element * self.design.n_bytes, -1)
        first = int(offsets[on].min()) if on.any() else 0
        pattern = self.kernel.pattern(np.where(on, offsets - first, -1))
        return cta.events(pattern=pattern, address=address + first, base=key), int(on.sum())

    def _global(
        self, cta: CtaClass, warp: int, inside: tuple[int, int], events: dict[str, np.ndarray], active: dict[str, int]
    ) -> None:
        rows, columns = inside
        is_plain = self.design.layout == "plain"
        for i in range(self.reads.n):
            if not is_plain or self.reads_vectors:
                row, column, on = self.reads.lanes(warp, i)
                whole = on & (row < rows) & (column < columns)
                events[f"load{i}"], active[f"load{i}"] = self._access(cta, self.input, row, column, whole)
                for j in range(self.design.vector if is_plain else 0):
                    slot = f"store{i}.{j}"
                    events[slot], active[slot] = self._access(cta, self.output, column + j, row, whole)
            else:
                column, row, on = self.writes.lanes(warp, i)
                whole = on & (row < rows) & (column < columns)
                for j in range(self.design.vector):
                    slot = f"load{i}.{j}"
                    events[slot], active[slot] = self._access(cta, self.input, row + j, column, whole)
                events[f"store{i}.0"], active[f"store{i}.0"] = self._access(cta, self.output, column, row, whole)
        for i in range(0 if is_plain else self.writes.n):
            column, row, on = self._written(warp, i)
            whole = on & (row < rows) & (column < columns)
            events[f"store{i}.0"], active[f"store{i}.0"] = self._access(cta, self.output, column, row, whole)

    def _written(self, warp: int, i: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(column, first row, whether it is one of the tile's) of the vectors that lanes store."""
        if not self.design.is_matrix:
            return self.writes.lanes(warp, i)
        blocks = self.design.block.rows // MATRIX_ROWS
        number = i * self.design.warps + warp
        column, row = number // blocks * 8 + LANE // 4, number % blocks * MATRIX_ROWS + LANE % 4 * 8
        return column, row, column < self.design.block.columns

    def _shared(self, cta: CtaClass, warp: int, events: dict[str, np.ndarray], active: dict[str, int]) -> None:
        design, kernel = self.design, self.kernel
        width = staged_bytes(design)
        for i in range(self.reads.n):
            row, column, on = self.reads.lanes(warp, i)
            for j in range(design.vector * design.n_bytes // width):
                place = tile_offset(design, row, column + j * width // design.n_bytes)
                slot = f"put{i}.{j}"
                events[slot], active[slot] = _shared_access(cta, kernel, place, on)
        for i in range(self.writes.n):
            if design.is_matrix:
                column, first, on = self._written(warp, i)
                matrix, k, half = LANE // 8, LANE % 8 // 2, LANE % 2
                row = first[0] + 8 * k + 2 * matrix + half
                place = tile_offset(design, row, np.full(32, column[0]))
                events[f"get{i}.0"], active[f"get{i}.0"] = _shared_access(cta, kernel, place, np.full(32, on[0]))
                continue
            column, row, on = self.writes.lanes(warp, i)
            for j in range(design.vector):
                slot = f"get{i}.{j}"
                events[slot], active[slot] = _shared_access(cta, kernel, tile_offset(design, row + j, column), on)


def _shared_access(cta: CtaClass, kernel: KernelWriter, place: np.ndarray, on: np.ndarray) -> tuple[np.ndarray, int]:
    first = int(place[on].min()) // SWIZZLED_BYTES * SWIZZLED_BYTES if on.any() else 0
    pattern = kernel.pattern(np.where(on, place - first, -1))
    return cta.events(pattern=pattern, shared_address=first), int(on.sum())


def staged_bytes(design: StreamingDesign) -> int:
    """Bytes of a store to the tile: a whole vector where its place is aligned and contiguous, else single elements."""
    whole = design.vector * design.n_bytes
    if design.is_matrix or (design.layout != "xor" and design.pitch_bytes % whole == 0):
        return whole
    return design.n_bytes


def tile_offset(design: StreamingDesign, row: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Byte offset of an element of the tile; layout xor permutes elements (or, for matrix loads, 16-byte chunks) within the
    128 bytes of all banks by the row's number."""
    byte = column * design.n_bytes
    if design.layout == "xor":
        span = min(SWIZZLED_BYTES, design.pitch_bytes & -design.pitch_bytes)
        if design.is_matrix:
            key = row // 8 % 4 if span < SWIZZLED_BYTES else row // 8 % 4 * 2 + row % 2
            byte = byte ^ (key * CHUNK_BYTES % span)
        else:
            key = row ^ _folded(row, design.vector) ^ _folded(byte // REGISTER_BYTES, design.vector)
            byte = byte ^ (key * REGISTER_BYTES % span)
    found: np.ndarray = row * design.pitch_bytes + byte
    return found


def _folded(number: np.ndarray, vector: int) -> np.ndarray:
    """What of a row or column lies beyond the 32 banks, on the bits that tell the elements of a vector apart: lanes that
    are 32 apart then meet in different banks as well."""
    n_bits = vector.bit_length() - 1
    beyond = number // 32
    found = np.zeros_like(number)
    for bit in range(n_bits):
        found |= (beyond >> bit & 1) << (n_bits - 1 - bit)
    return found


def build(design: StreamingDesign, kernel: KernelWriter) -> None:
    """Write the whole kernel."""
    code = TransposeKernel(design, kernel)
    rows, columns, tile = design.rows or 1, design.columns or 1, design.block
    across, down = -(-columns // tile.columns), -(-rows // tile.rows)
    index = np.arange(design.n_ctas)
    row, column = (index % down, index // down) if design.walk == "rows" else (index // across, index % across)
    origin = np.stack([row * tile.rows, column * tile.columns])
    inside = np.stack([np.minimum(rows - origin[0], tile.rows), np.minimum(columns - origin[1], tile.columns)])
    for kind, members in classes_of(inside):
        code.run(kernel.cta_class(members), origin[:, members], (int(kind[0]), int(kind[1])))
