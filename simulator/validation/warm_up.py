"""Compile the simulator once per version of its source: the front end and the engine at the same time.

The compiled code lies on disk (``simulator.numba_cache``); every later process loads it in a second or two.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, wait
from pathlib import Path

import numpy as np

from simulator.data_files import data_folder
from simulator.trace.kernel_trace import (
    LANES,
    NO_SCOREBOARD,
    EventTable,
    KernelTrace,
    Launch,
    Origin,
    StaticTable,
    Stream,
)

EXAMPLE = "softmax_bf16"
"""A small compiled kernel of this installation; any one makes the front end compile all of itself."""
MARKER = "complete"


def ensure_compiled(hw: str, announce: Callable[[], None] = lambda: None) -> None:
    """Compile what is not compiled yet; ``announce`` is called first if that takes long. Never fails: what goes
    wrong here goes wrong again, and is told, where it is used."""
    folder = os.environ.get("NUMBA_CACHE_DIR")
    if not folder or os.environ.get("NUMBA_DISABLE_JIT") == "1" or (Path(folder) / MARKER).exists():
        return
    announce()
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        done = wait([pool.submit(_compile_front_end), pool.submit(_compile_engine, hw)]).done
    if not any(future.exception() for future in done):
        (Path(folder) / MARKER).touch()


def _compile_front_end() -> None:
    from simulator.frontends.sass.build import build_trace
    from simulator.frontends.sass.launch import load_launch

    folder = data_folder("kernel_traces") / "cubins"
    build_trace(folder / f"{EXAMPLE}.cubin", load_launch(folder / f"{EXAMPLE}.yaml"))


def _compile_engine(hw: str) -> None:
    from simulator.hw.loader import load_hw
    from simulator.projection.run import project_trace

    chip = load_hw(hw)
    project_trace(empty_kernel(chip.identity.instruction_set), chip)


def empty_kernel(arch: str) -> KernelTrace:
    """One warp that exits: the smallest launch."""
    none = np.full((1, 3), -1, np.int16)
    zero, no_board = np.zeros(1, np.int32), np.full(1, NO_SCOREBOARD, np.int32)
    static = StaticTable(
        address=zero,
        opcode=("EXIT",),
        text=("EXIT",),
        stall=zero + 5,
        yield_hint=zero,
        write_scoreboard=no_board,
        read_scoreboard=no_board,
        wait_mask=zero,
        reuse=zero,
        width_bytes=zero,
        argument=np.zeros((1, 4), np.int32),
        registers_written=none,
        registers_read=none,
    )
    empty, vector = np.zeros(0, np.int32), np.zeros((0, 5), np.int32)
    long = np.zeros(0, np.int64)
    events = EventTable(empty, long, empty, empty, empty, vector, vector, long, empty, empty, empty)
    return KernelTrace(
        kernel="empty",
        arch=arch,
        launch=Launch((1, 1, 1), (LANES, 1, 1)),
        registers_per_thread=16,
        static_smem_bytes=0,
        local_bytes_per_thread=0,
        static=static,
        streams=((Stream(zero, np.full(1, LANES, np.uint8), zero - 1),),),
        events=events,
        lane_patterns=np.zeros((0, LANES), np.int32),
        cta_class=zero,
        cta_base=np.zeros((1, 0), np.int64),
        tensor_maps=(),
        buffers=(),
        origin=Origin("built in", "0" * 64, "simulator"),
    )
