"""Are the registers that instructions write and read, with their widths, those of the hardware?"""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.frontends.sass.decode import decode_control, load_kernel
from simulator.frontends.sass.defuse import Register, define_use
from simulator.frontends.sass.grammar import parse_guard, parse_operand, split_operands
from simulator.frontends.sass.operands import Instruction, OperandKind, SassKernel

LEAVES_BLOCK = ("BRA", "EXIT", "RET", "CALL", "BRX", "BSYNC", "WARPSYNC", "BREAK")
NO_SCOREBOARD = 7
FIXED_LATENCY = ("IADD3", "LOP3", "FADD", "FMUL", "FFMA", "SHF", "LEA")
N_SCOREBOARDS = 6


def _instruction(text: str) -> Instruction:
    guard, rest = text.split(" ", 1) if text.startswith("@") else ("", text)
    opcode, _, operands = rest.partition(" ")
    base, *modifiers = opcode.split(".")
    double = base in ("DFMA", "DADD")
    parsed = tuple(parse_operand(part, double) for part in split_operands(operands))
    return Instruction(0, parse_guard(guard), opcode, base, tuple(modifiers), parsed, decode_control(0), 0, 0, text)


def _names(registers: tuple[Register, ...]) -> str:
    return " ".join(map(str, registers))


@pytest.mark.parametrize(
    ("text", "written", "read"),
    [
        ("@!P1 IMAD.WIDE.U32 R2, R5, 0x4, R8", "R2 R3", "P1 R5 R8 R9"),
        ("IMAD.HI.U32 R10, P0, R9, R8, R10", "R10 P0", "R9 R8 R10 R11"),
        ("IADD3 R8, P1, P2, R2, 0x30, RZ", "R8 P1 P2", "R2"),
        ("IADD3.X R9, PT, PT, R3, R4, RZ, P1, !PT", "R9", "R3 R4 P1"),
        ("LOP3.LUT P0, RZ, R3, 0x7, RZ, 0xc0, !PT", "P0", "R3"),
        ("ISETP.GE.AND P0, PT, R3, UR4, P1", "P0", "R3 UR4 P1"),
        ("SEL R8, RZ, 0x10, P4", "R8", "P4"),
        ("DFMA R10, R4, -R10, 1", "R10 R11", "R4 R5 R10 R11"),
        ("CS2R R24, SRZ", "R24 R25", ""),
        ("CS2R.32 R24, SR_CgaSize", "R24", ""),
        ("F2F.F64.F32 R4, UR4", "R4 R5", "UR4"),
        ("F2F.F32.F64 R2, R4", "R2", "R4 R5"),
        ("F2I.U64.TRUNC R6, R6", "R6 R7", "R6"),
        ("F2I.S64.F64.TRUNC R14, R14", "R14 R15", "R14 R15"),
        ("I2F.U64.RP R18, UR4", "R18", "UR4 UR5"),
        ("I2F.F64 R4, R2", "R4 R5", "R2"),
        ("MUFU.RSQ64H R9, R5", "R9", "R5"),
        ("LDG.E.128 R8, desc[UR6][R2.64+0x10]", "R8 R9 R10 R11", "R2 R3 UR6 UR7"),
        ("LDG.E.U8 R8, [R2.64]", "R8", "R2 R3"),
        ("STG.E.64 desc[UR6][R2.64], R8", "", "R2 R3 UR6 UR7 R8 R9"),
        ("STS.128 [R20+UR12+0x1000], R40", "", "R20 UR12 R40 R41 R42 R43"),
        ("LDSM.16.M88.4 R20, [R54+UR10]", "R20 R21 R22 R23", "R54 UR10"),
        ("STSM.16.M88.2 [R4], R16", "", "R4 R16 R17"),
        ("LDGSTS.E.BYPASS.128 [R29], desc[UR16][R10.64], P0", "", "R29 R10 R11 UR16 UR17 P0"),
        ("ATOMG.E.ADD.F32x4.FTZ.RN.STRONG.GPU PT, RZ, desc[UR16][R26.64], R72", "",
         "R26 R27 UR16 UR17 R72 R73 R74 R75"),
        ("ATOMG.E.ADD.STRONG.GPU PT, R26, desc[UR6][R26.64], R25", "R26", "R26 R27 UR6 UR7 R25"),
        ("ATOMS.ADD RZ, [R22], R11", "", "R22 R11"),
        ("REDG.E.ADD.F64.RN.STRONG.GPU desc[UR4][R4.64], R2", "", "R4 R5 UR4 UR5 R2 R3"),
        ("SHFL.BFLY P0, R8, R7, R10, R12", "P0 R8", "R7 R10 R12"),
        ("VOTE.ANY R4, PT, P0", "R4", "P0"),
        ("VOTEU.ALL UP1, P4", "UP1", "P4"),
        ("ELECT P3, URZ, PT", "P3", ""),
        ("R2UR.OR P0, UR12, R12", "P0 UR12", "R12"),
        ("P2R R3, PR, RZ, 0x5", "R3", "P0 P2"),
        ("R2P PR, R17, 0x3", "P0 P1", "R17"),
        ("SYNCS.EXCH.64 URZ, [UR12+0xc000], UR14", "", "UR12 UR14 UR15"),
        ("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR8], R7", "P0", "UR8 R7"),
        ("UTMALDG.2D.MULTICAST [UR16], [UR6], UR4", "", "UR16 UR17 UR18 UR19 UR6 UR7 UR4"),
        ("UTMASTG.3D [UR16], [UR6]", "", "UR16 UR17 UR18 UR19 UR20 UR6 UR7"),
        ("HMMA.16816.F32.BF16 R8, R16, R12, RZ", "R8 R9 R10 R11", "R16 R17 R18 R19 R12 R13"),
        ("HMMA.1688.F32.TF32 R8, R16, R12, R8", "R8 R9 R10 R11", "R16 R17 R18 R19 R12 R13 R8 R9 R10 R11"),
        ("HMMA.1688.F16 R8, R16, R12, R10", "R8 R9", "R16 R17 R12 R10 R11"),
        ("IMMA.16832.S8.S8 R8, R16, R12, RZ", "R8 R9 R10 R11", "R16 R17 R18 R19 R12 R13"),
        ("DMMA.884 R8, R16, R12, RZ", "R8 R9 R10 R11", "R16 R17 R12 R13"),
        ("HGMMA.64x8x16.F32.BF16 R24, gdesc[UR8], R24, gsb0", "R24 R25 R26 R27", "UR8 UR9 UR10 UR11 R24 R25 R26 R27"),
        ("HGMMA.64x8x16.F16 R24, R30, gdesc[UR4].tnspB, RZ, !UPT", "R24 R25", "R30 R31 R32 R33 UR4 UR5"),
        ("QGMMA.64x8x32.F32.E4M3.E4M3 R24, gdesc[UR8], RZ, UP0", "R24 R25 R26 R27", "UR8 UR9 UR10 UR11 UP0"),
        ("LDTM.16dp256bit.x2 R4, tmem[UR5]", "R4 R5 R6 R7 R8 R9 R10 R11", "UR5"),
        ("UIADD3.64 UR20, UR8, 0x2, URZ", "UR20 UR21", "UR8 UR9"),
        ("ULDC.64 UR6, c[0x0][0x210]", "UR6 UR7", ""),
        ("LDC R2, c[0x2][R5+0xc]", "R2", "R5"),
        ("RET.REL.NODEC R14, 0x0", "", "R14 R15"),
        ("USETMAXREG.TRY_ALLOC.CTAPOOL UP0, 0xe8", "UP0", ""),
    ],
)
def test_examples(text: str, written: str, read: str) -> None:
    use = define_use(_instruction(text))
    assert (_names(use.written), _names(use.read)) == (written, read)


def unwaited_reads(kernel: SassKernel) -> tuple[int, list[str]]:
    """(results tracked, reads of a variable-latency result before a wait for its scoreboard) in straight-line code."""
    targets = {o.value for row in kernel.instructions for o in row.operands if o.kind is OperandKind.LABEL}
    pending: dict[Register, int] = {}
    tracked, wrong = 0, []
    for row in kernel.instructions:
        if row.address in targets or row.base == "DEPBAR":
            pending.clear()
        waited = {s for s in range(N_SCOREBOARDS) if row.control.wait >> s & 1}
        pending = {register: s for register, s in pending.items() if s not in waited}
        use = define_use(row)
        wrong += [f"{kernel.name} {row.address:#x} {row.text}: {r}" for r in use.read if r in pending]
        for register in use.written:
            pending.pop(register, None)
            if row.control.write != NO_SCOREBOARD:
                pending[register] = row.control.write
                tracked += 1
        if row.base in LEAVES_BLOCK:
            pending.clear()
    return tracked, wrong


def test_every_variable_latency_result_is_waited_for_before_its_use(kernels: list[SassKernel]) -> None:
    """The compiler's control words are the reference: a register that we read too early would be our mistake."""
    tracked, wrong = zip(*(unwaited_reads(kernel) for kernel in kernels), strict=True)
    assert [line for lines in wrong for line in lines] == []
    assert sum(tracked) > 800


def test_every_result_register_of_a_fixed_latency_chain_keeps_its_distance(kernels: list[SassKernel]) -> None:
    """A 32-bit ALU result is used 4 issue cycles later at the earliest; the 64-bit addend of a wide multiply may come
    two cycles sooner, and its high half is read a cycle late."""
    for kernel in kernels:
        targets = {o.value for row in kernel.instructions for o in row.operands if o.kind is OperandKind.LABEL}
        ready: dict[Register, int] = {}
        clock = 0
        for row in kernel.instructions:
            if row.address in targets:
                ready.clear()
            use = define_use(row)
            early = 2 if "WIDE" in row.modifiers or "HI" in row.modifiers else 0
            assert all(clock + early >= ready.get(register, 0) for register in use.read), row.text
            for register in use.written:
                ready.pop(register, None)
                if row.base in FIXED_LATENCY and row.control.write == NO_SCOREBOARD:
                    ready[register] = clock + 4
            clock += max(1, row.control.stall)
            if row.base in LEAVES_BLOCK:
                ready.clear()


def test_kernels_use_no_more_registers_than_they_declare(kernels: list[SassKernel]) -> None:
    for kernel in kernels:
        used = [r.number for row in kernel.instructions for r in define_use(row).written if str(r).startswith("R")]
        assert max(used) < kernel.registers_per_thread, kernel.name


def test_a_warpgroup_accumulator_spans_its_registers(examples: Path) -> None:
    kernel = load_kernel(examples / "gemm_tma_bf16.cubin")
    row = next(row for row in kernel.instructions if row.base == "HGMMA")
    assert len(define_use(row).written) == 128
