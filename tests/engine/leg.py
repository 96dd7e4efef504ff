"""One leg of the engine's tests, in a process of its own: ``python -m tests.engine.leg PYTEST_ARGUMENTS``.

Runs pytest with the numba settings of the environment, then prints the digest of a fixed run as its last line.
"""

from __future__ import annotations

import hashlib
import sys
import warnings

import numpy as np
import pytest

from tests.engine import instructions as do
from tests.engine.machine import Machine, run
from tests.engine.programs import Op, Tensor, assemble

TENSOR = Tensor(shape=(96, 400), strides=(192,), box=(48, 5), row_cycles=1.25, port_cycles=3)
MACHINE = Machine(
    members=((0, 2), (1, 3)),
    n_slots=2,
    n_domains=2,
    domain_of=(0, 1, 0, 1),
    partition_of=(0, 1, 1, 0),
    l2_sets=4,
    sm={"barrier_warp": 2, "mbarrier_port": 1, "cta_turnaround": 50, "l1_miss": 1.5},
    memory={
        "n_partitions": 2,
        "dram_read_sector": 0.25,
        "coalescer_sector": 0.125,
        "dram_write_sector": 0.5,
        "merge_transit": 110,
    },
)


def kernel() -> list[list[Op]]:
    """Every effect of the engine, on eight warps."""
    lines = ((0, 15), (1, 6), (3, 1))
    streams: list[list[Op]] = [[] for _ in range(8)]
    for lane, stream in enumerate(streams):
        body = [do.alu(2, 9, write=0, contention=1), do.shared(1 + lane, write=1), do.alu(wait=(0, 1)), do.branch()]
        stream += [do.init(), do.init(1)] if lane == 0 else []
        stream += [do.bar(), *body * 3, do.load(128 * lane, lines, cached=True, base=0, write=2), do.nop(wait=(2,))]
        stream += [do.store(4096 + 128 * lane, lines, base=0, read=3), do.atomic(64 * 128, base=0, write=4)]
        stream += [do.copy(9 * 128, lines, read=3), do.commit(), do.wait_copies(0), do.fence(30)]
        stream += [do.mma(16, 20, port=8), do.mma(16, 20, port=8, commits=False), do.wait_mma(1)]
        if lane == 5:
            stream += [do.expect(TENSOR.box_bytes), do.load_box(TENSOR, (-4, 0), base=(-1, 0)), do.copy_arrive(1)]
        stream += [do.try_wait(0, write=5), do.nop(wait=(5,)), do.try_wait(0, 1, write=5), do.nop(wait=(5, 4))]
        stream += [do.store_box(TENSOR, (0, 200), base=(-1, 0)), do.commit_stores(), do.wait_copies(0)]
        stream += [do.cluster_arrive(), do.cluster_wait(), do.nop()]
    return streams


def digest() -> str:
    """Of the whole issue log and all counters of a fixed run."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "overflow encountered")
        outcome = run(assemble(kernel(), n_ctas=11, cta_base=[[128 * cta] for cta in range(11)]), MACHINE)
    assert outcome.finished
    text = repr([tuple(issue) for issue in outcome.log]).encode() + np.ascontiguousarray(outcome.x).tobytes()
    return hashlib.sha256(text).hexdigest()


def main() -> None:
    """Exit with pytest's code."""
    code = pytest.main(["-q", "-p", "no:cacheprovider", "-W", "ignore", *sys.argv[1:]])
    print(digest())
    sys.exit(int(code))


if __name__ == "__main__":
    main()
