"""One load after another, each waiting for the one before: latencies as a pointer chase sees them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from simulator.memory.l2 import home_of, scatter
from simulator.memory.layout import N_PARTITIONS
from tests.engine.instructions import load, nop
from tests.engine.machine import Machine, Outcome, run
from tests.engine.programs import Op, assemble

NEAR, FAR, DRAM = 200, 100, 400
BARE = Machine(sm={"l1_hit": 0, "l1_tag": 0, "fill_byte": 0, "store_byte": 0})
"""SMs whose own path to the L2 costs one cycle."""
SM_PATH = 1
TWO_PARTITIONS = replace(
    BARE, members=((0,), (1,)), partition_of=(0, 1), domain_of=(0, 1), n_domains=2, memory={"n_partitions": 2}
)
"""SM 0 next to partition 0, SM 1 next to partition 1."""


def line(n: int) -> int:
    """Address of line ``n``."""
    return n * 128


def chase(*ops: Op) -> list[Op]:
    """Each operation starts when the one before is done."""
    return [step for op in ops for step in (op, nop(wait=(0,)))]


def read(n: int, mask: int = 15) -> Op:
    return load(line(n), ((0, mask),), write=0)


def latencies(outcome: Outcome, sm: int = 0) -> list[float]:
    """Of each operation of a chase, beyond the SM's own path."""
    times = outcome.times(sm=sm)
    return [done - at - SM_PATH for at, done in zip(times[::2], times[1::2], strict=True)]


def run_on_two(first: Sequence[Op], second: Sequence[Op], machine: Machine = TWO_PARTITIONS) -> Outcome:
    """SM 0 runs ``first``, SM 1 runs ``second``."""
    return run(assemble(classes=[[first], [second]], cta_class=[0, 1]), machine)


def homes(n_partitions: int, home: int, count: int = 4) -> list[int]:
    """The first line numbers whose home is partition ``home``."""
    header = np.zeros(N_PARTITIONS + 1, np.int64)
    header[N_PARTITIONS] = n_partitions
    found = [n for n in range(1, 200) if home_of(header, scatter(n)) == home]
    return found[:count]
