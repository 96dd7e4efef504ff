"""Lowering of branches, convergence barriers and CTA barriers."""

from __future__ import annotations

from simulator.frontends.sass.lower_operands import Lowering, has
from simulator.frontends.sass.operands import Operand, OperandKind
from simulator.frontends.sass.row_layout import Draft, NotInterpreted, is_predicate
from simulator.frontends.sass.semantics import codes

INSTRUCTION_BYTES = 16


def target_row(draft: Draft, operand: Operand) -> int:
    """Row number of a label."""
    if operand.kind is not OperandKind.LABEL:
        raise NotInterpreted(f"operand {operand.text}")
    return operand.value // INSTRUCTION_BYTES


def branch(draft: Draft) -> Draft:
    """BRA, CALL, JMP; .DIV goes to its target when lanes of the mask register are missing; .ANY takes all lanes along."""
    operands = draft.instruction.operands
    draft.set(target=target_row(draft, operands[-1]))
    if has(draft, "DIV"):
        return draft.set(a=draft.layout.row(operands[0])).verb(codes.CONTROL, codes.BRANCH_DIVERGENT)
    conditions = [operand for operand in operands if is_predicate(operand)]
    if conditions:
        draft.predicate_source("p", conditions[0])
    return draft.set(x0=int(has(draft, "ANY"))).verb(codes.CONTROL, codes.BRANCH)


def indirect_branch(draft: Draft) -> Draft:
    """BRX adds to the next address, RET takes an address of the kernel's code."""
    register, *rest = draft.instruction.operands
    offset = 0
    if draft.instruction.base != "RET":
        offset = draft.instruction.address + INSTRUCTION_BYTES + sum(o.value for o in rest)
    draft.set(a=draft.layout.row(register), x0=offset)
    return draft.verb(codes.CONTROL, codes.BRANCH_INDIRECT)


def convergence(verb: int) -> Lowering:
    """BSSY, BSYNC, BREAK on a convergence barrier."""

    def lower(draft: Draft) -> Draft:
        barrier = next(o for o in draft.instruction.operands if o.kind is OperandKind.OTHER and o.text.startswith("B"))
        return draft.set(x0=barrier.index).verb(codes.CONTROL, verb)

    return lower


def warp_sync(draft: Draft) -> Draft:
    """WARPSYNC: of all lanes or of a mask; the COLLECTIVE form (a called routine) is not interpreted."""
    if has(draft, "COLLECTIVE") or has(draft, "EXCLUSIVE"):
        return draft.verb(codes.CONTROL, codes.TRAP)
    operands = [o for o in draft.instruction.operands if o.kind is not OperandKind.LABEL]
    row = draft.layout.row(operands[0]) if operands and not has(draft, "ALL") else draft.layout.word(codes.FULL)
    return draft.set(a=row).verb(codes.CONTROL, codes.WARP_SYNC)


def barrier(draft: Draft) -> Draft:
    """BAR.SYNC, BAR.ARV: barrier number and thread count (0: the CTA)."""
    if has(draft, "RED") or has(draft, "SCAN"):
        raise NotInterpreted(draft.instruction.opcode)
    operands = [operand for operand in draft.instruction.operands if not is_predicate(operand)]
    for slot, operand in zip("ab", operands, strict=False):
        draft.set(**{slot: draft.layout.row(operand)})
    return draft.set(x0=codes.BARRIER_ARRIVE if has(draft, "ARV") else codes.BARRIER_SYNC).verb(codes.CONTROL, codes.BARRIER)


def leave(draft: Draft) -> Draft:
    """EXIT, KILL."""
    return draft.verb(codes.CONTROL, codes.EXIT)


def trap(draft: Draft) -> Draft:
    """BPT."""
    return draft.verb(codes.CONTROL, codes.TRAP)


def no_result(draft: Draft) -> Draft:
    """Instructions that only matter to timing."""
    return draft.set(action=codes.SKIP)


NO_RESULTS = (
    "NOP", "YIELD", "DEPBAR", "LDGDEPBAR", "MEMBAR", "FENCE", "ERRBAR", "CGAERRBAR", "CCTL", "CCTLL", "WARPGROUP",
    "UTMACMDFLUSH", "UTMACCTL", "NANOSLEEP", "UCGABAR_ARV", "UCGABAR_WAIT", "ENDCOLLECTIVE", "ARRIVES", "PREEXIT", "ACQBULK",
    "PMTRIG", "UBLKPF",
)
CONTROL: dict[str, Lowering] = {
    **dict.fromkeys(("BRA", "CALL", "JMP"), branch),
    **dict.fromkeys(("BRX", "BRXU", "JMX", "RET"), indirect_branch),
    "BSSY": convergence(codes.CONVERGENCE_SET),
    "BSYNC": convergence(codes.CONVERGENCE_WAIT),
    "BREAK": convergence(codes.CONVERGENCE_BREAK),
    "WARPSYNC": warp_sync,
    "BAR": barrier,
    "EXIT": leave,
    "KILL": leave,
    "BPT": trap,
    **dict.fromkeys(NO_RESULTS, no_result),
}
"""Base opcode -> lowering of control flow and of instructions without results."""

UNCONDITIONAL = frozenset({"BRA", "JMP", "BRX", "BRXU", "JMX", "RET", "EXIT", "KILL", "BPT"})
"""Base opcodes that never go on to the next row when unguarded."""
