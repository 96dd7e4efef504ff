"""Operand widths in 32-bit registers, from mnemonic and position."""

from __future__ import annotations

import re
from dataclasses import dataclass

from simulator.frontends.sass.operands import Instruction, OperandKind


def opcode_set(names: str) -> frozenset[str]:
    """Base opcodes from a blank-separated list."""
    return frozenset(names.split())


ASYNC_MMA = frozenset({"HGMMA", "QGMMA", "IGMMA", "BGMMA"})
MMA = frozenset({"HMMA", "IMMA", "BMMA", "DMMA", "QMMA", "OMMA"})
DOUBLE = frozenset({"DADD", "DMUL", "DFMA", "DSETP", "DMNMX"})
PACKED_PAIR = frozenset({"FADD2", "FMUL2", "FFMA2"})
CONVERSIONS = frozenset({"F2F", "F2I", "I2F", "FRND", "I2I"})
MATRIX_ACCESS = frozenset({"LDSM", "STSM"})
TENSOR_MEMORY_ACCESS = frozenset({"LDTM", "STTM"})
MEMORY_DATA = opcode_set("LDG LD LDS LDL STG ST STS STL LDC ULDC LDCU ATOM ATOMG ATOMS RED REDG")
TENSOR_MAP_ACCESS = frozenset({"UTMALDG", "UTMASTG", "UTMAREDG", "UTMAPF"})
BULK_ACCESS = frozenset({"UBLKCP", "UBLKRED", "UBLKPF"})
WARPGROUP_LANES = 128
WARP_LANES = 32
REGISTER_BITS = 32
_MATRIX_SHAPE = re.compile(r"(\d+)x(\d+)x(\d+)|(16|8)(8)(4|8|16|32|64|128|256)")
RANK_PATTERN = re.compile(r"([1-5])D")
ACCESS_BYTES = {
    "U8": 1, "S8": 1, "U16": 2, "S16": 2, "32": 4, "64": 8, "F64": 8, "U64": 8, "S64": 8, "128": 16, "256": 32,
}
ELEMENT_BITS = {
    "TF32": 32, "F64": 64, "BF16": 16, "F16": 16, "E4M3": 8, "E5M2": 8, "S8": 8, "U8": 8, "E3M2": 8, "E2M3": 8,
    "E2M1": 4, "S4": 4, "U4": 4, "B1": 1,
}
DEFAULT_ELEMENT_BITS = {"HMMA": 16, "HGMMA": 16, "IMMA": 8, "IGMMA": 8, "QMMA": 8, "QGMMA": 8, "OMMA": 4,
                        "DMMA": 64, "BMMA": 1, "BGMMA": 1}


@dataclass(frozen=True)
class MatrixShape:
    """Shape of one matrix instruction: A is m x k, B is k x n; bits of an element of A and of the accumulator."""

    m: int
    n: int
    k: int
    element_bits: int
    accumulator_bits: int


def matrix_shape(instruction: Instruction) -> MatrixShape | None:
    """Shape of an MMA or asynchronous MMA, from "16816" or "64x128x16"; None when the mnemonic has none."""
    for modifier in instruction.modifiers:
        if found := _MATRIX_SHAPE.fullmatch(modifier):
            m, n, k = (int(size) for size in found.groups() if size is not None)
            return MatrixShape(m, n, k, _element_bits(instruction), _accumulator_bits(instruction))
    return None


def _element_bits(instruction: Instruction) -> int:
    """A's element: the first operand type after the accumulator type; integer forms print only operand types."""
    types = [m for m in instruction.modifiers if m in ELEMENT_BITS]
    if instruction.base in ("HMMA", "HGMMA") and types and instruction.modifiers.index(types[0]) == 1:
        types = types[1:]  # HMMA.16816.F16: the accumulator type
    return ELEMENT_BITS[types[0]] if types else DEFAULT_ELEMENT_BITS[instruction.base]


def _accumulator_bits(instruction: Instruction) -> int:
    if instruction.base == "DMMA":
        return 64
    return 16 if len(instruction.modifiers) > 1 and instruction.modifiers[1] == "F16" else 32


def access_bytes(instruction: Instruction) -> int:
    """Bytes per lane of a memory access: ".128" 16, "F32x4" 16, ".U8" 1; 4 when the mnemonic has no size."""
    for modifier in instruction.modifiers:
        packed = re.fullmatch(r"(F16|BF16|F32)x(\d+)(?:_RN)?", modifier)
        if packed:
            return int(packed[1].lstrip("BF")) // 8 * int(packed[2])
        if modifier in ACCESS_BYTES:
            return ACCESS_BYTES[modifier]
    return 4


def matrix_count(instruction: Instruction) -> int:
    """8x8 matrices that an LDSM or STSM moves: 1, 2 or 4."""
    last = instruction.modifiers[-1] if instruction.modifiers else "1"
    return int(last) if last in ("2", "4") else 1


def register_results(instruction: Instruction) -> int:
    """Registers operands that are results: two for a 256-bit load that names its halves, else one."""
    return 2 if "ENL2" in instruction.modifiers and instruction.base.startswith("LD") else 1


def operand_width(instruction: Instruction, position: int, n_results: int) -> int:
    """Registers that operand ``position`` spans; ``n_results``: leading operands that are results."""
    operand = instruction.operands[position]
    if operand.kind not in (OperandKind.REGISTER, OperandKind.UNIFORM):
        return 1
    base = instruction.base
    if operand.is_64:
        return 2
    if base in ASYNC_MMA or base in MMA:
        return _matrix_width(instruction, position)
    if base in MATRIX_ACCESS:
        return matrix_count(instruction)
    if base in TENSOR_MEMORY_ACCESS:
        return _tensor_memory_width(instruction)
    if base in MEMORY_DATA:
        return _data_width(instruction)
    if base in CONVERSIONS:
        return _conversion_width(instruction, position)
    return _arithmetic_width(instruction, position, n_results)


def _data_width(instruction: Instruction) -> int:
    words = -(-access_bytes(instruction) // 4)
    return words // 2 if "ENL2" in instruction.modifiers else words


def _matrix_width(instruction: Instruction, position: int) -> int:
    shape = matrix_shape(instruction)
    if shape is None:
        return 1
    lanes = WARPGROUP_LANES if instruction.base in ASYNC_MMA else WARP_LANES
    accumulator = shape.m * shape.n * shape.accumulator_bits // (lanes * REGISTER_BITS)
    a = shape.m * shape.k * shape.element_bits // (lanes * REGISTER_BITS)
    if instruction.base in ASYNC_MMA:
        is_a = position == 1 and instruction.operands[2].kind is OperandKind.MATRIX_DESCRIPTOR
        return a if is_a else accumulator
    b = shape.k * shape.n * shape.element_bits // (lanes * REGISTER_BITS)
    return max(1, (accumulator, a, b, accumulator, 1, 1, 1)[position])


def _tensor_memory_width(instruction: Instruction) -> int:
    """LDTM.16dp256bit.x8: 4 registers a repetition; 16dp128bit: 2; the other shapes: 1."""
    text = instruction.opcode
    repeat = re.search(r"\.x(\d+)", text)
    each = 4 if "256bit" in text else 2 if "128bit" in text else 1
    return each * (int(repeat[1]) if repeat else 1)


def _conversion_width(instruction: Instruction, position: int) -> int:
    """Modifiers name the result type, then the source type: F2F.F64.F32. With one type only, the other is 32 bits:
    the type is the result's for F2I.U64 and the source's for F2I.F64, I2F.U64; the result's for I2F.F64."""
    sizes = [m for m in instruction.modifiers if re.fullmatch(r"[FUS](?:64|32|16|8)", m)]
    if len(sizes) >= 2:
        return 2 if sizes[position].endswith("64") else 1
    if not sizes or not sizes[0].endswith("64"):
        return 1
    if instruction.base in ("FRND", "F2F", "I2I"):
        return 2
    floating = sizes[0].startswith("F")
    is_result_type = floating if instruction.base == "I2F" else not floating
    return 2 if (position == 0) == is_result_type else 1


def _arithmetic_width(instruction: Instruction, position: int, n_results: int) -> int:
    base, modifiers = instruction.base, instruction.modifiers
    is_result = position < n_results
    if base in DOUBLE:
        return 2
    if base in PACKED_PAIR:
        return 2
    if base == "CS2R":
        return 1 if "32" in modifiers else 2
    if base in ("IMAD", "UIMAD"):
        wide = "WIDE" in modifiers
        is_addend = position == n_results + 2
        return 2 if (wide and is_result) or ((wide or "HI" in modifiers) and is_addend) else 1
    if base in ("RET", "BRX", "JMX", "BRXU"):
        return 2
    if base == "SYNCS":
        return 2 if "EXCH" in modifiers and "64" in modifiers else 1
    if base in ("UBLKCP", "UBLKRED", "UTMALDG", "UTCBAR", "SHF", "USHF", "S2UR", "MUFU"):
        return 1
    return 2 if "64" in modifiers or ("U64" in modifiers and base in ("ISETP", "UISETP")) else 1


def address_width(instruction: Instruction, position: int) -> int:
    """Uniform registers that an address operand spans: bulk copies pass their operands in runs of registers
    (shared address, mbarrier, coordinates), matrix descriptors are 64 bits each, A's before B's."""
    operand, base = instruction.operands[position], instruction.base
    if operand.kind is OperandKind.MATRIX_DESCRIPTOR:
        both = base in ASYNC_MMA and position == 1
        return 4 if both else 2
    if base in TENSOR_MAP_ACCESS:
        rank = next((int(m[0]) for m in instruction.modifiers if RANK_PATTERN.fullmatch(m)), 0)
        return 2 + rank if position == 0 else 2
    if base in BULK_ACCESS:
        return 2
    return 1
