"""Lowering of register-to-register instructions: integer, bitwise, predicate, float, conversion, cross-lane."""

from __future__ import annotations

from simulator.frontends.sass.lower_floating import (
    division_check,
    float_arithmetic,
    float_compare,
    float_minimum_maximum,
    float_to_integer,
    half_constant,
    integer_to_float,
    pack_halves,
    transcendental,
)
from simulator.frontends.sass.lower_operands import (
    COMBINATIONS,
    COMPARISONS,
    INTEGER_TYPES,
    PERMUTE_MODES,
    REDUCTIONS,
    SHUFFLES,
    VOTES,
    Lowering,
    carries_in,
    has,
    immediate,
    pick,
    split,
)
from simulator.frontends.sass.operands import ZERO, OperandKind
from simulator.frontends.sass.row_layout import Draft, NotInterpreted, is_predicate
from simulator.frontends.sass.semantics import codes


def add(draft: Draft) -> Draft:
    """IADD3, VIADD, IADD: up to three terms, carries in and out, or one 64-bit sum."""
    results, sources, predicates = split(draft)
    wide = has(draft, "64")
    for slot, operand in zip("abc", sources, strict=False):
        draft.source(slot, operand, wide=wide)
    draft.results(results, 2 if wide else 1)
    if wide:
        return draft.verb(codes.INTEGER, codes.ADD_PAIR)
    carries_in(draft, predicates)
    simple = not predicates and not any(is_predicate(operand) for operand in results)
    return draft.verb(codes.INTEGER, codes.ADD3 if simple else codes.ADD3_CARRY)


def multiply_add(draft: Draft) -> Draft:
    """IMAD and its forms; products with zero or one become moves and sums."""
    results, sources, predicates = split(draft)
    a, b, c = sources
    unsigned = int(has(draft, "U32"))
    if has(draft, "WIDE") or has(draft, "HI"):
        if predicates or len(results) > 1:
            raise NotInterpreted(draft.instruction.opcode)
        verb = codes.MULTIPLY_WIDE if has(draft, "WIDE") else codes.MULTIPLY_HIGH
        draft.source("a", a).source("b", b).source("c", c, wide=True).set(x0=unsigned)
        draft.results(results, 2 if verb == codes.MULTIPLY_WIDE else 1)
        return draft.verb(codes.INTEGER, verb)
    draft.results(results)
    carries_in(draft, predicates)
    if ZERO in (a.index, b.index):
        if not predicates:
            return draft.source("a", c).verb(codes.INTEGER, codes.MOVE)
        return draft.source("c", c).verb(codes.INTEGER, codes.ADD3_CARRY)
    if b.kind is OperandKind.IMMEDIATE and b.value == 1 and not predicates:
        return draft.source("a", a).source("b", c).verb(codes.INTEGER, codes.ADD3)
    draft.source("a", a).source("b", b).source("c", c)
    return draft.verb(codes.INTEGER, codes.MULTIPLY_ADD)


def shift_add(draft: Draft) -> Draft:
    """LEA, LEA.HI (optionally sign extended), with carries."""
    results, sources, predicates = split(draft)
    draft.no_predicate("p")
    if predicates:
        draft.predicate_source("p", predicates[-1])
    high, extends = has(draft, "HI"), has(draft, "SX32")
    if high and not extends:
        a, b, c, shift = sources
        draft.source("c", c)
    else:
        a, b, shift = sources
    draft.source("a", a).source("b", b).set(x0=immediate(shift), x2=int(extends)).results(results)
    return draft.verb(codes.INTEGER, codes.SHIFT_ADD_HIGH if high else codes.SHIFT_ADD)


def move(draft: Draft) -> Draft:
    """MOV, S2R, CS2R and unindexed constant loads."""
    results, sources, _ = split(draft)
    base = draft.instruction.base
    wide = has(draft, "64") or (base == "CS2R" and not has(draft, "32"))
    draft.source("a", sources[0], wide=wide).results(results, 2 if wide else 1)
    return draft.verb(codes.INTEGER, codes.MOVE_PAIR if wide else codes.MOVE)


def absolute(draft: Draft) -> Draft:
    """IABS."""
    results, sources, _ = split(draft)
    return draft.source("a", sources[0]).results(results).verb(codes.INTEGER, codes.ABSOLUTE)


def minimum_maximum(draft: Draft) -> Draft:
    """VIMNMX, IMNMX; VIADDMNMX adds first."""
    results, sources, predicates = split(draft)
    for slot, operand in zip("abc", sources, strict=False):
        draft.source(slot, operand)
    draft.results(results).predicate_source("p", predicates[-1]).set(x0=int(has(draft, "U32")), x1=draft.layout.zero)
    return draft.verb(codes.INTEGER, codes.ADD_MINIMUM_MAXIMUM if len(sources) == 3 else codes.MINIMUM_MAXIMUM)


def compare(draft: Draft) -> Draft:
    """ISETP, with the .EX form that continues a 64-bit comparison."""
    results, sources, predicates = split(draft)
    if has(draft, "U64") or has(draft, "S64"):
        raise NotInterpreted(draft.instruction.opcode)
    draft.source("a", sources[0]).source("b", sources[1]).results(results).predicate_source("p", predicates[0])
    draft.no_predicate("q").set(x0=pick(draft, COMPARISONS), x1=int(has(draft, "U32")), x2=pick(draft, COMBINATIONS))
    if has(draft, "EX"):
        draft.predicate_source("q", predicates[1]).set(x3=1)
    return draft.verb(codes.INTEGER, codes.COMPARE)


def dot_product(draft: Draft) -> Draft:
    """IDP.4A with byte types of both factors."""
    results, sources, _ = split(draft)
    if not has(draft, "4A"):
        raise NotInterpreted(draft.instruction.opcode)
    types = [m for m in draft.instruction.modifiers if m in INTEGER_TYPES]
    for slot, operand in zip("abc", sources, strict=True):
        draft.source(slot, operand)
    draft.set(x0=int(types[0] == "S8"), x1=int(types[-1] == "S8")).results(results)
    return draft.verb(codes.INTEGER, codes.DOT_PRODUCT)


def logic3(draft: Draft) -> Draft:
    """LOP3.LUT; the predicate result tells whether the word is not zero."""
    results, sources, predicates = split(draft)
    for slot, operand in zip("abc", sources[:3], strict=True):
        draft.source(slot, operand)
    draft.no_predicate("p").set(x0=immediate(sources[3]), x1=int(not has(draft, "PAND"))).results(results)
    if predicates:
        draft.predicate_source("p", predicates[-1])
    return draft.verb(codes.LOGIC, codes.LOGIC3)


def funnel_shift(draft: Draft) -> Draft:
    """SHF."""
    results, sources, _ = split(draft)
    for slot, operand in zip("abc", sources, strict=True):
        draft.source(slot, operand)
    wide = has(draft, "U64") or has(draft, "S64")
    arithmetic = int(has(draft, "S32") or has(draft, "S64"))
    draft.set(
        x0=int(has(draft, "R")), x1=int(has(draft, "HI")), x2=64 if wide else 32, x3=arithmetic | (2 if has(draft, "W") else 0)
    )
    return draft.results(results).verb(codes.LOGIC, codes.FUNNEL_SHIFT)


def permute(draft: Draft) -> Draft:
    """PRMT in its general mode."""
    results, sources, _ = split(draft)
    if PERMUTE_MODES & set(draft.instruction.modifiers):
        raise NotInterpreted(draft.instruction.opcode)
    draft.source("a", sources[0]).source("b", sources[1]).source("c", sources[2]).results(results)
    return draft.verb(codes.LOGIC, codes.PERMUTE_BYTES)


def bitwise(verb: int) -> Lowering:
    """One- and two-source bit verbs: SGXT, BMSK, POPC, FLO, BREV."""

    def lower(draft: Draft) -> Draft:
        results, sources, _ = split(draft)
        if has(draft, "W"):
            raise NotInterpreted(draft.instruction.opcode)
        for slot, operand in zip("ab", sources, strict=False):
            draft.source(slot, operand)
        unsigned = has(draft, "U32")
        draft.set(x0=int(unsigned if verb == codes.EXTEND_SIGN else not unsigned), x1=int(has(draft, "SH")))
        return draft.results(results).verb(codes.LOGIC, verb)

    return lower


def select(floating: bool) -> Lowering:
    """SEL and FSEL."""

    def lower(draft: Draft) -> Draft:
        results, sources, predicates = split(draft)
        draft.source("a", sources[0], floating).source("b", sources[1], floating).results(results)
        return draft.predicate_source("p", predicates[-1]).verb(codes.LOGIC, codes.SELECT)

    return lower


def predicate_logic3(draft: Draft) -> Draft:
    """PLOP3: two truth tables over three predicates."""
    results, tables, predicates = split(draft)
    for slot, operand in zip("pqs", predicates, strict=True):
        draft.predicate_source(slot, operand)
    draft.set(x0=immediate(tables[0]), x1=immediate(tables[1])).results(results)
    return draft.verb(codes.PREDICATES, codes.PREDICATE_LOGIC3)


def predicates_to_register(draft: Draft) -> Draft:
    """P2R R, PR, kept, mask."""
    operands = draft.instruction.operands
    shift = 8 * int(operands[0].part[1:]) if operands[0].part.startswith("B") else 0
    draft.results((operands[0],)).source("a", operands[2]).set(x0=immediate(operands[3]), x1=shift)
    return draft.verb(codes.PREDICATES, codes.PREDICATES_TO_REGISTER)


def register_to_predicates(draft: Draft) -> Draft:
    """R2P PR, R, mask."""
    _, source, mask = draft.instruction.operands
    shift = 8 * int(source.part[1:]) if source.part.startswith("B") else 0
    draft.set(a=draft.layout.row(source), x0=immediate(mask), x1=shift)
    return draft.verb(codes.PREDICATES, codes.REGISTER_TO_PREDICATES)


def shuffle(draft: Draft) -> Draft:
    """SHFL P, R, a, b, c."""
    results, sources, _ = split(draft)
    for slot, operand in zip("abc", sources, strict=True):
        draft.source(slot, operand)
    return draft.results(results).verb(codes.CROSS_LANE, pick(draft, SHUFFLES))


def vote(draft: Draft) -> Draft:
    """VOTE and VOTEU: ballot register and predicate, either may be absent."""
    results, _, predicates = split(draft)
    return draft.results(results).predicate_source("p", predicates[-1]).verb(codes.CROSS_LANE, pick(draft, VOTES))


def elect(draft: Draft) -> Draft:
    """ELECT P, UR, Pin: the first lane where Pin holds."""
    results, _, predicates = split(draft)
    return draft.results(results).predicate_source("p", predicates[-1]).verb(codes.CROSS_LANE, codes.ELECT_LANE)


def to_uniform(draft: Draft) -> Draft:
    """R2UR; with a predicate result it marks the lanes that hold another word."""
    results, sources, _ = split(draft)
    draft.source("a", sources[0]).results(results).set(x0=int(has(draft, "OR")))
    if draft.fields["dest_p"] >= 0:
        draft.set(q=draft.fields["dest_p"])
    return draft.verb(codes.CROSS_LANE, codes.TO_UNIFORM)


def reduce(draft: Draft) -> Draft:
    """REDUX; AND is not spelled out in the mnemonic."""
    results, sources, _ = split(draft)
    draft.source("a", sources[0]).results(results)
    draft.set(x0=pick(draft, REDUCTIONS, codes.REDUCE_AND), x1=int(has(draft, "S32")))
    return draft.verb(codes.CROSS_LANE, codes.REDUCE)


def match(draft: Draft) -> Draft:
    """MATCH.ANY and MATCH.ALL on 32-bit words."""
    results, sources, _ = split(draft)
    if has(draft, "U64"):
        raise NotInterpreted(draft.instruction.opcode)
    verb = codes.MATCH_ALL if has(draft, "ALL") else codes.MATCH_ANY
    return draft.source("a", sources[0]).results(results).verb(codes.CROSS_LANE, verb)


ARITHMETIC: dict[str, Lowering] = {
    **dict.fromkeys(("IADD3", "VIADD", "IADD", "UIADD3", "UVIADD", "UIADD"), add),
    **dict.fromkeys(("IMAD", "UIMAD"), multiply_add),
    **dict.fromkeys(("LEA", "ULEA"), shift_add),
    **dict.fromkeys(("MOV", "UMOV", "S2R", "S2UR", "CS2R", "CS2UR"), move),
    **dict.fromkeys(("IABS", "UIABS"), absolute),
    **dict.fromkeys(("VIMNMX", "IMNMX", "UVIMNMX", "UIMNMX", "VIADDMNMX", "UVIADDMNMX"), minimum_maximum),
    **dict.fromkeys(("ISETP", "UISETP"), compare),
    **dict.fromkeys(("LOP3", "ULOP3"), logic3),
    **dict.fromkeys(("SHF", "USHF"), funnel_shift),
    **dict.fromkeys(("PRMT", "UPRMT"), permute),
    **dict.fromkeys(("SGXT", "USGXT"), bitwise(codes.EXTEND_SIGN)),
    **dict.fromkeys(("BMSK", "UBMSK"), bitwise(codes.BIT_MASK)),
    **dict.fromkeys(("POPC", "UPOPC"), bitwise(codes.POPULATION)),
    **dict.fromkeys(("FLO", "UFLO"), bitwise(codes.FIND_LEADING_ONE)),
    **dict.fromkeys(("BREV", "UBREV"), bitwise(codes.REVERSE_BITS)),
    **dict.fromkeys(("SEL", "USEL"), select(floating=False)),
    **dict.fromkeys(("PLOP3", "UPLOP3"), predicate_logic3),
    **dict.fromkeys(("I2F", "I2FP"), integer_to_float),
    **dict.fromkeys(("VOTE", "VOTEU"), vote),
    **dict.fromkeys(("REDUX", "UREDUX"), reduce),
    "IDP": dot_product,
    "FSEL": select(floating=True),
    "P2R": predicates_to_register,
    "R2P": register_to_predicates,
    "FADD": float_arithmetic(codes.FLOAT_ADD),
    "FMUL": float_arithmetic(codes.FLOAT_MULTIPLY),
    "FFMA": float_arithmetic(codes.FLOAT_MULTIPLY_ADD),
    "FMNMX": float_minimum_maximum,
    "FSETP": float_compare,
    "MUFU": transcendental,
    "FCHK": division_check,
    "HFMA2": half_constant,
    "F2I": float_to_integer,
    "F2FP": pack_halves,
    "SHFL": shuffle,
    "ELECT": elect,
    "R2UR": to_uniform,
    "MATCH": match,
}
"""Base opcode -> lowering; opcodes that are not here have unknown results."""
