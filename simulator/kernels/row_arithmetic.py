"""Arithmetic of row normalizations on the elements that a thread holds, instruction by instruction as compiled.

``full_range`` code rescales numbers that approximations by the special-function unit would flush or overflow: an
exponential then takes a comparison and two multiplications more, a quotient two multiplications an element.
"""

from __future__ import annotations

from collections.abc import Sequence

from simulator.kernels.control_words import Value
from simulator.kernels.writer import Block

N_PREDICATES = 7
"""Of a thread, without PT."""


def chain(block: Block, opcode: str, values: Sequence[Value], start: Value | None = None, squares: bool = False) -> Value:
    """Sum, maximum, or sum of squares of ``values``, one after another."""
    if start is None:
        start = values[0]
        if squares:
            start = Value("total")
            block.op("FMUL", [start], [values[0], values[0]])
        values = values[1:]
    for value in values:
        total = Value("total")
        block.op("FFMA" if squares else opcode, [total], [start, value])
        start = total
    return start


def subtract_mean(block: Block, values: Sequence[Value], mean: Value, guards: Sequence[Value | None]) -> list[Value]:
    """Differences from the mean; zero beyond the row's end."""
    found = []
    for value, guard in zip(values, guards, strict=True):
        difference = Value("d")
        block.op("FFMA", [difference], [value, mean])
        if guard is not None:
            kept = Value("d")
            block.op("FSEL", [kept], [difference, guard])
            difference = kept
        found.append(difference)
    return found


def exponentials(block: Block, values: Sequence[Value], maximum: Value, full_range: bool, n_held: int = 0) -> list[Value]:
    """exp(value - maximum). In full range each one under way holds a predicate, of those that are not ``n_held`` meanwhile:
    compiled code has three at once where a row is two vectors of a thread, and one where it is four or more."""
    scaled = [Value("t") for _ in values]
    for value, t in zip(values, scaled, strict=True):
        block.op("FADD" if full_range else "FFMA", [t], [value, maximum])
    if not full_range:
        return [_exp2(block, t) for t in scaled]
    for t in scaled:
        block.op("FMUL", [t], [t])
    found: list[Value] = []
    late: list[tuple[Value, Value]] = []
    together = max(1, N_PREDICATES - n_held)
    for start in range(0, len(scaled), together):
        group = scaled[start : start + together]
        small = [Value("P", kind="P") for _ in group]
        _restore(block, late)
        for t, p in zip(group, small, strict=True):
            block.op("FSETP.GEU.AND", [p], [t])
        for t, p in zip(group, small, strict=True):
            block.op("FMUL", [t], [t], guard=p)
        late = [(_exp2(block, t), p) for t, p in zip(group, small, strict=True)]
        found += [e for e, _ in late]
    _restore(block, late)
    return found


def _exp2(block: Block, t: Value) -> Value:
    e = Value("e")
    block.op("MUFU.EX2", [e], [t])
    return e


def _restore(block: Block, late: Sequence[tuple[Value, Value]]) -> None:
    for e, p in late:
        block.op("FMUL", [e], [e], guard=p)


def quotients(block: Block, values: Sequence[Value], total: Value, full_range: bool) -> list[Value]:
    """values / total."""
    inverse, guards = reciprocal(block, total, full_range)
    return quotients_by(block, values, inverse, guards)


def quotients_by(block: Block, values: Sequence[Value], inverse: Value, guards: Sequence[Value]) -> list[Value]:
    """values * inverse, rescaled as the inverse was."""
    for guard in guards:
        for value in values:
            block.op("FMUL", [value], [value], guard=guard)
    return scaled(block, values, inverse)


def scaled(block: Block, values: Sequence[Value], factor: Value) -> list[Value]:
    """values * factor."""
    found = [Value("y") for _ in values]
    for value, result in zip(values, found, strict=True):
        block.op("FMUL", [result], [value, factor])
    return found


def reciprocal(block: Block, total: Value, full_range: bool) -> tuple[Value, list[Value]]:
    """(1 / total, guards of the two rescalings that numerators need as well)."""
    inverse = Value("inverse")
    guards: list[Value] = []
    if full_range:
        guards = [Value("large", kind="P"), Value("tiny", kind="P")]
        block.op("FSETP.GT.AND", [guards[0]], [total])
        block.op("FSETP.GEU.AND", [guards[1]], [total])
        for guard in guards:
            block.op("FMUL", [total], [total], guard=guard)
    block.op("MUFU.RCP", [inverse], [total])
    return inverse, guards


def mean_of(block: Block, total: Value, inverse: Value, guards: Sequence[Value]) -> Value:
    """total / n, by the reciprocal of n."""
    for guard in guards:
        block.op("FMUL", [total], [total], guard=guard)
    mean = Value("mean")
    block.op("FMUL", [mean], [total, inverse])
    return mean


def inverse_root(block: Block, squares: Value, inverse: Value, guards: Sequence[Value], full_range: bool) -> Value:
    """1 / sqrt(squares / n + epsilon)."""
    for guard in guards:
        block.op("FMUL", [squares], [squares], guard=guard)
    variance, root = Value("variance"), Value("root")
    block.op("FFMA", [variance], [squares, inverse])
    if not full_range:
        block.op("MUFU.RSQ", [root], [variance])
        return root
    block.op("MUFU.SQRT", [root], [variance])
    found, scales = reciprocal(block, root, full_range)
    factor = Value("factor")
    block.op("FSEL", [factor], [scales[0]])
    block.op("FMUL", [factor], [factor], guard=scales[1])
    block.op("FMUL", [found], [found, factor])
    return found


def weighted(block: Block, values: Sequence[Value], scale: Sequence[Value], shift: Sequence[Value]) -> list[Value]:
    """values * scale + shift, as far as there are any."""
    if not scale:
        return list(values)
    found = [Value("y") for _ in values]
    for i, (value, result) in enumerate(zip(values, found, strict=True)):
        block.op("FFMA" if shift else "FMUL", [result], [value, scale[i], *shift[i : i + 1]])
    return found
