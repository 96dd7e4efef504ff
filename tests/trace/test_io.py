"""Does a trace survive its file, and is every other file refused with a sentence?"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from simulator.errors import UserError
from simulator.trace.compress import compress_streams, expand_streams, find_loops
from simulator.trace.io import load_trace, save_trace
from simulator.trace.kernel_trace import (
    FORMAT_VERSION,
    Buffer,
    EventTable,
    KernelTrace,
    Launch,
    Origin,
    StaticTable,
    Stream,
    TensorMap,
)


def stream_of(instructions: list[int], events: list[int]) -> Stream:
    n = len(instructions)
    return Stream(np.array(instructions, np.int32), np.full(n, 32, np.uint8), np.array(events, np.int32))


def small_trace() -> KernelTrace:
    loop = [0, *[1, 2, 3] * 50, 4]
    streams = ((stream_of(loop, [-1, *list(range(150)), -1]), stream_of(loop, [-1] * 152)),)
    n = 150
    column = np.arange(n, dtype=np.int32)
    events = EventTable(
        pattern=column % 2,
        address=np.arange(n, dtype=np.int64) * 4096,
        shared_address=column * 1024,
        shared_pattern=column * 0 - 1,
        tensor=column * 0 - 1,
        coordinate=np.stack([column] * 5, 1),
        base=np.stack([column * 0] * 5, 1),
        count=np.arange(n, dtype=np.int64),
        mbarrier=column * 0 - 1,
        parity=column % 2,
        cta_mask=column * 0,
    )
    five = np.arange(5)
    static = StaticTable(
        address=five * 16,
        opcode=("MOV", "LDG.E", "FADD", "BRA", "EXIT"),
        text=("MOV R1, c[0x0][0x28]", "LDG.E R2, [R4]", "FADD R3, R2, R3", "BRA 0x10", "EXIT"),
        stall=five,
        yield_hint=five * 0,
        write_scoreboard=five * 0 + 7,
        read_scoreboard=five * 0 + 7,
        wait_mask=five * 0,
        reuse=five * 0,
        width_bytes=five * 0,
        argument=np.zeros((5, 4), np.int32),
        registers_written=np.full((5, 3), -1, np.int16),
        registers_read=np.full((5, 3), -1, np.int16),
    )
    return KernelTrace(
        kernel="small",
        arch="sm_90a",
        launch=Launch((4, 1, 1), (64, 1, 1)),
        registers_per_thread=32,
        static_smem_bytes=0,
        local_bytes_per_thread=0,
        static=static,
        streams=streams,
        events=events,
        lane_patterns=np.zeros((2, 32), np.int32),
        cta_class=np.zeros(4, np.int32),
        cta_base=np.arange(4, dtype=np.int64)[:, None] * 512,
        tensor_maps=(TensorMap("a", 2, (64, 64), (128,), (64, 8), 128, 1 << 30),),
        buffers=(Buffer("x", 1 << 31, 4096),),
        origin=Origin("small.cubin", "0" * 64, "test"),
        warnings=("one",),
    )


def test_does_a_trace_come_back_as_it_was(tmp_path: Path) -> None:
    trace = small_trace()
    save_trace(trace, tmp_path / "t.npz")
    again = load_trace(tmp_path / "t.npz")
    for field in dataclasses.fields(EventTable):
        np.testing.assert_array_equal(getattr(trace.events, field.name), getattr(again.events, field.name))
    for before, after in zip(trace.streams[0], again.streams[0], strict=True):
        np.testing.assert_array_equal(before.instruction, after.instruction)
        np.testing.assert_array_equal(before.event, after.event)
    np.testing.assert_array_equal(trace.cta_base, again.cta_base)
    assert (again.launch, again.tensor_maps, again.buffers, again.origin) == (
        trace.launch,
        trace.tensor_maps,
        trace.buffers,
        trace.origin,
    )
    assert again.static.text == trace.static.text and again.warnings == trace.warnings


def test_is_a_loop_stored_once() -> None:
    code = np.array([0, *[1, 2, 3] * 50, 4], np.int64) << 8
    assert any((length, repeats) == (3, 49) for _, length, repeats in find_loops(code))
    assert sum(length for _, length, _ in find_loops(code)) < 12


@pytest.mark.parametrize("seed", range(20))
def test_is_compression_lossless(seed: int) -> None:
    random = np.random.default_rng(seed)
    parts = [np.tile(random.integers(0, 9, random.integers(1, 6)), random.integers(1, 9)) for _ in range(6)]
    instruction = np.concatenate(parts).astype(np.int32)
    active = random.integers(0, 33, len(instruction)).astype(np.uint8) if seed % 2 else np.full(len(instruction), 32, np.uint8)
    stream = Stream(instruction, active, random.integers(-1, 40, len(instruction)).astype(np.int32))
    (again,) = expand_streams(compress_streams([stream]))
    np.testing.assert_array_equal(again.instruction, stream.instruction)
    np.testing.assert_array_equal(again.active, stream.active)
    np.testing.assert_array_equal(again.event, stream.event)


def test_is_a_newer_version_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    save_trace(small_trace(), path)
    arrays = dict(np.load(path))
    header = json.loads(arrays["header"].tobytes())
    header["version"] = FORMAT_VERSION + 1
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    np.savez(path, **arrays)
    with pytest.raises(UserError, match=f"version {FORMAT_VERSION + 1}.*up to {FORMAT_VERSION}"):
        load_trace(path)


@pytest.mark.parametrize("content", [b"not a trace", b"PK\x03\x04 damaged", b""])
def test_is_a_foreign_file_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "t.npz"
    path.write_bytes(content)
    with pytest.raises(UserError, match="not a kernelcast trace"):
        load_trace(path)


def test_is_a_missing_file_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"absent\.npz does not exist"):
        load_trace(tmp_path / "absent.npz")
