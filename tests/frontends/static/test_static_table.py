"""Does the static table say what the engine needs to know of each instruction?"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from simulator.frontends.sass.decode import decode_control, load_kernel
from simulator.frontends.sass.grammar import parse_guard, parse_operand, split_operands
from simulator.frontends.sass.operands import Instruction, SassKernel
from simulator.frontends.sass.static_table import argument, build_static_table, width_bytes
from simulator.trace.kernel_trace import StaticTable


def _instruction(text: str) -> Instruction:
    opcode, _, operands = text.partition(" ")
    base, *modifiers = opcode.split(".")
    parsed = tuple(parse_operand(part) for part in split_operands(operands))
    return Instruction(0, parse_guard(""), opcode, base, tuple(modifiers), parsed, decode_control(0), 0, 0, text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("HGMMA.64x128x16.F32.BF16 R24, gdesc[UR8], R24, gsb0", (128, 32, 1, 1)),
        ("HGMMA.64x256x16.F32.BF16 R24, R164, gdesc[UR12], R24", (256, 32, 0, 0)),
        ("HGMMA.64x64x8.F32.TF32 R24, gdesc[UR8], RZ, !UPT", (64, 32, 1, 0)),
        ("QGMMA.64x64x32.F32.E4M3.E4M3 R24, gdesc[UR20], R24, UP0, gsb0", (64, 32, 1, 1)),
        ("IGMMA.64x96x32.S8.S8 R24, gdesc[UR20], R24, gsb0", (96, 32, 1, 1)),
        ("BGMMA.64x96x256.AND.POPC R24, gdesc[UR20], R24", (96, 32, 1, 0)),
        ("HMMA.16816.F32.BF16 R8, R8, R4, RZ", (16, 8, 16, 16)),
        ("HMMA.1688.F32.TF32 R8, R8, R4, RZ", (16, 8, 8, 32)),
        ("HMMA.16816.F16 R8, R8, R4, RZ", (16, 8, 16, 16)),
        ("IMMA.16832.S8.S8.SAT R8, R8, R4, RZ", (16, 8, 32, 8)),
        ("IMMA.16864.S4.S4 R8, R8, R4, RZ", (16, 8, 64, 4)),
        ("DMMA.884 R8, R8, R4, RZ", (8, 8, 4, 64)),
        ("WARPGROUP.DEPBAR.LE gsb0, 0x1", (1, -1, 0, 0)),
        ("DEPBAR.LE SB0, 0x2", (2, 0, 0, 0)),
        ("WARPGROUP.ARRIVE", (0, 0, 0, 0)),
        ("BAR.SYNC.DEFER_BLOCKING 0x0", (0, 0, 0, 0)),
        ("BAR.SYNC.DEFER_BLOCKING R15, 0x80", (-1, 128, 0, 0)),
        ("BAR.ARV 0x4, 0x100", (4, 256, 0, 0)),
        ("FADD R1, R2, R3", (0, 0, 0, 0)),
    ],
)
def test_static_operands(text: str, expected: tuple[int, int, int, int]) -> None:
    assert argument(_instruction(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("LDG.E R1, [R2.64]", 4),
        ("LDG.E.128.CONSTANT R4, [R2.64]", 16),
        ("LDG.E.U16 R1, [R2.64]", 2),
        ("STG.E.64 [R2.64], R4", 8),
        ("LDGSTS.E.BYPASS.128 [R7], [R2.64]", 16),
        ("LDGSTS.E [R7], [R2.64]", 4),
        ("LDS.U8 R1, [R2]", 1),
        ("STS.128 [R2], R4", 16),
        ("LDL.LU.64 R4, [R1]", 8),
        ("LDSM.16.M88.4 R4, [R2]", 16),
        ("LDSM.16.MT88.2 R4, [R2]", 8),
        ("STSM.16.M88 [R2], R4", 4),
        ("ATOMG.E.ADD.F32x4.FTZ.RN.STRONG.GPU PT, RZ, desc[UR16][R26.64], R72", 16),
        ("REDG.E.ADD.F16x2.RN.STRONG.GPU desc[UR16][R26.64], R72", 4),
        ("REDG.E.ADD.F64.RN.STRONG.GPU desc[UR16][R26.64], R72", 8),
        ("ATOMS.POPC.INC.32 RZ, [R23+URZ]", 4),
        ("LDC.64 R2, c[0x0][0x210]", 0),
        ("IMAD.WIDE R2, R3, R4, R6", 0),
    ],
)
def test_access_widths(text: str, expected: int) -> None:
    assert width_bytes(_instruction(text)) == expected


def test_columns_of_every_kernel(kernels: list[SassKernel]) -> None:
    for kernel in kernels:
        table = build_static_table(kernel)
        for field in dataclasses.fields(StaticTable):
            assert len(getattr(table, field.name)) == len(kernel.instructions)
        assert table.argument.shape == (len(table), 4)
        assert table.registers_written.shape == table.registers_read.shape == (len(table), 3)
        assert (table.registers_read.dtype, table.argument.dtype) == (np.dtype("int16"), np.dtype("int32"))


def test_a_gemm_that_commits_every_step(examples: Path) -> None:
    """128 x 256 x 64 tiles by two warpgroups: four k-steps of 64 x 256 x 16, each its own group."""
    table = build_static_table(load_kernel(examples / "gemm_tma_bf16.cubin"))
    steps = table.argument[[opcode.startswith("HGMMA") for opcode in table.opcode]]
    assert steps.tolist() == [[256, 32, 1, 1]] * 4


def test_register_columns_name_one_register_an_operand() -> None:
    kernel = SassKernel("k", "sm_90a", (_instruction("IMAD.WIDE R2, R5, R7, R8"),), (), 0, 16, 0, 0, None, {}, "")
    table = build_static_table(kernel)
    assert table.registers_written.tolist() == [[2, -1, -1]]
    assert table.registers_read.tolist() == [[5, 7, 8]]
