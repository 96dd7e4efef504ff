"""How fast is the engine? Warp instructions per second on one core, beside the same source without compilation.

Run by ``make bench``; not a test. Traces are built (or taken from the cache) before anything is timed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numba

from simulator.data_files import data_folder
from simulator.device.machine import Run
from simulator.device.simulate import simulate
from simulator.frontends.sass.launch import load_launch
from simulator.hw.loader import load_hw
from simulator.projection.plan import DEFAULT_INSTRUCTION_BUDGET
from simulator.projection.run import project_trace
from simulator.validation.traces import cached_trace

CHIP = "h200"
KERNELS = ("gemm_tma_bf16", "gemm_pointers_bf16", "attention_bf16", "softmax_bf16", "layernorm_bf16", "row_sum_fp32")
REFERENCE_KERNEL = "softmax_bf16"
REFERENCE_BUDGET = 20_000
"""Warp instructions that uncompiled Python replays in a few seconds."""
N_REPEATS = 4


@dataclass(frozen=True)
class Speed:
    """Best of several replays: warp instructions issued, processor seconds of the replay alone."""

    kernel: str
    instructions: int
    seconds: float

    @property
    def rate(self) -> float:
        """Warp instructions per second."""
        return self.instructions / self.seconds


def measure(name: str, budget: int, n_repeats: int) -> Speed:
    """Project one example kernel ``n_repeats`` times, and keep the fastest replay inside."""
    folder = data_folder("kernel_traces") / "cubins"
    trace = cached_trace(folder / f"{name}.cubin", load_launch(folder / f"{name}.yaml"))
    replays: list[Speed] = []

    def timed(*arguments: Any, **named: Any) -> Run:
        started = time.process_time()
        found = simulate(*arguments, **named)
        replays.append(Speed(name, found.issued, time.process_time() - started))
        return found

    with patch("simulator.projection.run.simulate", timed):
        for _ in range(n_repeats):
            project_trace(trace, load_hw(CHIP), budget, explains=False)
    return max(replays, key=lambda speed: speed.rate)


def uncompiled() -> Speed:
    """The reference kernel in a process of its own, without compilation."""
    command = [sys.executable, __file__, "--one", REFERENCE_KERNEL, "--budget", str(REFERENCE_BUDGET)]
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return Speed(**json.loads(result.stdout))


def machine() -> str:
    """Processor name, for the record."""
    info = Path("/proc/cpuinfo")
    names = [line for line in info.read_text().splitlines() if line.startswith("model name")] if info.exists() else []
    return names[0].partition(":")[2].strip() if names else platform.processor()


def main() -> None:
    """Print the table, or with ``--one`` the JSON of a single kernel."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", choices=KERNELS)
    parser.add_argument("--budget", type=int, default=DEFAULT_INSTRUCTION_BUDGET)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(asdict(measure(options.one, options.budget, 1))))
        return
    print(f"{machine()}, one core, numba {numba.__version__}; processor time, best of {N_REPEATS} replays after warm-up\n")
    print(f"{'kernel':22} {'instructions':>14} {'seconds':>9} {'million warp instructions/s':>29}")
    speeds = [measure(name, options.budget, N_REPEATS) for name in KERNELS]
    for speed in speeds:
        print(f"{speed.kernel:22} {speed.instructions:14,} {speed.seconds:9.3f} {speed.rate / 1e6:29.2f}")
    total = sum(speed.instructions for speed in speeds) / sum(speed.seconds for speed in speeds)
    print(f"{'all':22} {'':14} {'':9} {total / 1e6:29.2f}")
    reference, compiled = uncompiled(), next(speed for speed in speeds if speed.kernel == REFERENCE_KERNEL)
    print(f"\nThe same source without compilation: {reference.rate / 1e6:.4f} on {REFERENCE_KERNEL}")
    print(f"Compilation makes it {compiled.rate / reference.rate:,.0f} times faster")
    print(f"Peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
