"""How many registers per thread a code needs: the most that live at once, as a compiler without spills would find."""

from __future__ import annotations

from collections.abc import Sequence

from simulator.kernels.control_words import Instruction, Value

REGISTER_UNIT = 2
"""Register counts of compiled kernels are even."""
PINNED = 1
"""R1 is the stack pointer."""


def live_registers(blocks: Sequence[tuple[Sequence[Instruction], bool]]) -> int:
    """Registers per thread of ``blocks`` (instructions, is a loop) that run one after another.

    A value lives from its first write to its last read; in a loop, what is written before and read inside, or read
    before it is written, lives throughout.
    """
    spans: dict[Value, tuple[int, int]] = {}
    place = 0
    for instructions, is_loop in blocks:
        first, last = place, place + len(instructions) - 1
        inside: set[Value] = set()
        for one in instructions:
            for value in one.operands:
                start, _ = spans.get(value, (first, place))
                if is_loop and value not in inside:
                    spans[value] = (min(start, first), last)
                else:
                    spans[value] = (start, max(place, spans.get(value, (0, 0))[1]))
            for value in one.writes:
                start, stop = spans.get(value, (place, place))
                spans[value] = (min(start, place), max(stop, place))
                inside.add(value)
            place += 1
    change = [0] * (place + 2)
    for value, (start, stop) in spans.items():
        if value.kind == "R":
            change[start] += value.size
            change[stop + 1] -= value.size
    live = most = 0
    for step in change:
        live += step
        most = max(most, live)
    return -(-(most + PINNED) // REGISTER_UNIT) * REGISTER_UNIT
