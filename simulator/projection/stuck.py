"""A kernel that cannot go on: which warps wait where."""

from __future__ import annotations

from simulator.device.machine import Run
from simulator.sm.inputs import Program
from simulator.sm.layout import (
    FINISHED,
    ON_BARRIER,
    ON_CLUSTER,
    ON_MBARRIER,
    ON_TENSOR_GROUP,
    ON_TENSOR_QUEUE,
    W_BLOCK,
    W_LANE,
    W_NEXT,
    W_TARGET,
    WARP_FIELDS,
    WARPS,
)
from simulator.trace.kernel_trace import KernelTrace

_WHAT = {
    ON_BARRIER: "named barrier",
    ON_MBARRIER: "mbarrier",
    ON_TENSOR_GROUP: "MMA group",
    ON_TENSOR_QUEUE: "MMA queue",
    ON_CLUSTER: "cluster barrier",
}
MOST_NAMED = 6


def describe_deadlock(trace: KernelTrace, program: Program, run: Run) -> str:
    """One sentence: the waiting warps of the first stuck CTA, their instruction and barrier."""
    x = run.machine
    n_warps = trace.launch.n_warps
    waiting: list[str] = []
    for number in range((len(x) - x[WARPS]) // WARP_FIELDS):
        w = x[WARPS] + number * WARP_FIELDS
        if number and number % n_warps == 0 and waiting:
            break
        if x[w + W_BLOCK] != FINISHED and x[w + W_NEXT] < len(program.instruction):
            row = int(program.instruction[x[w + W_NEXT]])
            what = _WHAT.get(int(x[w + W_BLOCK]), "nothing known")
            target = f" {int(x[w + W_TARGET])}" if x[w + W_BLOCK] == ON_BARRIER else ""
            address = int(trace.static.address[row])
            waiting.append(f"warp {int(x[w + W_LANE])} on {what}{target} at 0x{address:x} ({trace.static.text[row]})")
    named = "; ".join(waiting[:MOST_NAMED])
    more = f"; and {len(waiting) - MOST_NAMED} more" if len(waiting) > MOST_NAMED else ""
    return f"kernel '{trace.kernel}' deadlocks: {named}{more}"
