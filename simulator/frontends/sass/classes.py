"""CTA classes of a launch: groups of CTAs are executed until every one has found its class."""

from __future__ import annotations

import numpy as np

from simulator.errors import Unsupported
from simulator.frontends.sass.group_execution import ClassExecution, GroupExecutor
from simulator.frontends.sass.special_registers import cluster_ranks

CLASS_INSTRUCTION_BUDGET = 200_000_000
"""Warp instructions of all class streams together, at most."""


def classify(executor: GroupExecutor) -> list[ClassExecution]:
    """Execute the launch class by class. Ranks of a cluster are apart from the start: their shared addresses differ.
    Unsupported when the CTAs differ in so many ways that their streams would not fit."""
    launch = executor.bound.launch
    ranks = cluster_ranks(launch, np.arange(launch.n_ctas))
    pending = [np.flatnonzero(ranks == rank) for rank in np.unique(ranks)[::-1]]
    found: list[ClassExecution] = []
    total = 0
    while pending:
        executions, left = executor.run(pending.pop())
        found += executions
        pending += sorted(left, key=lambda group: -int(group[0]))
        total += sum(execution.n_instructions for execution in executions)
        if total > CLASS_INSTRUCTION_BUDGET:
            remaining = sum(len(group) for group in pending)
            raise Unsupported(
                f"kernel '{executor.kernel.name}': its CTAs differ in too many ways; {len(found):,} classes hold "
                f"{total:,} warp instructions and {remaining:,} CTAs are not classified"
            )
    return sorted(found, key=lambda execution: int(execution.members[0]))
