"""Registers and predicates that one instruction writes and reads, with operand widths.

Widths follow the mnemonic (".64", ".WIDE", matrix shapes) as documented for the PTX counterparts of the
instructions; the test over real control words (every variable-latency result is waited for before its use) checks
both sides of the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from simulator.frontends.sass import widths
from simulator.frontends.sass.operands import TRUE, ZERO, Instruction, Operand, OperandKind


class RegisterFile(IntEnum):
    """Register files of a warp."""

    GENERAL = 0
    UNIFORM = 1
    PREDICATE = 2
    UNIFORM_PREDICATE = 3


@dataclass(frozen=True, order=True)
class Register:
    """One 32-bit register or one predicate."""

    file: RegisterFile
    number: int

    def __str__(self) -> str:
        return f"{('R', 'UR', 'P', 'UP')[self.file]}{self.number}"


@dataclass(frozen=True)
class DefUse:
    """Registers ``written`` and ``read`` in operand order, without repetition; RZ, PT and their like are left out.
    ``written_bases`` and ``read_bases``: the first register of each operand only."""

    written: tuple[Register, ...]
    read: tuple[Register, ...]
    written_bases: tuple[Register, ...]
    read_bases: tuple[Register, ...]


_FILES = {
    OperandKind.REGISTER: RegisterFile.GENERAL,
    OperandKind.UNIFORM: RegisterFile.UNIFORM,
    OperandKind.PREDICATE: RegisterFile.PREDICATE,
    OperandKind.UNIFORM_PREDICATE: RegisterFile.UNIFORM_PREDICATE,
}
_PREDICATE_KINDS = (OperandKind.PREDICATE, OperandKind.UNIFORM_PREDICATE)
_REGISTER_KINDS = (OperandKind.REGISTER, OperandKind.UNIFORM)
_N_PREDICATES = 7

# Opcodes without a register result.
_NO_RESULT = widths.opcode_set(
    "STG STS STL ST STSM STTM STAS BAR BRA BRX BRXU EXIT NOP BSSY BSYNC RET CALL JMP JMX DEPBAR LDGDEPBAR MEMBAR FENCE"
    " CCTL CCTLL CCTLT UTMALDG UTMASTG UTMAREDG UTMAPF UTMACCTL UTMACMDFLUSH UBLKCP UBLKRED UBLKPF WARPSYNC WARPGROUP"
    " WARPGROUPSET LDGSTS ERRBAR CGAERRBAR RED REDG REDAS UTCBAR UTCHMMA UTCQMMA UTCIMMA UTCOMMA UTCCP UTCSHIFT"
    " NANOSLEEP BPT YIELD ARRIVES PREEXIT ACQBULK KILL UCGABAR_ARV UCGABAR_WAIT BREAK ENDCOLLECTIVE UVIRTCOUNT"
    " UMEMSETS LEPC RPCMOV PMTRIG ACQSHMINIT"
)
# Opcodes with two predicate results.
_TWO_PREDICATES = widths.opcode_set("ISETP FSETP HSETP2 DSETP PLOP3 UISETP UPLOP3 UFSETP PSETP R2B")
# Opcodes whose only result is operand 0 even when a predicate follows it.
_ONE_RESULT = widths.opcode_set("SEL USEL FSEL FCHK FMNMX P2R UP2UR BMOV PRMT IMNMX DMNMX HMNMX2")
# Every operand but the last is a result: VOTE R0, PT, P1.
_ALL_BUT_LAST = widths.opcode_set("VOTE VOTEU ELECT MATCH")


def define_use(instruction: Instruction) -> DefUse:
    """Registers that an instruction writes and reads; the guard predicate is read."""
    n_results = result_count(instruction)
    written: list[Register] = []
    read: list[Register] = []
    bases: tuple[list[Register], list[Register]] = ([], [])
    _add(read, instruction.guard, 1)
    for position, operand in enumerate(instruction.operands):
        width = widths.operand_width(instruction, position, n_results)
        is_result = position < n_results and operand.kind in _FILES
        before = len(written if is_result else read)
        _add(written if is_result else read, operand, width, widths.address_width(instruction, position))
        target = written if is_result else read
        bases[0 if is_result else 1].extend(target[before : before + 1])
    _add_predicate_file(instruction, written, read)
    return DefUse(*(tuple(dict.fromkeys(registers)) for registers in (written, read, *bases)))


def result_count(instruction: Instruction) -> int:
    """Number of leading operands that are results."""
    base, operands = instruction.base, instruction.operands
    if base in _NO_RESULT or not operands:
        return 0
    if base in _TWO_PREDICATES:
        return 2
    if base in _ONE_RESULT:
        return 1
    if base in _ALL_BUT_LAST:
        return len(operands) - 1
    if operands[0].kind in _PREDICATE_KINDS:
        return 2 if len(operands) > 2 and operands[1].kind in _REGISTER_KINDS and base != "SYNCS" else 1
    if operands[0].kind not in _REGISTER_KINDS:
        return 0
    return widths.register_results(instruction) + _carry_results(operands[1:])


def _carry_results(rest: tuple[Operand, ...]) -> int:
    """Carry predicates printed right after the result register and followed by further sources."""
    count = 0
    while count < len(rest) - 1 and rest[count].kind in _PREDICATE_KINDS and not rest[count].invert:
        count += 1
    return count


def _add(registers: list[Register], operand: Operand, width: int, address_width: int = 1) -> None:
    file = _FILES.get(operand.kind)
    if file is not None:
        none = ZERO if operand.kind in _REGISTER_KINDS else TRUE
        if operand.index != none:
            registers.extend(Register(file, operand.index + k) for k in range(width))
        return
    descriptor_width = 2
    for file, number, count in (
        (RegisterFile.GENERAL, operand.register, 2 if operand.register_is_64 else 1),
        (RegisterFile.UNIFORM, operand.uniform, max(2 if operand.uniform_is_64 else 1, address_width)),
        (RegisterFile.UNIFORM, operand.descriptor, descriptor_width),
    ):
        if number not in (-1, ZERO):
            registers.extend(Register(file, number + k) for k in range(count))


def _add_predicate_file(instruction: Instruction, written: list[Register], read: list[Register]) -> None:
    """P2R reads and R2P writes the predicates that its mask selects."""
    if instruction.base not in ("P2R", "R2P"):
        return
    last = instruction.operands[-1]
    mask = last.value if last.kind is OperandKind.IMMEDIATE else (1 << _N_PREDICATES) - 1
    file = [Register(RegisterFile.PREDICATE, k) for k in range(_N_PREDICATES) if mask >> k & 1]
    (written if instruction.base == "R2P" else read).extend(file)
