"""Typed operands and instructions of one decoded SASS kernel: what decode.py produces and the executor consumes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class OperandKind(IntEnum):
    """The operand grammar of SASS as printed by the disassembler."""

    REGISTER = 0  # R12, RZ
    UNIFORM = 1  # UR4, URZ
    PREDICATE = 2  # P0, PT
    UNIFORM_PREDICATE = 3  # UP0, UPT
    IMMEDIATE = 4  # 0x10 (value: 64-bit two's complement as Python int)
    FLOAT_IMMEDIATE = 5  # 1.5, +INF, QNAN (value: bits as binary32, or binary64 when the opcode is 64-bit)
    CONSTANT = 6  # c[bank][offset], offset may use a register
    SPECIAL = 7  # SR_TID.X
    MEMORY = 8  # [R2.64+UR4+0x10], desc[UR6][R2.64+0x10]
    MATRIX_DESCRIPTOR = 9  # gdesc[UR8]
    LABEL = 10  # branch target (value: byte offset in the kernel)
    SCOREBOARD = 11  # SB0
    OTHER = 12  # gsb0, tmem[..], modifiers kept as text


ZERO = 255
"""Register number of RZ, URZ; predicate number of PT, UPT is TRUE."""
TRUE = 7


@dataclass(frozen=True)
class Operand:
    """One operand. ``index``: register or predicate number (ZERO, TRUE for RZ, PT). ``value``: immediate,
    constant offset, label. ``bank``: constant bank. ``register``/``uniform``: address registers of a MEMORY or CONSTANT
    operand (-1 = none), ``register_is_64`` / ``uniform_is_64`` their width, ``scale`` multiplier (.X4 .X8 .X16).
    ``part``: "H0_H0", "H1_H1", "B1".. selectors. ``negate`` -x, ``invert`` ~x or !p, ``absolute`` |x|.
    ``descriptor``: uniform register of a desc[URn][..] prefix or of a bindless bank cx[URn][..] (-1 = none)."""

    kind: OperandKind
    text: str
    index: int = -1
    value: int = 0
    bank: int = -1
    register: int = -1
    uniform: int = -1
    register_is_64: bool = False
    uniform_is_64: bool = False
    scale: int = 1
    part: str = ""
    negate: bool = False
    invert: bool = False
    absolute: bool = False
    is_64: bool = False
    descriptor: int = -1


@dataclass(frozen=True)
class Control:
    """Control word (bits 105..125). ``write``/``read`` scoreboard 7 = none; ``wait`` mask of six bits."""

    stall: int
    yield_hint: int
    write: int
    read: int
    wait: int
    reuse: int


@dataclass(frozen=True)
class Instruction:
    """``address`` byte offset; ``guard`` predicate operand (PT when unguarded); ``opcode`` full mnemonic, ``base`` its
    first part, ``modifiers`` the rest; ``low``/``high`` the two machine words."""

    address: int
    guard: Operand
    opcode: str
    base: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    control: Control
    low: int
    high: int
    text: str


@dataclass(frozen=True)
class Parameter:
    """Kernel parameter: ordinal, byte offset in the parameter block, bytes."""

    ordinal: int
    offset: int
    n_bytes: int


@dataclass(frozen=True)
class SassKernel:
    """A kernel of a cubin, decoded. ``arch`` "sm_90a"; ``constants``: bank -> bytes of the cubin;
    ``parameter_base``: offset of the parameters in constant bank 0."""

    name: str
    arch: str
    instructions: tuple[Instruction, ...]
    parameters: tuple[Parameter, ...]
    parameter_base: int
    registers_per_thread: int
    static_smem_bytes: int
    local_bytes_per_thread: int
    required_block: tuple[int, int, int] | None
    constants: dict[int, bytes]
    digest: str
