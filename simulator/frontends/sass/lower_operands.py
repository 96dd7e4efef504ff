"""Reading operands and modifiers of an instruction while it is lowered, and the tables of its modifiers."""

from __future__ import annotations

from collections.abc import Callable

from simulator.frontends.sass.defuse import result_count
from simulator.frontends.sass.operands import Operand, OperandKind
from simulator.frontends.sass.row_layout import Draft, NotInterpreted, is_predicate
from simulator.frontends.sass.semantics import codes

Lowering = Callable[[Draft], Draft]

COMPARISONS = {
    "F": codes.FALSE,
    "LT": codes.LESS,
    "EQ": codes.EQUAL,
    "LE": codes.LESS_EQUAL,
    "GT": codes.GREATER,
    "NE": codes.NOT_EQUAL,
    "GE": codes.GREATER_EQUAL,
    "T": codes.TRUE,
}
FLOAT_COMPARISONS = COMPARISONS | {"NUM": codes.NUMBER, "NAN": codes.NOT_A_NUMBER}
COMBINATIONS = {"AND": codes.COMBINE_AND, "OR": codes.COMBINE_OR, "XOR": codes.COMBINE_XOR}
ROUNDINGS = {"RM": codes.ROUND_DOWN, "RP": codes.ROUND_UP, "RZ": codes.ROUND_TO_ZERO}
INTEGRAL_ROUNDINGS = {"FLOOR": codes.ROUND_DOWN, "CEIL": codes.ROUND_UP, "TRUNC": codes.ROUND_TO_ZERO}
TRANSCENDENTALS = {
    "RCP": codes.RECIPROCAL,
    "RSQ": codes.RECIPROCAL_ROOT,
    "SQRT": codes.ROOT,
    "EX2": codes.EXPONENTIAL,
    "LG2": codes.LOGARITHM,
    "SIN": codes.SINE,
    "COS": codes.COSINE,
}
SHUFFLES = {
    "IDX": codes.SHUFFLE_INDEX,
    "UP": codes.SHUFFLE_UP,
    "DOWN": codes.SHUFFLE_DOWN,
    "BFLY": codes.SHUFFLE_BUTTERFLY,
}
VOTES = {"ANY": codes.VOTE_ANY, "ALL": codes.VOTE_ALL, "EQ": codes.VOTE_EQUAL}
REDUCTIONS = {
    "SUM": codes.REDUCE_ADD,
    "MIN": codes.REDUCE_MINIMUM,
    "MAX": codes.REDUCE_MAXIMUM,
    "AND": codes.REDUCE_AND,
    "OR": codes.REDUCE_OR,
    "XOR": codes.REDUCE_XOR,
}
INTEGER_TYPES = {f"{sign}{bits}": (bits, sign == "S") for sign in "US" for bits in (8, 16, 32, 64)}
PERMUTE_MODES = frozenset({"F4E", "B4E", "RC8", "ECL", "ECR", "RC16"})


def split(draft: Draft) -> tuple[tuple[Operand, ...], list[Operand], list[Operand]]:
    """(results, register-like sources, predicate sources) of an instruction, in printed order."""
    instruction = draft.instruction
    count = result_count(instruction)
    sources = instruction.operands[count:]
    return (
        instruction.operands[:count],
        [operand for operand in sources if not is_predicate(operand)],
        [operand for operand in sources if is_predicate(operand)],
    )


def has(draft: Draft, modifier: str) -> bool:
    """Does the mnemonic carry a modifier?"""
    return modifier in draft.instruction.modifiers


def pick(draft: Draft, table: dict[str, int], default: int | None = None) -> int:
    """Value of the first modifier that a table has."""
    for modifier in draft.instruction.modifiers:
        if modifier in table:
            return table[modifier]
    if default is None:
        raise NotInterpreted(draft.instruction.opcode)
    return default


def immediate(operand: Operand) -> int:
    """Value of an operand that must be an immediate."""
    if operand.kind is not OperandKind.IMMEDIATE:
        raise NotInterpreted(f"operand {operand.text}")
    return operand.value


def carries_in(draft: Draft, predicates: list[Operand]) -> None:
    """Predicate sources as carries into slots p and q."""
    draft.no_predicate("p", "q")
    for slot, operand in zip("pq", predicates, strict=False):
        draft.predicate_source(slot, operand)
