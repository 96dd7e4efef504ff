"""The order of straight-line code: what a compiler's list scheduler makes of instructions that are written in program order."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from simulator.isa.table import pipe_of
from simulator.kernels.control_words import VARIABLE_PIPES, Instruction, Value, result_distance

SPACING = {"alu": 2, "fma_heavy": 2, "transcendental": 8, "shuffle": 2, "shared": 2, "tensor": 6}
"""Cycles from an instruction to the next of its pipe in compiled code; others: 1."""
VARIABLE_DISTANCES = {"transcendental": 20, "shuffle": 24, "shared": 32}
"""Cycles that compiled code leaves between a result of variable latency and its consumer, where it has other work."""
OTHER_DISTANCE = 24


def list_schedule(instructions: Sequence[Instruction]) -> list[Instruction]:
    """``instructions`` reordered: dependences are kept; of what is ready, the head of the longest remaining path goes first
    (the earliest in program order among equals), one a cycle, each pipe at its spacing."""
    n = len(instructions)
    pipes = [pipe_of(one.opcode) for one in instructions]
    successors, n_before = _dependences(instructions, pipes)
    length = [0] * n
    for i in range(n - 1, -1, -1):
        length[i] = max((distance + length[j] for j, distance in successors[i]), default=0)
    earliest = [0] * n
    coming = [(0, i) for i in range(n) if n_before[i] == 0]
    ready: dict[str, list[tuple[int, int]]] = {}
    pipe_free = dict.fromkeys(pipes, 0)
    order: list[Instruction] = []
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
        order.append(instructions[i])
        pipe_free[pipe] = cycle + SPACING.get(pipe, 1)
        for j, distance in successors[i]:
            earliest[j] = max(earliest[j], cycle + distance)
            n_before[j] -= 1
            if n_before[j] == 0:
                heapq.heappush(coming, (earliest[j], j))
        cycle += 1
    return order


def _dependences(instructions: Sequence[Instruction], pipes: Sequence[str]) -> tuple[list[list[tuple[int, int]]], list[int]]:
    """(successors with the cycles to leave in between, number of predecessors) of each instruction."""
    successors: list[list[tuple[int, int]]] = [[] for _ in instructions]
    n_before = [0] * len(instructions)
    writer: dict[Value, int] = {}
    readers: dict[Value, list[int]] = {}
    for i, one in enumerate(instructions):
        before: dict[int, int] = {}
        for value in one.operands:
            if value in writer:
                before[writer[value]] = _distance(instructions[writer[value]], pipes[writer[value]])
        for value in one.writes:
            for j in (*readers.get(value, ()), *((writer[value],) if value in writer else ())):
                before.setdefault(j, 1)
        before.pop(i, None)
        for j, distance in before.items():
            successors[j].append((i, distance))
            n_before[i] += 1
        for value in one.operands:
            readers.setdefault(value, []).append(i)
        for value in one.writes:
            writer[value] = i
            readers[value] = []
    return successors, n_before


def _distance(one: Instruction, pipe: str) -> int:
    return VARIABLE_DISTANCES.get(pipe, OTHER_DISTANCE) if pipe in VARIABLE_PIPES else result_distance(one, pipe)
