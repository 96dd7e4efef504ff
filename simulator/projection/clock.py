"""SM clock that a kernel sustains, by the kind of arithmetic that it does."""

from __future__ import annotations

from simulator.hw.timing import ClockTiming
from simulator.isa.table import pipe_of
from simulator.trace.kernel_trace import KernelTrace


def sustained_clock_hz(trace: KernelTrace, clock: ClockTiming) -> float:
    """Clock in Hz: tensor kernels draw more power and run slower (clock under load in the measured files)."""
    pipes = {pipe_of(opcode) for opcode in trace.static.opcode}
    if "tensor_async" in pipes:
        return clock.tensor_async_hz
    if "tensor" in pipes:
        return clock.tensor_sync_hz
    return clock.idle_hz
