"""Is every instruction that occurs in the instruction table, on a pipe that exists?"""

from __future__ import annotations

import pytest

from simulator.errors import Unsupported
from simulator.frontends.sass.operands import SassKernel
from simulator.isa.table import PIPES, find_opcode, opcodes, pipe_of


def test_rows_are_complete() -> None:
    rows = opcodes()
    assert len(rows) > 250
    assert all(row.pipe in PIPES and row.meaning for row in rows.values())


def test_every_instruction_of_every_kernel_has_a_row(kernels: list[SassKernel]) -> None:
    for kernel in kernels:
        for row in kernel.instructions:
            assert pipe_of(row.opcode) in PIPES


@pytest.mark.parametrize(
    ("mnemonic", "pipe"),
    [
        ("VIADD", "fma_heavy"),
        ("IMAD.MOV.U32", "fma_heavy"),
        ("IADD3.X", "alu"),
        ("I2FP.F32.S32", "alu"),
        ("I2F.RP", "transcendental"),
        ("HFMA2.MMA", "fma_half"),
        ("WARPGROUP.DEPBAR.LE", "tensor_wait"),
        ("WARPGROUP.ARRIVE", "tensor_arrive"),
        ("UTMALDG.2D.MULTICAST", "bulk_load"),
        ("REDG.E.ADD.F32.FTZ.RN.STRONG.GPU", "global"),
        ("VOTEU.ANY", "vote"),
        ("R2UR.OR", "alu"),
        ("ELECT", "alu"),
        ("UMOV", "none"),
    ],
)
def test_pipes(mnemonic: str, pipe: str) -> None:
    assert pipe_of(mnemonic) == pipe


def test_a_modifier_row_overrides_its_base() -> None:
    assert find_opcode("IMAD.HI.U32").name == "IMAD.HI"
    assert find_opcode("IMAD.X").name == "IMAD"


def test_an_unknown_opcode_is_named() -> None:
    with pytest.raises(Unsupported, match=r"FROBNICATE\.64 is not in the instruction table"):
        pipe_of("FROBNICATE.64")
