"""Kernel traces of a few instructions, for questions about lowering."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from simulator.trace.kernel_trace import (
    LANES,
    NO_SCOREBOARD,
    NONE,
    EventTable,
    KernelTrace,
    Launch,
    Origin,
    StaticTable,
    Stream,
    TensorMap,
)

Lanes = tuple[int, ...]
"""Byte offsets of 32 lanes from the pattern's origin, -1 where a lane is inactive."""


@dataclass(frozen=True)
class Instruction:
    """One executed instruction and its operands; ``lanes`` of the global or shared side, ``shared`` of LDGSTS."""

    opcode: str
    width: int = 0
    argument: tuple[int, int, int, int] = (0, 0, 0, 0)
    stall: int = 1
    write: int = NO_SCOREBOARD
    read: int = NO_SCOREBOARD
    wait: int = 0
    lanes: Lanes | None = None
    shared: Lanes | None = None
    address: int = 0
    base: tuple[int, ...] = ()
    coordinate: tuple[int, ...] = ()
    tensor: int = NONE
    mbarrier: int = NONE
    count: int = 0
    parity: int = 0

    @property
    def has_event(self) -> bool:
        plain = (self.lanes, self.shared) == (None, None) and self.tensor == self.mbarrier == NONE
        return not (plain and self.count == self.address == self.parity == 0)


@dataclass
class _Patterns:
    rows: list[Lanes] = field(default_factory=list)

    def number(self, lanes: Lanes | None) -> int:
        if lanes is None:
            return NONE
        if lanes not in self.rows:
            self.rows.append(lanes)
        return self.rows.index(lanes)


def static_table(instructions: Sequence[Instruction]) -> StaticTable:
    """One row per instruction, in order."""
    n = len(instructions)
    return StaticTable(
        address=np.arange(n, dtype=np.int64) * 16,
        opcode=tuple(i.opcode for i in instructions),
        text=tuple(i.opcode for i in instructions),
        stall=np.array([i.stall for i in instructions], np.uint8),
        yield_hint=np.zeros(n, np.uint8),
        write_scoreboard=np.array([i.write for i in instructions], np.uint8),
        read_scoreboard=np.array([i.read for i in instructions], np.uint8),
        wait_mask=np.array([i.wait for i in instructions], np.uint8),
        reuse=np.zeros(n, np.uint8),
        width_bytes=np.array([i.width for i in instructions], np.uint8),
        argument=np.array([i.argument for i in instructions], np.int32).reshape(n, 4),
        registers_written=np.full((n, 3), -1, np.int16),
        registers_read=np.full((n, 3), -1, np.int16),
    )


def kernel_trace(
    instructions: Sequence[Instruction],
    cta_base: Sequence[Sequence[int]] = ((),),
    tensors: tuple[TensorMap, ...] = (),
    arch: str = "sm_90a",
) -> KernelTrace:
    """A trace of one warp that executes ``instructions``, in one CTA per row of ``cta_base``."""
    patterns = _Patterns()
    users = [i for i in instructions if i.has_event]
    five = {"coordinate": 0, "base": NONE}
    table = {
        "pattern": np.array([patterns.number(i.lanes) for i in users], np.int32),
        "address": np.array([i.address for i in users], np.int64),
        "shared_address": np.zeros(len(users), np.int32),
        "shared_pattern": np.array([patterns.number(i.shared) for i in users], np.int32),
        "tensor": np.array([i.tensor for i in users], np.int32),
        "count": np.array([i.count for i in users], np.int64),
        "mbarrier": np.array([i.mbarrier for i in users], np.int32),
        "parity": np.array([i.parity for i in users], np.int32),
        "cta_mask": np.zeros(len(users), np.int32),
    }
    for name, missing in five.items():
        rows = [[*getattr(i, name), *[missing] * 5][:5] for i in users]
        table[name] = np.array(rows, np.int32).reshape(-1, 5)
    event = np.full(len(instructions), NONE, np.int32)
    event[[n for n, i in enumerate(instructions) if i.has_event]] = np.arange(len(users))
    n_ctas = len(cta_base)
    stream = Stream(np.arange(len(instructions), dtype=np.int32), np.full(len(instructions), 32, np.uint8), event)
    return KernelTrace(
        kernel="few_instructions",
        arch=arch,
        launch=Launch((n_ctas, 1, 1), (32, 1, 1)),
        registers_per_thread=32,
        static_smem_bytes=0,
        local_bytes_per_thread=0,
        static=static_table(instructions),
        streams=((stream,),),
        events=EventTable(**table),
        lane_patterns=np.array(patterns.rows, np.int32).reshape(-1, LANES),
        cta_class=np.zeros(n_ctas, np.int32),
        cta_base=np.array(cta_base, np.int64).reshape(n_ctas, -1),
        tensor_maps=tensors,
        buffers=(),
        origin=Origin("tests", "", "tests"),
    )


def lanes(stride: int, n: int = LANES, first: int = 0) -> Lanes:
    """``n`` active lanes, ``stride`` bytes apart."""
    return tuple(first + stride * lane if lane < n else -1 for lane in range(LANES))
