"""``SassKernel`` -> ``StaticTable``: one row per machine instruction, chip independent."""

from __future__ import annotations

import numpy as np

from simulator.errors import Unsupported
from simulator.frontends.sass import widths
from simulator.frontends.sass.defuse import DefUse, Register, RegisterFile, define_use
from simulator.frontends.sass.operands import Instruction, Operand, OperandKind, SassKernel
from simulator.isa.table import find_opcode
from simulator.trace.kernel_trace import NONE, StaticTable

GROUP_SCOREBOARD = "gsb0"
ELEMENTS_OF_ROW = 4
LISTED_REGISTERS = 3
MATRIX_ROW_BYTES = 4
_ACCESSES = widths.opcode_set("LDG LD STG ST LDL STL LDS STS LDGSTS ATOM ATOMG ATOMS RED REDG STAS REDAS")


def build_static_table(kernel: SassKernel) -> StaticTable:
    """Columns of the kernel's instructions in address order. ``registers_written`` and ``registers_read`` list the
    first register of each general-register operand (a pair or an accumulator counts once)."""
    rows = kernel.instructions
    uses = [define_use(row) for row in rows]
    controls = [row.control for row in rows]
    return StaticTable(
        address=np.array([row.address for row in rows], np.int64),
        opcode=tuple(_named(row.opcode) for row in rows),
        text=tuple(row.text for row in rows),
        stall=np.array([c.stall for c in controls], np.int32),
        yield_hint=np.array([c.yield_hint for c in controls], np.int32),
        write_scoreboard=np.array([c.write for c in controls], np.int32),
        read_scoreboard=np.array([c.read for c in controls], np.int32),
        wait_mask=np.array([c.wait for c in controls], np.int32),
        reuse=np.array([c.reuse for c in controls], np.int32),
        width_bytes=np.array([width_bytes(row) for row in rows], np.int32),
        argument=np.array([argument(row) for row in rows], np.int32).reshape(-1, ELEMENTS_OF_ROW),
        registers_written=_register_columns(uses, written=True),
        registers_read=_register_columns(uses, written=False),
    )


def _named(opcode: str) -> str:
    """The opcode itself, or UNKNOWN with the opcode as its modifier when the instruction table lacks it."""
    try:
        find_opcode(opcode)
    except Unsupported:
        return f"UNKNOWN.{opcode}"
    return opcode


def width_bytes(instruction: Instruction) -> int:
    """Bytes per lane of a memory access; 4 per 8x8 matrix for LDSM and STSM; 0 for everything else."""
    if instruction.base in widths.MATRIX_ACCESS:
        return MATRIX_ROW_BYTES * widths.matrix_count(instruction)
    return widths.access_bytes(instruction) if instruction.base in _ACCESSES else 0


def argument(instruction: Instruction) -> tuple[int, int, int, int]:
    """Static operand of the effect, as ``StaticTable.argument`` documents it."""
    base = instruction.base
    if base in widths.ASYNC_MMA:
        return _async_mma_argument(instruction)
    if base in widths.MMA:
        shape = widths.matrix_shape(instruction)
        return (shape.m, shape.n, shape.k, shape.element_bits) if shape else (0, 0, 0, 0)
    if base in ("WARPGROUP", "DEPBAR") and instruction.operands:
        return _wait_argument(instruction.operands)
    if base == "BAR":
        return _barrier_argument(instruction.operands)
    return (0, 0, 0, 0)


def _async_mma_argument(instruction: Instruction) -> tuple[int, int, int, int]:
    shape = widths.matrix_shape(instruction)
    if shape is None:
        return (0, 0, 0, 0)
    from_shared = instruction.operands[1].kind is OperandKind.MATRIX_DESCRIPTOR
    commits = any(operand.text == GROUP_SCOREBOARD for operand in instruction.operands)
    return (shape.n, shape.k * shape.element_bits // 8, int(from_shared), int(commits))


def _wait_argument(operands: tuple[Operand, ...]) -> tuple[int, int, int, int]:
    """DEPBAR.LE SB0, 0x2 and WARPGROUP.DEPBAR.LE gsb0, 0x1: groups that may stay pending, scoreboard."""
    pending = next((o.value for o in operands if o.kind is OperandKind.IMMEDIATE), 0)
    scoreboard = next((o.index for o in operands if o.kind is OperandKind.SCOREBOARD), NONE)
    return (pending, scoreboard, 0, 0)


def _barrier_argument(operands: tuple[Operand, ...]) -> tuple[int, int, int, int]:
    """BAR.SYNC id(, threads): -1 for an id in a register, 0 for all threads or a count in a register."""
    fixed = [o.value if o.kind is OperandKind.IMMEDIATE else NONE for o in operands]
    identifier = fixed[0] if fixed else 0
    threads = max(fixed[1], 0) if len(fixed) > 1 else 0
    return (identifier, threads, 0, 0)


def _register_columns(uses: list[DefUse], written: bool) -> np.ndarray:
    columns = np.full((len(uses), LISTED_REGISTERS), NONE, np.int16)
    for row, use in enumerate(uses):
        numbers = _general(use.written_bases if written else use.read_bases)[:LISTED_REGISTERS]
        columns[row, : len(numbers)] = numbers
    return columns


def _general(registers: tuple[Register, ...]) -> list[int]:
    return [register.number for register in registers if register.file is RegisterFile.GENERAL]
