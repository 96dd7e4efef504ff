"""Does a written kernel become the trace that its author meant?"""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.kernels.control_words import Value
from simulator.kernels.writer import KernelWriter
from simulator.trace.kernel_trace import NONE, KernelTrace, Launch


def loop_of_loads(turns: int, n_ctas: int = 4) -> KernelTrace:
    kernel = KernelWriter("loads", "any", Launch((n_ctas, 1, 1), (64, 1, 1)))
    address = kernel.buffer("x", 1 << 20)
    block, x = kernel.block("loop", loop=True), Value("x")
    block.op("LDG.E", [x], [], slot="load", width=4)
    block.op("FADD", [x], [x])
    cta = kernel.cta_class(np.arange(n_ctas))
    key = cta.difference(np.arange(n_ctas) * 4096)
    pattern = kernel.pattern(np.arange(32) * 4)
    rows = cta.events(pattern=pattern, address=address + np.arange(turns) * 128, base=key)
    for number, warp in enumerate(cta.warps):
        warp.run(block, turns, {"load": rows}, {"load": 32 * (number == 0)})
    return kernel.trace(registers=16)


@given(st.integers(1, 40))
@settings(deadline=None)
def test_a_block_runs_as_often_as_asked(turns: int) -> None:
    trace = loop_of_loads(turns)
    first, second = trace.streams[0]
    assert len(first) == len(second) == 2 * turns
    assert trace.warp_instructions == 4 * 2 * 2 * turns
    assert (second.event == NONE).all()
    assert (trace.events.address[first.event[::2]] == trace.buffers[0].address + np.arange(turns) * 128).all()


def test_members_of_a_class_differ_by_their_column() -> None:
    trace = loop_of_loads(3)
    column = trace.events.base[trace.streams[0][0].event[0], 0]
    assert trace.cta_base[:, column].tolist() == [0, 4096, 8192, 12288]


def test_live_registers_count_what_lives_at_once() -> None:
    kernel = KernelWriter("k", "any", Launch((1, 1, 1), (32, 1, 1)))
    block = kernel.block("b")
    wide, other = Value("wide", 8), Value("other", 4)
    block.op("CS2R", [wide], [])
    block.op("FADD", [other], [wide])
    block.op("FADD", [other], [other])
    assert kernel.live_registers() == 14
