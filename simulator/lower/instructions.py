"""Static rows of the program: what each instruction does on this chip and how long it takes."""

from __future__ import annotations

import numpy as np

from simulator.errors import Unsupported
from simulator.hw.timing import PipeTiming, Timing
from simulator.isa import effects as fx
from simulator.isa.table import pipe_of
from simulator.sm.inputs import (
    CYCLE,
    I_ARGUMENT,
    I_CONTENTION,
    I_EFFECT,
    I_INTERVAL,
    I_KIND,
    I_LATENCY,
    I_NUMBER,
    I_PIPE,
    I_PORT,
    I_READ,
    I_REASON,
    I_STALL,
    I_WAIT,
    I_WRITE,
    STATIC_SIZE,
)
from simulator.trace.kernel_trace import StaticTable

# Pipe class of the instruction table -> (effect, pipe of the sub-partition, timing entry under ``pipes``).
_FIXED = {
    "alu": (fx.PIPE_ALU, "alu"),
    "fma": (fx.PIPE_FMA, "fma"),
    "fma_heavy": (fx.PIPE_FMA_HEAVY, "fma_heavy"),
    "fma_half": (fx.PIPE_FMA_HALF, "fma_half"),
    "transcendental": (fx.PIPE_TRANSCENDENTAL, "transcendental"),
    "fp64": (fx.PIPE_FP64, "fp64"),
    "uniform": (fx.PIPE_UNIFORM, "uniform"),
    "vote": (fx.PIPE_VOTE, "vote"),
    "special": (fx.PIPE_SPECIAL, "special"),
    "constant": (fx.PIPE_SPECIAL, "constant"),
    "uniform_constant": (fx.PIPE_UNIFORM, "uniform_constant"),
}
_EFFECTS = {
    "none": (fx.NO_EFFECT, fx.UNPIPED),
    "exit": (fx.NO_EFFECT, fx.UNPIPED),
    "tensor_arrive": (fx.NO_EFFECT, fx.UNPIPED),
    "bulk_prefetch": (fx.NO_EFFECT, fx.UNPIPED),
    "shared": (fx.SHARED_ACCESS, fx.PIPE_SHARED),
    "shuffle": (fx.SHARED_ACCESS, fx.PIPE_SHARED),
    "redux": (fx.SHARED_ACCESS, fx.PIPE_SHARED),
    "tensor_async": (fx.TENSOR_ASYNC, fx.PIPE_TENSOR_ASYNC),
    "bulk_load": (fx.BULK_LOAD, fx.PIPE_SHARED),
    "bulk_store": (fx.BULK_STORE, fx.PIPE_SHARED),
    "bulk_flush": (fx.BULK_COMMIT, fx.UNPIPED),
    "mbarrier": (fx.MBARRIER, fx.PIPE_SHARED),
    "barrier": (fx.BARRIER, fx.UNPIPED),
    "tensor_wait": (fx.TENSOR_WAIT, fx.UNPIPED),
    "scoreboard_wait": (fx.COPY_WAIT, fx.UNPIPED),
    "copy_commit": (fx.COPY_COMMIT, fx.UNPIPED),
    "copy_arrive": (fx.COPY_ARRIVE, fx.UNPIPED),
    "branch": (fx.BRANCH, fx.UNPIPED),
    "fence": (fx.FENCE, fx.UNPIPED),
    "cluster_barrier": (fx.CLUSTER_BARRIER, fx.UNPIPED),
}
_CROSS_LANE = ("shuffle", "redux")
_GLOBAL_EFFECTS = {
    "LDG": fx.GLOBAL_LOAD,
    "LD": fx.GLOBAL_LOAD,
    "STG": fx.GLOBAL_STORE,
    "ST": fx.GLOBAL_STORE,
    "LDGSTS": fx.GLOBAL_COPY,
    "LDL": fx.LOCAL_LOAD,
    "STL": fx.LOCAL_STORE,
}
_LONG_REASON = {
    fx.GLOBAL_LOAD,
    fx.GLOBAL_STORE,
    fx.GLOBAL_ATOMIC,
    fx.GLOBAL_COPY,
    fx.LOCAL_LOAD,
    fx.LOCAL_STORE,
    fx.BULK_LOAD,
    fx.BULK_STORE,
}


def ticks(cycles: float) -> int:
    """Cycles as integer ticks."""
    return round(cycles * CYCLE)


def lower_static(static: StaticTable, timing: Timing) -> np.ndarray:
    """One row per machine instruction, int64 [n_static, STATIC_SIZE]."""
    table = np.zeros((len(static), STATIC_SIZE), np.int64)
    table[:, I_NUMBER] = np.arange(len(static))
    table[:, I_STALL] = np.maximum(static.stall.astype(np.int64), 1) * CYCLE
    table[:, I_WRITE] = static.write_scoreboard
    table[:, I_READ] = static.read_scoreboard
    table[:, I_WAIT] = static.wait_mask
    known: dict[tuple[str, bytes], np.ndarray] = {}
    for k, (opcode, argument) in enumerate(zip(static.opcode, static.argument, strict=True)):
        kind = opcode, argument.tobytes()
        if kind not in known:
            known[kind] = np.zeros(STATIC_SIZE, np.int64)
            _lower_instruction(known[kind], opcode, argument, timing)
        table[k] += known[kind]
    return table


def _lower_instruction(row: np.ndarray, opcode: str, argument: np.ndarray, timing: Timing) -> None:
    pipe_class = pipe_of(opcode)
    parts = opcode.split(".")
    row[I_REASON] = fx.SHORT_SCOREBOARD
    if pipe_class in _FIXED:
        _lower_fixed(row, opcode, pipe_class, timing)
    elif pipe_class == "tensor":
        _lower_mma(row, opcode, argument, timing)
    elif pipe_class == "global":
        row[I_EFFECT] = _GLOBAL_EFFECTS.get(parts[0], fx.GLOBAL_ATOMIC)
        local = row[I_EFFECT] in (fx.LOCAL_LOAD, fx.LOCAL_STORE)
        row[I_PIPE] = fx.PIPE_GLOBAL
        row[I_KIND] = int(local or "BYPASS" not in parts)
    elif pipe_class in _EFFECTS:
        row[I_EFFECT], row[I_PIPE] = _EFFECTS[pipe_class]
        _lower_special(row, parts, pipe_class, argument, timing)
    else:
        raise Unsupported(f"instruction {opcode}: pipe class '{pipe_class}' is not modelled")
    if row[I_EFFECT] in _LONG_REASON:
        row[I_REASON] = fx.LONG_SCOREBOARD


def _lower_fixed(row: np.ndarray, opcode: str, pipe_class: str, timing: Timing) -> None:
    pipe, entry = _FIXED[pipe_class]
    named = _refined(opcode, timing) or timing.pipes[entry]
    row[I_EFFECT] = fx.FIXED
    row[I_PIPE] = pipe
    row[I_INTERVAL] = ticks(named.interval_cycles)
    row[I_LATENCY] = ticks(named.latency_cycles)
    row[I_CONTENTION] = ticks(timing.tensor_async.contention_cycles.get(pipe_class, 0.0))


def _refined(opcode: str, timing: Timing) -> PipeTiming | None:
    """The entry of ``timing.opcodes`` with the longest dotted prefix of ``opcode``, if any."""
    parts = opcode.split(".")
    for n in range(len(parts), 0, -1):
        named = timing.opcodes.get(".".join(parts[:n]))
        if named is not None:
            return named
    return None


def _lower_mma(row: np.ndarray, opcode: str, argument: np.ndarray, timing: Timing) -> None:
    m, n, k, bits = (int(x) for x in argument)
    size = m * n * k * bits
    entries = sorted(timing.mma.values(), key=lambda entry: entry.operand_bits)
    fitting = next((entry for entry in entries if entry.operand_bits >= size), None)
    if size <= 0 or fitting is None:
        raise Unsupported(f"instruction {opcode}: no measured MMA of {m}x{n}x{k} with {bits}-bit elements on this chip")
    row[I_EFFECT] = fx.FIXED
    row[I_PIPE] = fx.PIPE_TENSOR
    row[I_INTERVAL] = ticks(fitting.interval_cycles)
    row[I_LATENCY] = ticks(fitting.latency_cycles)


def _lower_special(row: np.ndarray, parts: list[str], pipe_class: str, argument: np.ndarray, timing: Timing) -> None:
    effect = row[I_EFFECT]
    if effect == fx.SHARED_ACCESS:
        row[I_LATENCY] = ticks(_shared_latency(parts[0], pipe_class, timing))
        if pipe_class in _CROSS_LANE:
            row[I_INTERVAL] = ticks(timing.pipes[pipe_class].interval_cycles)
    elif effect == fx.TENSOR_ASYNC:
        _lower_async_mma(row, argument, timing)
    elif effect == fx.MBARRIER:
        row[I_LATENCY] = ticks(timing.barrier.mbarrier_latency_cycles)
        row[I_KIND] = _mbarrier_kind(parts)
        row[I_REASON] = fx.STALL_MBARRIER
    elif effect == fx.BARRIER:
        row[I_KIND] = int("SYNC" in parts or "RED" in parts)
    elif effect in (fx.TENSOR_WAIT, fx.COPY_WAIT):
        row[I_ARGUMENT] = argument[0]
    elif effect == fx.CLUSTER_BARRIER:
        row[I_KIND] = int(parts[0].endswith("ARV"))
    elif effect == fx.FENCE:
        is_chip_wide = parts[0] == "MEMBAR" and ("GPU" in parts or "SYS" in parts)
        row[I_LATENCY] = ticks(timing.barrier.chip_fence_cycles if is_chip_wide else timing.barrier.fence_cycles)


def _shared_latency(base: str, pipe_class: str, timing: Timing) -> float:
    if pipe_class in _CROSS_LANE:
        return timing.pipes[pipe_class].latency_cycles
    return timing.shared.matrix_load_latency_cycles if base == "LDSM" else timing.shared.load_latency_cycles


def _mbarrier_kind(parts: list[str]) -> int:
    if "PHASECHK" in parts:
        return fx.MBARRIER_WAIT
    if "EXCH" in parts:
        return fx.MBARRIER_INIT
    if "ARRIVE" in parts:
        return fx.MBARRIER_ARRIVE if "A1T0" in parts else fx.MBARRIER_EXPECT
    return fx.MBARRIER_OTHER


def _lower_async_mma(row: np.ndarray, argument: np.ndarray, timing: Timing) -> None:
    """Interval and latency of a warpgroup MMA: the wider of the columns' and the shared operands' time."""
    n, k_bytes, a_is_shared, commits = (int(x) for x in argument)
    t = timing.tensor_async
    rows_per_mma = 64
    operand_bytes = n * k_bytes + (rows_per_mma * k_bytes if a_is_shared else 0)
    floor = 0.0 if a_is_shared else t.register_operand_floor_cycles
    row[I_INTERVAL] = ticks(max(n / t.columns_per_cycle, floor))
    row[I_PORT] = ticks(operand_bytes / t.operand_bytes_per_cycle)
    row[I_LATENCY] = ticks(t.shared_operand_latency_cycles if a_is_shared else t.register_operand_latency_cycles)
    row[I_ARGUMENT] = commits
