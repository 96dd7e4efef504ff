"""Writes kernels: static code in blocks, what each warp executes, the operands of every execution.

A generator writes *blocks* of instructions once (``KernelWriter.block``), then says for every CTA class and warp which
blocks run, how often, and with which events (``Warp.run``); repetition and operands are NumPy arrays, so that a loop of
thousands of turns costs no Python. ``KernelWriter.trace`` puts the KernelTrace together.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from simulator.kernels.control_words import Instruction, Value, place
from simulator.kernels.registers import live_registers
from simulator.trace.builder import MAX_RANK, ClassStreams, assemble
from simulator.trace.kernel_trace import LANES, NONE, Buffer, KernelTrace, Launch, Origin, StaticTable, TensorMap

INSTRUCTION_BYTES = 16
BUFFER_ALIGNMENT = 1 << 21
"""Buffers begin at multiples of 2 MiB, as the pages of an allocation do."""
EVENT_DEFAULTS = {
    "pattern": NONE,
    "address": 0,
    "shared_address": 0,
    "shared_pattern": NONE,
    "tensor": NONE,
    "count": 0,
    "mbarrier": NONE,
    "parity": 0,
    "cta_mask": 0,
}


@dataclass(eq=False)
class Block:
    """Straight-line code. ``first``: its static row once the trace is put together; ``slots``: named instructions,
    whose events and active lanes an execution gives."""

    name: str
    is_loop: bool
    instructions: list[Instruction] = field(default_factory=list)
    slots: dict[str, int] = field(default_factory=dict)
    first: int = 0

    def op(
        self,
        opcode: str,
        writes: Sequence[Value] = (),
        reads: Sequence[Value] = (),
        *,
        slot: str | None = None,
        guard: Value | None = None,
        width: int = 0,
        argument: Sequence[int] = (),
        text: str = "",
    ) -> None:
        """Append an instruction. ``width``: bytes per lane of a memory access (matrix accesses: 4 per 8x8 matrix);
        ``argument``: see StaticTable."""
        if slot is not None:
            self.slots[slot] = len(self.instructions)
        one = Instruction(opcode, tuple(writes), tuple(reads), guard, width, tuple(argument), text)
        self.instructions.append(one)

    def ops(self, opcode: str, n: int, writes: Sequence[Value] = (), reads: Sequence[Value] = ()) -> None:
        """Append ``n`` equal instructions."""
        for _ in range(n):
            self.op(opcode, writes, reads)

    def __len__(self) -> int:
        return len(self.instructions)


class Warp:
    """What one warp executes."""

    def __init__(self) -> None:
        self._runs: list[tuple[Block, int, dict[str, ArrayLike], dict[str, ArrayLike]]] = []

    def run(
        self,
        block: Block,
        times: int = 1,
        events: Mapping[str, ArrayLike] | None = None,
        active: Mapping[str, ArrayLike] | None = None,
    ) -> None:
        """Execute ``block`` ``times`` times. ``events``: slot -> event rows [times] (or one for all); ``active``:
        slot -> active lanes [times] (or one number); instructions that are not named have all lanes active."""
        if times > 0:
            self._runs.append((block, times, dict(events or {}), dict(active or {})))

    def stream(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(instruction int32, active uint8, event int32)."""
        parts = [_expand(*run) for run in self._runs]
        return tuple(np.concatenate([part[i] for part in parts]) for i in range(3))  # type: ignore[return-value]


def _expand(
    block: Block, times: int, events: dict[str, ArrayLike], active: dict[str, ArrayLike]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    n = len(block)
    event = np.full((times, n), NONE, np.int32)
    lanes = np.full((times, n), LANES, np.uint8)
    for slot, rows in events.items():
        event[:, block.slots[slot]] = rows
    for slot, number in active.items():
        lanes[:, block.slots[slot]] = number
    off = lanes == 0
    event[off] = NONE
    instruction = np.tile(np.arange(block.first, block.first + n, dtype=np.int32), times)
    return instruction, lanes.ravel(), event.ravel()


class CtaClass:
    """CTAs that execute the same streams. ``members`` int64 [n]: their indices, the representative first."""

    def __init__(self, members: ArrayLike, n_warps: int, columns: dict[str, int] | None = None) -> None:
        self.members = np.asarray(members, np.int64)
        self.warps = [Warp() for _ in range(n_warps)]
        self._columns: dict[str, list[np.ndarray]] = {name: [] for name in (*EVENT_DEFAULTS, "coordinate", "base", "difference")}
        self._n_events = 0
        self._differences: dict[int, np.ndarray] = {}
        self._columns_by_name = {} if columns is None else columns
        self._fixed: dict[int, int] = {}

    def difference(self, values: ArrayLike) -> int:
        """A number that differs between the members (int [n]): give it as ``base`` or ``moves`` of events whose address
        or coordinate holds the representative's ``values[0]``."""
        key = len(self._differences) + 1
        numbers = np.asarray(values, np.int64)
        self._differences[key] = numbers - numbers[0]
        return key

    def place(self, name: str, values: ArrayLike) -> int:
        """As ``difference``, but counted from zero and under the same ``name`` in every class: events hold nothing of it.
        A CTA that is followed beside one of another class then still has its own place."""
        column = self._columns_by_name.setdefault(name, len(self._columns_by_name))
        known = next((key for key, taken in self._fixed.items() if taken == column), None)
        if known is not None:
            return known
        key = len(self._differences) + 1
        self._differences[key] = np.asarray(values, np.int64)
        self._fixed[key] = column
        return key

    def events(
        self,
        *,
        coordinate: Sequence[ArrayLike] = (),
        moves: Sequence[int] = (),
        base: int = 0,
        **columns: ArrayLike,
    ) -> np.ndarray:
        """Rows of operands, int32 [n]: fields of EventTable as arrays that broadcast against each other.

        ``coordinate``: of a tensor box, innermost first, with ``moves``: for each the key of the difference to add
        (0 = none); ``base``: key of the difference to add to ``address``.
        """
        arrays = np.broadcast_arrays(*(np.atleast_1d(v) for v in (*columns.values(), *coordinate)))
        n = len(arrays[0]) if arrays else 1
        given = dict(zip(columns, arrays, strict=False))
        for name, default in EVENT_DEFAULTS.items():
            column = given.get(name)
            self._columns[name].append(np.full(n, default, np.int64) if column is None else column.astype(np.int64))
        places = np.zeros((n, MAX_RANK), np.int64)
        moved = np.zeros((n, MAX_RANK), np.int64)
        for d, values in enumerate(arrays[len(columns) :]):
            places[:, d] = values
        moved[:, : len(moves)] = moves
        self._columns["coordinate"].append(places)
        self._columns["difference"].append(moved)
        self._columns["base"].append(np.full(n, base, np.int64))
        rows = np.arange(self._n_events, self._n_events + n, dtype=np.int32)
        self._n_events += n
        return rows

    def streams(self) -> ClassStreams:
        """The class as the trace builder takes it."""
        joined = {
            name: np.concatenate(parts)
            if parts
            else np.zeros((0, MAX_RANK) if name in ("coordinate", "difference") else 0, np.int64)
            for name, parts in self._columns.items()
        }
        difference, base = joined.pop("difference"), joined.pop("base")
        streams = [w.stream() for w in self.warps]
        return ClassStreams(self.members, streams, joined, base, difference, self._differences, self._fixed)


class KernelWriter:
    """One kernel under construction. ``name``, ``arch``: as in KernelTrace; ``max_registers``: launch bound, if any."""

    def __init__(self, name: str, arch: str, launch: Launch) -> None:
        self.name, self.arch, self.launch = name, arch, launch
        self.blocks: list[Block] = []
        self.classes: list[CtaClass] = []
        self.tensor_maps: list[TensorMap] = []
        self.buffers: list[Buffer] = []
        self.local_bytes = 0
        self._patterns: dict[bytes, int] = {}
        self._pattern_rows: list[np.ndarray] = []
        self._columns_by_name: dict[str, int] = {}

    def block(self, name: str, loop: bool = False) -> Block:
        """A new block of code; control words treat the blocks as if they ran in the order of this call."""
        self.blocks.append(Block(name, loop))
        return self.blocks[-1]

    def cta_class(self, members: ArrayLike) -> CtaClass:
        """A new class of CTAs."""
        self.classes.append(CtaClass(members, self.launch.n_warps, self._columns_by_name))
        return self.classes[-1]

    def buffer(self, name: str, n_bytes: int) -> int:
        """Allocate global memory; returns its address."""
        address = BUFFER_ALIGNMENT
        if self.buffers:
            last = self.buffers[-1]
            address = -(-(last.address + last.n_bytes) // BUFFER_ALIGNMENT) * BUFFER_ALIGNMENT
        self.buffers.append(Buffer(name, address, n_bytes))
        return address

    def tensor_map(
        self,
        name: str,
        element_bytes: int,
        shape: Sequence[int],
        box: Sequence[int],
        swizzle_bytes: int,
        address: int,
        *,
        strides: Sequence[int] = (),
        row_share: float = 1.0,
    ) -> int:
        """A tensor (``shape``, ``box`` in elements, innermost first; ``strides`` in bytes of dimensions 1.., default:
        dense; ``row_share``: see TensorMap); returns its number."""
        steps = tuple(strides) or tuple(int(s) for s in np.cumprod(shape[:-1]) * element_bytes)
        found = TensorMap(name, element_bytes, tuple(shape), steps, tuple(box), swizzle_bytes, address, row_share)
        self.tensor_maps.append(found)
        return len(self.tensor_maps) - 1

    def pattern(self, offsets: ArrayLike) -> int:
        """Number of a lane pattern (int bytes [32], -1 inactive)."""
        lanes = np.ascontiguousarray(offsets, np.int32)
        key = lanes.tobytes()
        if key not in self._patterns:
            self._patterns[key] = len(self._pattern_rows)
            self._pattern_rows.append(lanes)
        return self._patterns[key]

    def place(self) -> None:
        """Fix the control words and the static rows; call after the last block and before the first ``Warp.stream``."""
        place([(block.instructions, block.is_loop) for block in self.blocks])
        first = 0
        for block in self.blocks:
            block.first = first
            first += len(block)

    def live_registers(self) -> int:
        """Registers per thread from live ranges."""
        return live_registers([(block.instructions, block.is_loop) for block in self.blocks])

    def trace(self, registers: int, warnings: Sequence[str] = ()) -> KernelTrace:
        """The finished trace. ``registers``: per thread, as launched."""
        self.place()
        patterns = np.stack(self._pattern_rows) if self._pattern_rows else np.zeros((0, LANES), np.int32)
        found = assemble([c.streams() for c in self.classes], patterns, self.launch.n_ctas)
        static = static_table([one for block in self.blocks for one in block.instructions])
        return KernelTrace(
            kernel=self.name,
            arch=self.arch,
            launch=self.launch,
            registers_per_thread=registers,
            static_smem_bytes=0,
            local_bytes_per_thread=self.local_bytes,
            static=static,
            streams=found.streams,
            events=found.events,
            lane_patterns=found.lane_patterns,
            cta_class=found.cta_class,
            cta_base=found.cta_base,
            tensor_maps=tuple(self.tensor_maps),
            buffers=tuple(self.buffers),
            origin=Origin(self.name, hashlib.sha256("\n".join(static.text).encode()).hexdigest(), "simulator.kernels"),
            warnings=tuple(warnings),
        )


def static_table(code: Sequence[Instruction]) -> StaticTable:
    """The static columns of ``code``, in order."""
    n = len(code)
    argument = np.zeros((n, 4), np.int32)
    for row, one in zip(argument, code, strict=True):
        row[: len(one.argument)] = one.argument
    none = np.full((n, 3), NONE, np.int16)
    return StaticTable(
        address=np.arange(n, dtype=np.int32) * INSTRUCTION_BYTES,
        opcode=tuple(one.opcode for one in code),
        text=tuple(one.text or _text(one) for one in code),
        stall=_column(one.stall for one in code),
        yield_hint=np.zeros(n, np.int32),
        write_scoreboard=_column(one.write_scoreboard for one in code),
        read_scoreboard=_column(one.read_scoreboard for one in code),
        wait_mask=_column(one.wait_mask for one in code),
        reuse=np.zeros(n, np.int32),
        width_bytes=_column(one.width_bytes for one in code),
        argument=argument,
        registers_written=none,
        registers_read=none,
    )


def _column(values) -> np.ndarray:  # type: ignore[no-untyped-def]
    return np.array(list(values), np.int32)


def _text(one: Instruction) -> str:
    guard = f"@{one.guard.name} " if one.guard is not None else ""
    return f"{guard}{one.opcode} {', '.join(v.name for v in (*one.writes, *one.reads))}".strip()
