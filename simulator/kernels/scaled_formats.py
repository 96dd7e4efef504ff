"""Narrow formats whose elements share scales of one byte, and the code that makes 16-bit elements of them in registers."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.kernels.control_words import Value
from simulator.kernels.writer import Block


@dataclass(frozen=True)
class ScaledFormat:
    """``bits`` of an element; ``block``: elements along k that share a scale; ``unpack``: instructions that make a register
    of two 16-bit elements of packed ones; ``scale``: instructions that make a register of two equal 16-bit scales."""

    bits: int
    block: int
    unpack: tuple[str, ...]
    scale: tuple[str, ...]

    def stored_bytes(self, n_elements: int) -> int:
        """Bytes of ``n_elements`` (whole blocks) with their scales."""
        return n_elements * self.bits // 8 + n_elements // self.block


AT_ONCE = 4
"""Registers that are unpacked together."""
MOVE_BITS = ("SHF.R.U32.HI", "LOP3.LUT", "LOP3.LUT")
"""Sign and magnitude go to their places in a 16-bit format by shift and masks; the scale corrects the exponent's bias."""
EXPONENT = ("SHF.L.U32", "PRMT")
"""A power of two (E8M0) is the exponent field of bfloat16."""
SCALED = {
    "mxfp8": ScaledFormat(8, 32, MOVE_BITS, EXPONENT),
    "mxfp6": ScaledFormat(6, 32, ("PRMT", *MOVE_BITS), EXPONENT),
    "mxfp4": ScaledFormat(4, 32, MOVE_BITS, EXPONENT),
    "nvfp4": ScaledFormat(4, 16, MOVE_BITS, ("F2FP.F16.E4M3.UNPACK_B", "HADD2.F32", "F2FP.BF16.F32.PACK_AB")),
}
"""OCP Microscaling 1.0: blocks of 32 with scales in E8M0; NVFP4: blocks of 16 with scales in E4M3."""


def unpack(block: Block, stored: ScaledFormat, packed: Value, scales: list[Value], elements: list[Value]) -> None:
    """Append the code that makes each of ``elements`` (registers of two 16-bit elements) of ``packed`` and multiplies them
    by their scale; steps of AT_ONCE of them are interleaved, so that none waits for the one before."""
    pairs = [(value, scale) for value, scale in zip(elements, scales, strict=True) for _ in range(value.size)]
    for first in range(0, len(pairs), AT_ONCE):
        part = [(Value(f"unpacked{i}"), *pair) for i, pair in enumerate(pairs[first : first + AT_ONCE])]
        for step, opcode in enumerate(stored.unpack):
            for moved, _, _ in part:
                block.op(opcode, [moved], [moved] if step else [packed])
        for moved, value, scale in part:
            block.op("HMUL2", [value], [moved, scale])


def make_scales(block: Block, stored: ScaledFormat, packed: Value, scales: list[Value]) -> None:
    """Append the code that makes 16-bit ``scales`` of bytes."""
    for step, opcode in enumerate(stored.scale):
        for scale in scales:
            block.op(opcode, [scale], [scale] if step else [packed])


def register_loads(n_bytes: int) -> list[int]:
    """Widths in bytes of the loads that bring ``n_bytes`` to each lane, widest first; whole registers."""
    found = []
    rest = -(-n_bytes // 4) * 4
    for width in (16, 8, 4):
        found += [width] * (rest // width)
        rest %= width
    return found
