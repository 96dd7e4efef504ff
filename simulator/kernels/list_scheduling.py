"""The order of straight-line code: what a compiler's list scheduler makes of instructions that are written in program order."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from functools import lru_cache

from simulator.isa.table import pipe_of
from simulator.kernels.control_words import VARIABLE_PIPES, Instruction, Value, result_distance

SPACING = {"alu": 2, "fma_heavy": 2, "transcendental": 8, "shuffle": 2, "shared": 2, "tensor": 6}
"""Cycles from an instruction to the next of its pipe in compiled code; others: 1."""
VARIABLE_DISTANCES = {"transcendental": 20, "shuffle": 24, "shared": 32}
"""Cycles that compiled code leaves between a result of variable latency and its consumer, where it has other work."""
OTHER_DISTANCE = 24


_Shape = tuple[tuple[str, tuple[int, ...], tuple[int, ...], tuple[int, ...]], ...]
"""(opcode, numbers of the values written, of those read, argument) of each instruction."""


def list_schedule(instructions: Sequence[Instruction]) -> list[Instruction]:
    """``instructions`` reordered: dependences are kept; of what is ready, the head of the longest remaining path goes first
    (the earliest in program order among equals), one a cycle, each pipe at its spacing."""
    numbers: dict[Value, int] = {}

    def named(values: Iterable[Value]) -> tuple[int, ...]:
        return tuple(numbers.setdefault(value, len(numbers)) for value in values)

    shape = tuple((one.opcode, named(one.writes), named(one.operands), one.argument) for one in instructions)
    return [instructions[i] for i in _order(shape)]


@lru_cache(maxsize=64)
def _order(shape: _Shape) -> tuple[int, ...]:
    """Places in program order, in the order of issue."""
    n = len(shape)
    pipes = [pipe_of(opcode) for opcode, *_ in shape]
    successors, n_before = _dependences(shape, pipes)
    length = [0] * n
    for i in range(n - 1, -1, -1):
        length[i] = max((distance + length[j] for j, distance in successors[i]), default=0)
    earliest = [0] * n
    coming = [(0, i) for i in range(n) if n_before[i] == 0]
    ready: dict[str, list[tuple[int, int]]] = {}
    pipe_free = dict.fromkeys(pipes, 0)
    order: list[int] = []
    cycle = 0
    while len(order) < n:
        while coming and coming[0][0] <= cycle:
            _, i = heapq.heappop(coming)
            heapq.heappush(ready.setdefault(pipes[i], []), (-length[i], i))
        heads = [(queue[0], pipe) for pipe, queue in ready.items() if queue and pipe_free[pipe] <= cycle]
        if not heads:
            times = [pipe_free[pipe] for pipe, queue in ready.items() if queue]
            cycle = min(times + [time for time, _ in coming[:1]])
            continue
        (_, i), pipe = min(heads)
        heapq.heappop(ready[pipe])
        order.append(i)
        pipe_free[pipe] = cycle + SPACING.get(pipe, 1)
        for j, distance in successors[i]:
            earliest[j] = max(earliest[j], cycle + distance)
            n_before[j] -= 1
            if n_before[j] == 0:
                heapq.heappush(coming, (earliest[j], j))
        cycle += 1
    return tuple(order)


def _dependences(shape: _Shape, pipes: Sequence[str]) -> tuple[list[list[tuple[int, int]]], list[int]]:
    """(successors with the cycles to leave in between, number of predecessors) of each instruction."""
    successors: list[list[tuple[int, int]]] = [[] for _ in shape]
    n_before = [0] * len(shape)
    writer: dict[int, int] = {}
    readers: dict[int, list[int]] = {}
    for i, (_, writes, reads, _) in enumerate(shape):
        before: dict[int, int] = {}
        for value in reads:
            if value in writer:
                before[writer[value]] = _distance(shape[writer[value]], pipes[writer[value]])
        for value in writes:
            for j in (*readers.get(value, ()), *((writer[value],) if value in writer else ())):
                before.setdefault(j, 1)
        before.pop(i, None)
        for j, distance in before.items():
            successors[j].append((i, distance))
            n_before[i] += 1
        for value in reads:
            readers.setdefault(value, []).append(i)
        for value in writes:
            writer[value] = i
            readers[value] = []
    return successors, n_before


def _distance(one: tuple[str, tuple[int, ...], tuple[int, ...], tuple[int, ...]], pipe: str) -> int:
    if pipe in VARIABLE_PIPES:
        return VARIABLE_DISTANCES.get(pipe, OTHER_DISTANCE)
    return result_distance(Instruction(one[0], argument=one[3]), pipe)
