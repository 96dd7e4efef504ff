"""Pieces of code that compilers put into every kernel: launch set-up, tile numbers, zeroed accumulators, addresses."""

from __future__ import annotations

from collections.abc import Sequence

from simulator.kernels.control_words import Value
from simulator.kernels.writer import Block


def read_launch(block: Block) -> Value:
    """Stack pointer, CTA and thread number, a first parameter. Returns the thread number."""
    stack, cta, parameter, thread = Value("R1"), Value("cta"), Value("parameter"), Value("tid")
    block.op("LDC", [stack], text="LDC R1, c[0x0][0x28]")
    block.op("LDC.64", [parameter])
    block.op("S2R", [cta], text="S2R R5, SR_CTAID.X")
    block.op("S2R", [thread], text="S2R R7, SR_TID.X")
    block.op("VIADD", [parameter], [parameter])
    block.op("SHF.R.S32.HI", [parameter], [parameter])
    block.op("LEA.HI", [parameter], [parameter, cta])
    return thread


def hold(block: Block, name: str, size: int) -> Value:
    """Registers for indices, addresses and descriptors that ``scalar_work`` stands for; release them by reading."""
    value = Value(name, size)
    block.op("IMAD.MOV.U32", [value])
    return value


def divide(block: Block, quotient: Value, dividend: Value) -> None:
    """Integer division as compiled: a reciprocal in floating point and its correction (36 instructions)."""
    r, one, p, q = Value("reciprocal"), Value("divisor"), Value("P0", kind="P"), Value("P1", kind="P")
    block.op("IABS", [one], [dividend])
    block.op("I2F.RP", [r], [one])
    block.op("MUFU.RCP", [r], [r])
    block.op("VIADD", [r], [r])
    block.op("F2I.FTZ.U32.TRUNC.NTZ", [r], [r])
    for opcode in ("IMAD.MOV", "IMAD", "IMAD.MOV.U32", "IMAD.HI.U32", "IMAD.HI.U32", "IMAD.MOV", "IMAD"):
        block.op(opcode, [r], [r, one])
    block.op("ISETP.GT.U32.AND", [p], [r, one])
    block.op("IMAD.IADD", [r], [r, one], guard=p)
    block.op("VIADD", [quotient], [r], guard=p)
    block.op("ISETP.NE.AND", [p], [one])
    block.op("ISETP.GE.U32.AND", [q], [r, one])
    block.op("LOP3.LUT", [one], [one, r])
    block.op("ISETP.GE.AND", [p], [one])
    block.op("VIADD", [quotient], [quotient], guard=q)
    block.op("IMAD.MOV", [quotient], [quotient], guard=p)
    block.op("LOP3.LUT", [quotient], [quotient], guard=p)
    block.ops("IMAD", 2, [quotient], [quotient, one])


def zero(block: Block, values: Value) -> None:
    """Zero a group of registers, two at a time."""
    for _ in range(-(-values.size // 2)):
        block.op("CS2R", [values], text=f"CS2R {values.name}, SRZ")


def scalar_work(block: Block, n: int) -> None:
    """``n`` instructions on uniform registers and predicates that no operand here depends on: indices, descriptors."""
    pattern = ("UIADD3", "UMOV", "ULEA", "IMAD.U32", "USEL", "R2UR", "ISETP.GT.AND", "UIADD3", "USHF.L.U32", "VOTEU.ANY")
    for i in range(n):
        block.op(pattern[i % len(pattern)])


def begin_role(block: Block, moves_registers: bool, register_opcode: str) -> Block:
    """Append the branch of a warp role to its code; ``register_opcode``: how its warpgroup gives or takes registers."""
    if moves_registers:
        block.op("WARPSYNC.ALL")
        block.op(register_opcode)
    scalar_work(block, 16)
    block.op("BRA")
    return block


def await_phase(block: Block, ready: Value, slot: str, reads: Sequence[Value] = ()) -> None:
    """Append a wait for a phase of an mbarrier, and the branch back to it; ``ready``: predicate of its outcome."""
    block.op("SYNCS.PHASECHK.TRANS64.TRYWAIT", [ready], list(reads), slot=slot)
    block.op("BRA", [], [], guard=ready)
