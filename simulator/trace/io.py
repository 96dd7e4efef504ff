"""Trace files: one npz archive with a JSON header. Format in kernel_traces/README.md."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from simulator.errors import UserError
from simulator.trace.compress import CompressedStreams, compress_streams, expand_streams
from simulator.trace.kernel_trace import (
    FORMAT_VERSION,
    Buffer,
    EventTable,
    KernelTrace,
    Launch,
    Origin,
    StaticTable,
    TensorMap,
)

FORMAT_NAME = "kernelcast-trace"
_STATIC_TEXT = ("opcode", "text")
_ORDERED = ("address", "count", "shared_address")
"""Event columns that are stored as differences from row to row: they advance evenly."""


def save_trace(trace: KernelTrace, path: str | Path) -> None:
    """Write a trace; the file appears whole or not at all."""
    arrays = _arrays(trace)
    arrays["header"] = np.frombuffer(json.dumps(_header(trace)).encode(), np.uint8)
    target = Path(path)
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".npz")
    except OSError as error:
        raise UserError(f"trace {path} cannot be written ({error.strerror})") from error
    try:
        with os.fdopen(handle, "wb") as stream:
            np.savez_compressed(stream, **arrays)  # type: ignore[arg-type]
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def load_trace(path: str | Path) -> KernelTrace:
    """Read a trace. UserError when the file is missing, damaged, foreign, or of a newer version."""
    if not Path(path).is_file():
        raise UserError(f"trace {path} does not exist")
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        header = json.loads(arrays.pop("header").tobytes())
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not a kernelcast trace, or is damaged") from error
    if header.get("format") != FORMAT_NAME:
        raise UserError(f"{path} is not a kernelcast trace")
    if header["version"] > FORMAT_VERSION:
        raise UserError(
            f"trace {path} has format version {header['version']}, this kernelcast reads up to {FORMAT_VERSION}: update it"
        )
    try:
        return _assemble(header, arrays)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise UserError(f"trace {path} is damaged: {error}") from error


def trace_digest(trace: KernelTrace) -> str:
    """SHA-256 (hex) of what a trace executes: equal for equal traces, wherever and by whichever tool they were made."""
    header = _header(trace)
    del header["origin"]
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name, column in sorted(_arrays(trace).items()):
        digest.update(f"{name} {column.dtype.str} {column.shape}".encode())
        digest.update(np.ascontiguousarray(column).tobytes())
    return digest.hexdigest()


def _header(trace: KernelTrace) -> dict[str, Any]:
    return {
        "format": FORMAT_NAME,
        "version": FORMAT_VERSION,
        "kernel": trace.kernel,
        "arch": trace.arch,
        "launch": dataclasses.asdict(trace.launch),
        "registers_per_thread": trace.registers_per_thread,
        "static_smem_bytes": trace.static_smem_bytes,
        "local_bytes_per_thread": trace.local_bytes_per_thread,
        "origin": dataclasses.asdict(trace.origin),
        "warnings": list(trace.warnings),
        "tensor_maps": [_tensor_map(t) for t in trace.tensor_maps],
        "buffers": [dataclasses.asdict(b) for b in trace.buffers],
        "static": {name: list(getattr(trace.static, name)) for name in _STATIC_TEXT},
        "n_warps": [len(warps) for warps in trace.streams],
    }


def _tensor_map(found: TensorMap) -> dict[str, Any]:
    """As JSON; a share of 1 is left out, so that files and digests of tiled copies stay what they were."""
    values = dataclasses.asdict(found)
    if found.row_share == 1:
        del values["row_share"]
    return values


def _arrays(trace: KernelTrace) -> dict[str, np.ndarray]:
    arrays = {}
    for field in dataclasses.fields(StaticTable):
        if field.name not in _STATIC_TEXT:
            arrays[f"static.{field.name}"] = getattr(trace.static, field.name)
    for field in dataclasses.fields(EventTable):
        column = getattr(trace.events, field.name)
        if field.name in _ORDERED:
            column = np.diff(column, prepend=column.dtype.type(0)).astype(column.dtype)
        arrays[f"event.{field.name}"] = column
    streams = compress_streams([s for warps in trace.streams for s in warps])
    for field in dataclasses.fields(CompressedStreams):
        arrays[f"stream.{field.name}"] = getattr(streams, field.name)
    arrays["lane_patterns"] = trace.lane_patterns
    arrays["cta_class"] = trace.cta_class
    arrays["cta_base"] = np.diff(trace.cta_base, axis=0, prepend=np.zeros((1, trace.cta_base.shape[1]), np.int64))
    return arrays


def _assemble(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> KernelTrace:
    def group(prefix: str) -> dict[str, np.ndarray]:
        return {name.removeprefix(prefix): column for name, column in arrays.items() if name.startswith(prefix)}

    static = group("static.") | {name: tuple(header["static"][name]) for name in _STATIC_TEXT}
    events = group("event.")
    for name in _ORDERED:
        events[name] = np.cumsum(events[name], dtype=events[name].dtype)
    streams = iter(expand_streams(CompressedStreams(**group("stream."))))
    return KernelTrace(
        kernel=header["kernel"],
        arch=header["arch"],
        launch=Launch(**_with_tuples(header["launch"])),
        registers_per_thread=header["registers_per_thread"],
        static_smem_bytes=header["static_smem_bytes"],
        local_bytes_per_thread=header["local_bytes_per_thread"],
        static=StaticTable(**static),  # type: ignore[arg-type]
        streams=tuple(tuple(next(streams) for _ in range(n)) for n in header["n_warps"]),
        events=EventTable(**events),
        lane_patterns=arrays["lane_patterns"],
        cta_class=arrays["cta_class"],
        cta_base=np.cumsum(arrays["cta_base"], axis=0, dtype=np.int64),
        tensor_maps=tuple(TensorMap(**_with_tuples(t)) for t in header["tensor_maps"]),
        buffers=tuple(Buffer(**b) for b in header["buffers"]),
        origin=Origin(**header["origin"]),
        warnings=tuple(header["warnings"]),
    )


def _with_tuples(fields: dict[str, Any]) -> Any:
    """JSON lists back to tuples."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
