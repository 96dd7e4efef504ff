"""A chip and kernels whose times are formulas: what a study says of them is known beforehand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from simulator.hw.config import HardwareConfig
from simulator.projection.projection import Projection
from simulator.trace.io import save_trace
from simulator.trace.kernel_trace import KernelTrace
from simulator.validation.warm_up import empty_kernel

ARCH = "sm_90a"
KERNELS = ("copy", "math", "mixed")
CLASSES = {"copy": "memory", "math": "tensor", "mixed": "tensor"}
DRAM = "timing.dram.read_bytes_per_second"
SMS = "sm.count"
L2 = "l2.capacity_bytes"
UNFELT = "timing.barrier.cluster_barrier_cycles"


def time_us(kernel: str, chip: HardwareConfig) -> float:
    """``copy`` feels DRAM alone, ``math`` the number of SMs alone, ``mixed`` both and the L2."""
    assert chip.timing is not None and chip.l2 is not None
    copy = 4.52e14 / chip.timing.dram.read_bytes_per_second
    math = 13_200 / chip.sm.count
    mixed = 0.5 * copy + 0.4 * math + 10 * (62_914_560 / chip.l2.capacity_bytes) ** 0.5
    return {"copy": copy, "math": math, "mixed": mixed}[kernel]


def project(trace: KernelTrace, chip: HardwareConfig, *unused: Any, **unused_options: Any) -> Projection:
    """In the place of ``project_trace``."""
    time = time_us(trace.kernel, chip)
    share = 0.5 if trace.kernel == "math" else min(0.9, 0.4 * time / 100)
    return Projection(
        kernel=trace.kernel,
        hw=chip.name,
        hw_digest=chip.digest(),
        cycles=time * 1755,
        time_us=time,
        clock_mhz=1755.0,
        bound_by="dram" if trace.kernel == "copy" else "issue",
        bounds={"dram": time * 1000, "issue": time * 900, "tensor": time * 800 * (trace.kernel != "copy")},
        occupancy={"occupancy": 0.5, "ctas_per_sm": 2, "limiters": ["registers"]},
        waves=2.0,
        tail_fraction=0.1,
        warp_instructions=1000,
        smem={"wavefronts": 640, "bank_conflicts": 64},
        bytes={"l2_read": 10_000, "l2_write": 1000, "dram_read": 5000, "dram_write": 500},
        stalls={"selected": 0.1, "long_scoreboard": share, "wait": 0.9 - share},
        weakest_inputs=[],
        simulated={"fraction": 1.0, "seconds": 0.0},
    )


def save_kernels(folder: Path) -> None:
    """The kernels as traces ``<name>.npz``."""
    for name in KERNELS:
        save_trace(replace(empty_kernel(ARCH), kernel=name), folder / f"{name}.npz")


def document(**changes: Any) -> dict[str, Any]:
    """A study of all three kernels, with ``changes``."""
    study: dict[str, Any] = {
        "name": "closed form",
        "question": "Which of three parameters is worth its cost?",
        "base": "h200",
        "kernels": [{"trace": f"{name}.npz", "weight": weight} for name, weight in zip(KERNELS, (2, 1, 1), strict=True)],
        "axes": [
            {"name": "DRAM", "path": DRAM, "values": ["x1", "x2", "x4", "x8"]},
            {"name": "L2", "path": L2, "values": ["x1", "x4"]},
        ],
        "scenarios": [
            {"name": "HBM at 2x", "set": {DRAM: "x2"}},
            {"name": "and more SMs", "after": "HBM at 2x", "set": {SMS: 264}},
        ],
        "proxies": {"cost": f"1 + {DRAM} / base.{DRAM} + 0.5 * {L2} / base.{L2}"},
        "objectives": ["time", "time * cost"],
        "sensitivity": {"parameters": [DRAM, SMS, L2, UNFELT]},
    }
    return study | changes
