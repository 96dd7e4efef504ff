"""What an instruction set can do, as far as generators care (PTX ISA 8.x: target notes of each instruction)."""

from __future__ import annotations

import re
from dataclasses import dataclass

WARP_MULTIPLY = {"fp16": 80, "bf16": 80, "tf32": 80, "int8": 80, "fp8_e4m3": 89, "fp8_e5m2": 89}
"""First generation with a warp-wide multiply-add of a format in the shapes that generators use."""
WARPGROUP_MULTIPLY = ("fp16", "bf16", "tf32", "int8", "fp8_e4m3", "fp8_e5m2")

CONVERSIONS = {"fp32": 1, "fp16": 53, "bf16": 80, "fp8_e4m3": 89}
"""First generation that converts a format to and from fp32."""


@dataclass(frozen=True)
class InstructionSet:
    """``generation`` as in sm_90; 0 for instruction sets of other vendors."""

    name: str
    generation: int
    is_specific: bool

    @property
    def has_async_copies(self) -> bool:
        return self.generation >= 80

    @property
    def has_bulk_copies(self) -> bool:
        """Tensor bulk copies, mbarriers that count bytes, clusters."""
        return self.generation >= 90

    @property
    def has_warpgroup_multiply(self) -> bool:
        return self.generation == 90 and self.is_specific

    @property
    def has_tensor_memory(self) -> bool:
        return self.generation in (100, 103, 110) and self.is_specific

    def converts(self, dtype: str) -> bool:
        """Whether there are instructions from ``dtype`` to fp32 and back."""
        return self.generation >= CONVERSIONS[dtype]

    def formats(self, method: str) -> tuple[str, ...]:
        """Operand formats that ``method`` (wgmma, mma_sync, ffma) multiplies."""
        if method == "wgmma":
            return WARPGROUP_MULTIPLY if self.has_warpgroup_multiply else ()
        if method == "mma_sync":
            return tuple(name for name, first in WARP_MULTIPLY.items() if 0 < first <= self.generation)
        return ("fp32",) if self.generation else ()


def instruction_set(name: str) -> InstructionSet:
    """Of a chip's ``identity.instruction_set``."""
    found = re.fullmatch(r"sm_(\d+)([af]?)", name)
    if found is None:
        return InstructionSet(name, 0, False)
    return InstructionSet(name, int(found.group(1)), bool(found.group(2)))
