"""What a formula reaches: a roofline, and a wave model with three fitted parameters, to print beside our own error.

Both see what anyone knows without the instructions: floating-point operations, the bytes of the operands, the number
of CTAs that fit, and the chip's peaks. Times are in SM cycles, like the measured ``cycles``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from simulator.hw.config import HardwareConfig
from simulator.validation.measured import labels, numbers

Formulas = dict[str, np.ndarray]
"""Name of a formula -> predicted cycles, one per row of the measured file (NaN where it has no answer)."""

FLOPS_PER_FMA = 2
TENSOR_ROWS, TENSOR_K_BYTES = 64, 32
"""Shape of one asynchronous MMA: rows of A, and bytes of a row of A or B along k (the same for every dtype)."""
ELEMENT_BYTES = {"fp8": 1, "int8": 1, "bf16": 2, "fp16": 2, "fp32": 4, "tf32": 4}
LEAST_TENSOR_ACTIVE_PERCENT = 1.0
"""Below it a kernel is not one that multiplies on the tensor cores."""
EFFICIENCIES = np.linspace(0.05, 1.0, 39)
"""Candidates for the two efficiency parameters of the wave model; both have a meaning between 0 and 1 only."""


@dataclass(frozen=True)
class Work:
    """What the formulas see of n cases; arrays of length n.

    ``compute_cycles``: operations / peak rate of the dtype on the whole chip; ``memory_cycles``: compulsory bytes
    / peak DRAM bandwidth; ``waves``: CTAs / CTAs that fit on the chip at once.
    """

    compute_cycles: np.ndarray
    memory_cycles: np.ndarray
    waves: np.ndarray

    def __getitem__(self, chosen: np.ndarray) -> Work:
        return Work(self.compute_cycles[chosen], self.memory_cycles[chosen], self.waves[chosen])


@dataclass(frozen=True)
class WaveModel:
    """cycles = ``overhead_cycles`` + max(compute / ``efficiency`` with whole waves, memory / ``bandwidth``)."""

    efficiency: float
    bandwidth: float
    overhead_cycles: float

    def cycles(self, work: Work) -> np.ndarray:
        """Predicted SM cycles of each case."""
        return np.asarray(_body(work, self.efficiency, self.bandwidth) + self.overhead_cycles)


def formula_predictions(measured: pd.DataFrame, fit_rows: pd.DataFrame, hw: HardwareConfig) -> Formulas:
    """Both formulas for every row of ``measured``; the wave model has its own parameters for each kernel family, fitted
    on ``fit_rows``. Empty if the chip's description lacks the peaks that they need."""
    if hw.missing_for_execution():
        return {}
    work, fit_work = work_of(measured, hw), work_of(fit_rows, hw)
    families, fit_families = _families(measured), _families(fit_rows)
    fit_cycles = numbers(fit_rows, "cycles")
    can_fit = _is_known(fit_work) & (fit_cycles > 0)
    waves = np.full(len(measured), np.nan)
    for family in sorted(set(families)):
        chosen = can_fit & (fit_families == family)
        if chosen.any():
            rows = _is_known(work) & (families == family)
            waves[rows] = fit_wave_model(fit_work[chosen], fit_cycles[chosen]).cycles(work[rows])
    return {"roofline": np.where(_is_known(work), roofline(work), np.nan), "wave model": waves}


def _families(frame: pd.DataFrame) -> np.ndarray:
    return np.asarray(labels(frame, "kernel"), dtype=object)


def _is_known(work: Work) -> np.ndarray:
    return np.asarray(np.isfinite(roofline(work)) & (work.waves > 0))


def work_of(measured: pd.DataFrame, hw: HardwareConfig) -> Work:
    """What the formulas see of the rows of a measured file (``flops``, ``dtype``, ``launch``, ``waves_per_sm``)."""
    sections = hw.execution_sections()
    flops = np.nan_to_num(numbers(measured, "flops"))
    on_tensor_cores = numbers(measured, "tensor_active_pct") > LEAST_TENSOR_ACTIVE_PERCENT
    rates = [
        peak_flops_per_cycle(hw, dtype, bool(is_tensor))
        for dtype, is_tensor in zip(labels(measured, "dtype", ""), on_tensor_cores, strict=True)
    ]
    bytes_per_cycle = sections.dram.peak_bytes_per_second / sections.clock.boost_hz
    moved = np.array([compulsory_bytes(launch) for launch in measured["launch"]])
    return Work(flops / np.array(rates), moved / bytes_per_cycle, numbers(measured, "waves_per_sm"))


def peak_flops_per_cycle(hw: HardwareConfig, dtype: str, on_tensor_cores: bool) -> float:
    """Peak operations of the whole chip per cycle: of the tensor cores at this dtype, or of the FMA pipes."""
    timing = hw.execution_sections().timing
    if on_tensor_cores and dtype in ELEMENT_BYTES:
        k = TENSOR_K_BYTES / ELEMENT_BYTES[dtype]
        per_sm = FLOPS_PER_FMA * TENSOR_ROWS * k * timing.tensor_async.columns_per_cycle
    else:
        lanes = hw.sm.n_subpartitions * hw.sm.warp_size
        per_sm = FLOPS_PER_FMA * lanes / timing.pipes["fma"].interval_cycles
    return per_sm * hw.sm.count


def compulsory_bytes(launch: str) -> float:
    """Bytes of all distinct buffers and tensors of a launch (JSON text): each moved once is the least traffic.

    NaN where the launch does not say (a malformed description, an unnamed element type).
    """
    try:
        arguments = json.loads(launch)["args"]
        sizes = dict(_operand_bytes(argument, i) for i, argument in enumerate(arguments) if _is_operand(argument))
    except (ValueError, KeyError, TypeError):
        return float("nan")
    return float(sum(sizes.values()))


def roofline(work: Work) -> np.ndarray:
    """max(compute, memory) in SM cycles: the classic lower bound, with nothing fitted."""
    return np.asarray(np.fmax(work.compute_cycles, work.memory_cycles))


def fit_wave_model(work: Work, measured_cycles: np.ndarray) -> WaveModel:
    """The three parameters with the least mean absolute relative error on these cases.

    Efficiency and bandwidth are searched on a grid; the best overhead for each pair is the weighted median of
    the residuals, which minimises the error exactly.
    """
    best, best_error = WaveModel(1.0, 1.0, 0.0), float("inf")
    for efficiency in EFFICIENCIES:
        for bandwidth in EFFICIENCIES:
            body = _body(work, efficiency, bandwidth)
            overhead = max(_weighted_median(measured_cycles - body, 1.0 / measured_cycles), 0.0)
            error = float(np.mean(np.abs(body + overhead - measured_cycles) / measured_cycles))
            if error < best_error:
                best, best_error = WaveModel(float(efficiency), float(bandwidth), overhead), error
    return best


def _body(work: Work, efficiency: float, bandwidth: float) -> np.ndarray:
    whole_waves = np.ceil(work.waves) / work.waves
    return np.asarray(np.fmax(work.compute_cycles * whole_waves / efficiency, work.memory_cycles / bandwidth))


def _weighted_median(values: np.ndarray, weights: np.ndarray) -> float:
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(total, total[-1] / 2)])


def _is_operand(argument: Mapping) -> bool:
    return "buffer" in argument or "tensormap" in argument


def _operand_bytes(argument: Mapping, position: int) -> tuple[str, float]:
    """(name, bytes) of a buffer or tensor argument; the same name is the same memory."""
    if "buffer" in argument:
        return str(argument.get("name", position)), float(argument["buffer"])
    tensor = argument["tensormap"]
    outer = [stride * size for stride, size in zip(tensor["strides_bytes"], tensor["shape"][1:], strict=False)]
    return str(tensor.get("name", position)), float(outer[-1])
