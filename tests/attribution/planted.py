"""Kernels with a planted problem, each beside the same kernel without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simulator.trace.kernel_trace import LANES, NONE, Buffer, EventTable, KernelTrace, Launch, Origin, Stream, TensorMap
from tests.lower.traces import Instruction, Lanes, lanes, static_table

FULL_SM = 200_000
"""Bytes of shared memory that leave room for one CTA per SM."""
N_SMS = 132
EXIT = Instruction("EXIT")


@dataclass(frozen=True, eq=False)
class Use:
    """An instruction executed with an address of its own."""

    instruction: Instruction
    address: int


Step = Instruction | Use


def build(
    warps: Sequence[Sequence[Step]],
    n_ctas: int = N_SMS,
    registers: int = 32,
    smem: int = FULL_SM,
    stride: int = 0,
    tensors: tuple[TensorMap, ...] = (),
) -> KernelTrace:
    """``warps``: what each warp of a CTA executes; repeated instructions loop. CTA i accesses ``i * stride`` further."""
    steps = [step for warp in warps for step in (*warp, EXIT)]
    rows: dict[int, int] = {}
    instructions: list[Instruction] = []
    uses: list[tuple[Instruction, int]] = []
    numbers: dict[tuple[int, int], int] = {}
    row_of, event_of = [], []
    for step in steps:
        instruction = step.instruction if isinstance(step, Use) else step
        address = step.address if isinstance(step, Use) else instruction.address
        if id(instruction) not in rows:
            rows[id(instruction)] = len(instructions)
            instructions.append(instruction)
        row_of.append(rows[id(instruction)])
        key = (id(instruction), address)
        if instruction.has_event and key not in numbers:
            numbers[key] = len(uses)
            uses.append((instruction, address))
        event_of.append(numbers.get(key, NONE) if instruction.has_event else NONE)
    streams, first = [], 0
    for warp in warps:
        last = first + len(warp) + 1
        full = np.full(last - first, LANES, np.uint8)
        streams.append(Stream(np.array(row_of[first:last], np.int32), full, np.array(event_of[first:last], np.int32)))
        first = last
    patterns, events = _events(uses, stride > 0)
    return KernelTrace(
        kernel="planted",
        arch="sm_90a",
        launch=Launch((n_ctas, 1, 1), (32 * len(warps), 1, 1)),
        registers_per_thread=registers,
        static_smem_bytes=smem,
        local_bytes_per_thread=0,
        static=static_table(instructions),
        streams=(tuple(streams),),
        events=events,
        lane_patterns=patterns,
        cta_class=np.zeros(n_ctas, np.int32),
        cta_base=np.arange(n_ctas, dtype=np.int64).reshape(-1, 1) * stride,
        tensor_maps=tensors,
        buffers=(Buffer("a", 0, 1 << 30),),
        origin=Origin("tests", "", "tests"),
    )


def _events(uses: Sequence[tuple[Instruction, int]], moves: bool) -> tuple[np.ndarray, EventTable]:
    patterns: list[Lanes] = []

    def number(offsets: Lanes | None) -> int:
        if offsets is None:
            return NONE
        if offsets not in patterns:
            patterns.append(offsets)
        return patterns.index(offsets)

    n = len(uses)
    base = np.full((n, 5), NONE, np.int32)
    if moves:
        base[[i for i, (use, _) in enumerate(uses) if use.lanes and use.opcode.startswith(("LDG", "STG"))], 0] = 0
    columns = {
        "pattern": np.array([number(use.lanes) for use, _ in uses], np.int32),
        "shared_pattern": np.array([number(use.shared) for use, _ in uses], np.int32),
        "address": np.array([address for _, address in uses], np.int64),
        "tensor": np.array([use.tensor for use, _ in uses], np.int32),
        "count": np.array([use.count for use, _ in uses], np.int64),
        "mbarrier": np.array([use.mbarrier for use, _ in uses], np.int32),
        "parity": np.array([use.parity for use, _ in uses], np.int32),
        "shared_address": np.zeros(n, np.int32),
        "cta_mask": np.zeros(n, np.int32),
        "coordinate": np.zeros((n, 5), np.int32),
        "base": base,
    }
    return np.array(patterns, np.int32).reshape(-1, LANES), EventTable(**columns)


FMA = Instruction("FFMA", stall=2)
SLOW_FMA = Instruction("FFMA", stall=4)


def shared_loop(offsets: Lanes, width: int = 4, opcode: str = "LDS", n: int = 40) -> list[Step]:
    """Loads from shared memory, each waited for before the next."""
    load, use = Instruction(opcode, width, write=0, lanes=offsets), Instruction("FADD", wait=1)
    return [load, use] * n


def conflicts_32_ways() -> tuple[KernelTrace, KernelTrace]:
    return build([shared_loop(lanes(128))] * 4), build([shared_loop(lanes(4))] * 4)


def missing_swizzle() -> tuple[KernelTrace, KernelTrace]:
    """Rows of 128 bytes read by columns, 16 bytes a lane."""
    swizzled = tuple(128 * lane ^ 16 * (lane % 8) for lane in range(32))
    return tuple(build([shared_loop(rows, 16, "LDS.128")] * 4) for rows in (lanes(128), swizzled))  # type: ignore[return-value]


def one_stage(n: int = 24, n_ahead: int = 3) -> tuple[KernelTrace, KernelTrace]:
    """Copies into shared memory, each waited for at once; without the problem three are in flight."""
    copy = Instruction("LDGSTS.E.BYPASS.128", 16, lanes=lanes(16), shared=lanes(16))
    commit = Instruction("LDGDEPBAR")
    meet = Instruction("BAR.SYNC.DEFER_BLOCKING", count=128)
    work = [Instruction("FFMA", stall=8) for _ in range(120)]

    def stream(ahead: int) -> list[Step]:
        wait = Instruction("DEPBAR.LE", argument=(max(0, ahead - 1), -1, 0, 0))
        steps: list[Step] = []
        for i in range(ahead - 1):
            steps += [Use(copy, 512 * i), commit]
        for i in range(ahead - 1, n):
            steps += [Use(copy, 512 * i), commit, wait, meet, *work]
        return steps

    # One stage: a copy is issued, then waited for. Pipelined: it was issued `n_ahead` iterations before.
    return build([stream(1)] * 4, stride=1 << 16), build([stream(n_ahead)] * 4, stride=1 << 16)


def long_epilogue() -> tuple[KernelTrace, KernelTrace]:
    loop = [SLOW_FMA] * 300
    tail = [Instruction("FADD", stall=5) for _ in range(150)]
    return build([[*loop, *tail]] * 8), build([loop] * 8)


def partial_wave() -> tuple[KernelTrace, KernelTrace]:
    """33 CTAs more than a wave; the truth is a grid that fills its waves, by work."""
    loop = [SLOW_FMA] * 2000
    return build([loop] * 4, n_ctas=N_SMS + 33), build([loop] * 4, n_ctas=N_SMS)


def scattered_loads() -> tuple[KernelTrace, KernelTrace]:
    def trace(step: int) -> KernelTrace:
        load, use = Instruction("LDG.E", 4, write=0, lanes=lanes(step)), Instruction("FADD", wait=1)
        warps = [[piece for i in range(12) for piece in (Use(load, 4096 * (8 * i + w)), use)] for w in range(8)]
        return build(warps, stride=1 << 19)

    return trace(128), trace(4)


def spilled() -> tuple[KernelTrace, KernelTrace]:
    store = Instruction("STL", 4, lanes=None, address=64)
    load, use = Instruction("LDL", 4, write=0, address=64), Instruction("FFMA", stall=4, wait=1)
    plain = Instruction("FFMA", stall=4)
    return build([[plain, store, load, use] * 40] * 4), build([[plain, use] * 40] * 4)


def too_many_registers() -> tuple[KernelTrace, KernelTrace]:
    def trace(registers: int) -> KernelTrace:
        chain = [Instruction("MUFU.EX2", stall=2, write=0), Instruction("FADD", stall=5, wait=1)] * 60
        return build([chain] * 8, n_ctas=6 * N_SMS, registers=registers, smem=1024)

    return trace(136), trace(80)


def too_much_shared_memory() -> tuple[KernelTrace, KernelTrace]:
    def trace(smem: int) -> KernelTrace:
        chain = [Instruction("MUFU.EX2", stall=2, write=0), Instruction("FADD", stall=5, wait=1)] * 60
        return build([chain] * 4, n_ctas=2 * N_SMS, smem=smem)

    return trace(120_000), trace(112_000)


def exposed_exponentials() -> tuple[KernelTrace, KernelTrace]:
    """One warp per sub-partition alternates MMAs and exponentials; the truth is that they take issue slots only."""
    mma = Instruction("HMMA.16816.F32", argument=(16, 8, 16, 16), stall=4, write=1)
    exponential = Instruction("MUFU.EX2", stall=1)
    use = Instruction("FADD", stall=4, wait=2)
    loop = [mma, *[exponential] * 6, use]
    return build([loop * 30] * 4), build([[mma, *[Instruction("FADD", stall=1)] * 6, use] * 30] * 4)


TENSOR_ROWS = 128


BOXES_IN_FLIGHT = 8


def narrow_boxes() -> tuple[KernelTrace, KernelTrace]:
    """Bulk copies of the same bytes with rows of 32 and of 128 bytes; several are in flight, so that latency is hidden."""

    def trace(row_bytes: int) -> KernelTrace:
        rows = TENSOR_ROWS * 128 // row_bytes
        tensor = TensorMap("a", 2, (row_bytes // 2, 1 << 14), (row_bytes,), (row_bytes // 2, min(256, rows)), 0, 1 << 22)
        n_bytes = row_bytes * min(256, rows)
        copies = rows // min(256, rows)
        places = range(BOXES_IN_FLIGHT)
        steps: list[Step] = [Instruction("SYNCS.EXCH.64", mbarrier=8 * i, count=1) for i in places]
        expect = [Instruction("SYNCS.ARRIVE.TRANS64", mbarrier=8 * i, count=n_bytes * copies) for i in places]
        load = [Instruction("UTMALDG.2D", tensor=0, mbarrier=8 * i, count=n_bytes) for i in places]
        wait = [
            [Instruction("SYNCS.PHASECHK.TRANS64.TRYWAIT", mbarrier=8 * i, parity=parity, write=0) for parity in (0, 1)]
            for i in places
        ]
        branch = Instruction("BRA", wait=1)
        for i in places:
            steps += [expect[i], *[load[i]] * copies]
        for turn in range(6):
            for i in places:
                steps += [wait[i][turn % 2], branch, expect[i], *[load[i]] * copies]
        for i in places:
            steps += [wait[i][0], branch]
        return build([steps], n_ctas=N_SMS, tensors=(tensor,))

    return trace(32), trace(128)


PLANTED = {
    "bank_conflicts": conflicts_32_ways,
    "missing_swizzle": missing_swizzle,
    "too_few_stages": one_stage,
    "serial_epilogue": long_epilogue,
    "tail": partial_wave,
    "uncoalesced": scattered_loads,
    "spills": spilled,
    "register_limit": too_many_registers,
    "occupancy_cliff": too_much_shared_memory,
    "exposed_softmax": exposed_exponentials,
    "small_boxes": narrow_boxes,
}
TRUE_SHARE = {"tail": 165 / 132}
"""Work of the kernel over work of the one without the problem, where they differ."""
RULE = {name: name for name in PLANTED} | {"missing_swizzle": "bank_conflicts"}
