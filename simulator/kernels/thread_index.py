"""Which thread, which element, which address: the integer code at the start of memory-bound kernels, as compiled."""

from __future__ import annotations

from simulator.kernels.control_words import Value
from simulator.kernels.writer import Block


def read_thread(block: Block) -> Value:
    """Stack pointer, thread and CTA number, the descriptor of global memory. Returns the thread number."""
    stack, thread = Value("R1"), Value("tid")
    block.op("LDC", [stack], text="LDC R1, c[0x0][0x28]")
    block.op("S2R", [thread], text="S2R R0, SR_TID.X")
    block.op("ULDC", [Value("UR6", kind="UR")])
    block.op("ULDC.64", [Value("UR4", kind="UR")], text="ULDC.64 UR4, c[0x0][0x208]")
    return thread


def element_index(block: Block, thread: Value) -> Value:
    """Number of the thread's first element: CTA and thread, shifted and added."""
    cta, index = Value("cta"), Value("index")
    block.op("S2R", [cta], text="S2R R3, SR_CTAID.X")
    block.op("SHF.L.U32", [index], [thread])
    block.op("LOP3.LUT", [index], [index])
    block.op("LEA", [index], [cta, index])
    return index


def parameter(block: Block) -> Value:
    """A 64-bit parameter: where an array begins."""
    pointer = Value("pointer", 2)
    block.op("LDC.64", [pointer])
    return pointer


def computed_address(block: Block, index: Value, base: Value) -> Value:
    """The same where a compiler computes each address of a loop turn anew: low half, then high half with the carry."""
    address = Value("address", 2)
    block.op("LEA", [address], [index, base])
    block.op("LEA.HI.X.SX32", [address], [index, address])
    return address


def element_address(block: Block, index: Value, base: Value) -> Value:
    """64-bit address of element ``index``."""
    address = Value("address", 2)
    block.op("IMAD.WIDE", [address], [index, base])
    return address

