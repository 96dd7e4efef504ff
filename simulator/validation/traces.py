"""The trace of a compiled kernel, from the cache where this builder has made it before."""

from __future__ import annotations

import json
from pathlib import Path

from simulator.errors import UserError
from simulator.frontends.sass.build import build_trace
from simulator.frontends.sass.launch import LaunchSpec, parse_launch
from simulator.trace.io import load_trace, save_trace
from simulator.trace.kernel_trace import KernelTrace
from simulator.validation.cache import trace_path

FILE_CONTENTS = "npy "
"""Buffer contents that are read from another file, whose digest the cache does not know."""


def launch_from_json(text: str) -> LaunchSpec:
    """The launch in one cell of a measured file; UserError when it is not valid."""
    try:
        document = json.loads(text)
    except ValueError as error:
        raise UserError(f"the launch description is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise UserError("the launch description is not a JSON object")
    return parse_launch(document)


def cached_trace(cubin: Path, launch: LaunchSpec, kernel: str | None = None, allow_unknown: bool = False) -> KernelTrace:
    """As ``build_trace``; a trace of the same cubin, launch and options is built once per version of the builder."""
    path = _cache_entry(cubin, launch, kernel, allow_unknown)
    if path is not None and path.is_file():
        return load_trace(path)
    trace = build_trace(cubin, launch, kernel=kernel, allow_unknown=allow_unknown)
    if path is not None:
        save_trace(trace, path)
    return trace


def _cache_entry(cubin: Path, launch: LaunchSpec, kernel: str | None, allow_unknown: bool) -> Path | None:
    canonical = launch.model_dump_json()
    if FILE_CONTENTS in canonical:
        return None
    try:
        content = cubin.read_bytes()
    except OSError as error:
        raise UserError(f"cubin {cubin} cannot be read: {error.strerror}") from error
    return trace_path(content, canonical, f"{kernel} {allow_unknown}")
