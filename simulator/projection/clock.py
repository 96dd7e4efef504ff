"""SM clock that a kernel sustains under the power limit, by how busy it keeps the tensor cores."""

from __future__ import annotations

import numpy as np

from simulator.hw.timing import ClockTiming

SETTLED = 0.03
"""A clock within 3 % of the assumed one needs no further replay."""


def sustained_clock_hz(clock: ClockTiming, tensor_activity: float, seconds: float) -> float:
    """Clock in Hz of a kernel that keeps the tensor cores busy for a share ``tensor_activity`` (0..1) of ``seconds``."""
    return float(sustained_clocks_hz(clock, np.array([tensor_activity]), np.array([seconds]))[0])


def sustained_clocks_hz(clock: ClockTiming, tensor_activity: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    """The same for many kernels at once, float64 [n]."""
    powered = np.interp(tensor_activity, clock.tensor_activity, clock.tensor_hz)
    tensor = np.where(seconds < clock.power_seconds, clock.short_tensor_hz, powered)
    return np.where(tensor_activity <= 0, clock.plain_hz, tensor)


def expected_clock_hz(clock: ClockTiming, busy_cycles: float) -> float:
    """First guess, from the least tensor-core cycles that a launch needs on each SM."""
    return sustained_clock_hz(clock, USUAL_ACTIVITY if busy_cycles else 0.0, busy_cycles / clock.short_tensor_hz)


USUAL_ACTIVITY = 0.7
"""Share of tensor-core time that a matrix kernel of any length is assumed to reach before it is replayed."""
