"""``SassKernel`` + launch -> ``Program``: every instruction lowered once to a row that the interpreter reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np

from simulator.errors import Unsupported
from simulator.frontends.sass.defuse import DefUse, RegisterFile, define_use
from simulator.frontends.sass.launch import BoundLaunch
from simulator.frontends.sass.lower_arithmetic import ARITHMETIC
from simulator.frontends.sass.lower_control import CONTROL, INSTRUCTION_BYTES, UNCONDITIONAL
from simulator.frontends.sass.lower_memory import MEMORY
from simulator.frontends.sass.lower_operands import Lowering
from simulator.frontends.sass.operands import Instruction, SassKernel
from simulator.frontends.sass.row_layout import Draft, NotInterpreted, RowLayout
from simulator.frontends.sass.semantics import codes
from simulator.frontends.sass.semantics.records import CONSTANT_BYTES, N_BANKS, ROW, records
from simulator.frontends.sass.slicing import Slicer, run_lengths
from simulator.frontends.sass.warp_state import CtaState, Layout

LOWERINGS: Mapping[str, Lowering] = {**ARITHMETIC, **MEMORY, **CONTROL}
MUST_BE_INTERPRETED = frozenset({*MEMORY, *CONTROL, "BMOV"}) - {"LDC", "ULDC", "LDCU"}
SLOW_PATH = "slowpath"
SPARE_FRAME_BYTES = 1024


@dataclass(frozen=True)
class LoweredKernel:
    """``rows``: ROW records, one per instruction (``fields``: the same as Python objects); ``layout`` of the value rows;
    ``constants`` uint32: words of the constant rows; ``banks``: constant banks by number; ``special_names`` in row order;
    ``frame_end``: initial stack pointer; ``frame_bytes`` of local memory below it; ``code_base``: address of the first
    instruction; ``opaque``: row -> why its results are unknown; ``assumed``: rows of branches around slow paths of software
    routines."""

    rows: np.recarray
    fields: tuple[SimpleNamespace, ...]
    layout: Layout
    constants: np.ndarray
    banks: dict[int, bytes]
    special_names: tuple[str, ...]
    frame_end: int
    frame_bytes: int
    code_base: int
    opaque: dict[int, str]
    assumed: tuple[int, ...]

    def install(self, state: CtaState, shared_bytes: int) -> None:
        """Write constants and launch values into the state of a CTA with a shared window of ``shared_bytes``."""
        cta = state.cta[0]
        state.warps["values"][:, self.layout.constant : self.layout.scratch] = self.constants[None, :, None]
        start = 0
        for bank, content in sorted(self.banks.items()):
            if bank >= N_BANKS or start + len(content) > CONSTANT_BYTES:
                raise Unsupported(f"constant banks of more than {CONSTANT_BYTES:,} bytes are not interpreted")
            cta.banks[start : start + len(content)] = np.frombuffer(content, np.uint8)
            cta.bank_start[bank], cta.bank_size[bank] = start, len(content)
            start += len(content)
        cta.scratch, cta.first_constant = self.layout.scratch, self.layout.constant
        cta.shared_limit, cta.code_base = shared_bytes, self.code_base
        cta.frame_base, cta.frame_bytes = self.frame_end - self.frame_bytes, self.frame_bytes


def lower(kernel: SassKernel, bound: BoundLaunch) -> LoweredKernel:
    """Lower all instructions and choose what must be executed."""
    uses = [define_use(instruction) for instruction in kernel.instructions]
    banks = {**kernel.constants, 0: bound.constant_bank}
    layout = RowLayout(kernel.instructions, uses, banks)
    opaque: dict[int, str] = {}
    rows = records(ROW, len(kernel.instructions))
    for index, (instruction, use) in enumerate(zip(kernel.instructions, uses, strict=True)):
        draft, reason = _lower_one(layout, instruction, use)
        rows[index] = draft.set(number=index).packed()
        if reason:
            opaque[index] = reason
    assumed = _assume_fast_paths(kernel.instructions, rows)
    Slicer(rows, layout.layout(), successors(kernel.instructions, rows)).choose_actions()
    rows["run"] = run_lengths(rows)
    return LoweredKernel(
        rows=rows,
        fields=tuple(SimpleNamespace(**dict(zip(ROW.names or (), row, strict=True))) for row in rows.tolist()),
        layout=layout.layout(),
        constants=layout.constants(),
        banks=banks,
        special_names=tuple(layout.special_names),
        frame_end=bound.stack_pointer,
        frame_bytes=kernel.local_bytes_per_thread + SPARE_FRAME_BYTES,
        code_base=kernel.instructions[0].address,
        opaque=opaque,
        assumed=assumed,
    )


def _lower_one(layout: RowLayout, instruction: Instruction, use: DefUse) -> tuple[Draft, str]:
    """(row, "" or why its results are unknown)."""
    lowering = LOWERINGS.get(instruction.base)
    if lowering is None:
        return _opaque(layout, instruction, use), f"{instruction.opcode} is not interpreted"
    try:
        return lowering(Draft(layout, instruction)), ""
    except (NotInterpreted, ValueError, IndexError, StopIteration) as cause:
        return _opaque(layout, instruction, use), f"{instruction.opcode} is not interpreted ({cause})"


def _opaque(layout: RowLayout, instruction: Instruction, use: DefUse) -> Draft:
    """A row with unknown results; one that would move data or control stops the interpreter."""
    draft = Draft(layout, instruction)
    if instruction.base in MUST_BE_INTERPRETED:
        return draft.verb(codes.CONTROL, codes.TRAP)
    registers = [r.number for r in use.written if r.file is RegisterFile.GENERAL]
    uniforms = [r.number for r in use.written if r.file is RegisterFile.UNIFORM]
    predicates = [
        r.number + (codes.FIRST_UNIFORM_PREDICATE if r.file is RegisterFile.UNIFORM_PREDICATE else 0)
        for r in use.written
        if r.file in (RegisterFile.PREDICATE, RegisterFile.UNIFORM_PREDICATE)
    ]
    if registers or uniforms:
        first = min(registers) if registers else layout.uniform + min(uniforms)
        draft.set(dest=first, n_dest=len(registers or uniforms), is_uniform=int(not registers))
    for slot, number in zip(("dest_p", "dest_q"), predicates, strict=False):
        draft.set(**{slot: number})
    return draft


def successors(instructions: tuple[Instruction, ...], rows: np.ndarray) -> list[list[int]]:
    """Rows that may follow each row. A return goes behind any call; a jump through a table to any row that is not
    reached by falling through."""
    n = len(instructions)
    returns = [i + 1 for i, instruction in enumerate(instructions[:-1]) if instruction.base == "CALL"]
    labels = [i + 1 for i, instruction in enumerate(instructions[:-1]) if instruction.base in UNCONDITIONAL]
    result: list[list[int]] = []
    for i, (instruction, row) in enumerate(zip(instructions, rows, strict=True)):
        follow: list[int] = []
        if row["family"] == codes.CONTROL and row["verb"] in (codes.BRANCH, codes.BRANCH_DIVERGENT):
            if row["p"] != codes.TRUE_PREDICATE or not row["p_invert"]:
                follow.append(int(row["target"]))
        elif instruction.base == "RET":
            follow.extend(returns)
        elif instruction.base in ("BRX", "BRXU", "JMX"):
            follow.extend(labels)
        conditional = (
            row["p_invert"]
            or row["guard"] != codes.TRUE_PREDICATE
            or row["p"] != codes.TRUE_PREDICATE
            or row["verb"] == codes.BRANCH_DIVERGENT
        )
        if (conditional or instruction.base not in (*UNCONDITIONAL, "CALL")) and i + 1 < n:
            follow.append(i + 1)
        result.append([target for target in follow if 0 <= target < n])
    return result


def _assume_fast_paths(instructions: tuple[Instruction, ...], rows: np.ndarray) -> tuple[int, ...]:
    """Branches that lead straight to a call of a software slow path (denormals, overflow in division and roots) always
    take the fast path: whether data is known or not, so that no loaded value has to be followed for their sake. Returns
    their rows."""
    found = []
    for i, (instruction, row) in enumerate(zip(instructions, rows, strict=True)):
        if row["family"] != codes.CONTROL or row["verb"] != codes.BRANCH:
            continue
        if row["guard"] == codes.TRUE_PREDICATE and row["p"] == codes.TRUE_PREDICATE:
            continue
        falls_slow = _is_slow(instructions, i + 1)
        if not falls_slow and not _is_slow(instructions, instruction.operands[-1].value // INSTRUCTION_BYTES):
            continue
        rows["guard"][i] = rows["p"][i] = codes.TRUE_PREDICATE
        rows["guard_invert"][i], rows["p_invert"][i] = 0, int(not falls_slow)
        found.append(i)
    return tuple(found)


def _is_slow(instructions: tuple[Instruction, ...], start: int) -> bool:
    """Does straight-line code from ``start`` call a slow path?"""
    for instruction in instructions[start:]:
        if instruction.base == "CALL":
            return SLOW_PATH in instruction.text
        if instruction.base in UNCONDITIONAL or instruction.base in ("BSYNC", "BSSY"):
            return False
    return False
