"""Launch description: kernel, grid, block, cluster, dynamic shared memory, arguments in parameter order.

One document form for JSON, YAML and command-line flags::

    kernel: matmul                 # may be left out for a cubin with one kernel
    grid: [1024, 1, 1]
    block: [128, 1, 1]
    cluster: [1, 1, 1]
    dynamic_smem: 98304            # bytes
    args:
      - {buffer: 67108864, name: a, contents: "zeros"}    # device pointer; the same name is the same buffer
      - {i32: 8192}                                       # i8 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64
      - {bytes: "00ff10"}                                 # a structure by value, hexadecimal
      - tensormap: {name: b, dtype: bf16, shape: [8192, 8192], strides_bytes: [16384], box: [64, 128], swizzle: 128B,
                    l2_promotion: 128B}                     # none, 64B, 128B, 256B; 128B where it is left out
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BeforeValidator, Field, ValidationError, model_validator

from simulator.errors import UserError
from simulator.frontends.sass.arguments import SCALARS, Argument, Count, Document, parse_argument

AXES = 3
# Limits of the launch interface, the same on every supported architecture (CUDA C++ Programming Guide, technical
# specifications per compute capability; the cluster limit is that of a non-portable size).
MAX_THREADS = 1024
MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = (2**31 - 1, 65535, 65535)
MAX_CLUSTER_CTAS = 16
UNITS = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def _pad_axes(value: Any) -> Any:
    """x or [x, y] -> [x, y, z] with ones."""
    axes = [value] if isinstance(value, int) else value
    return [*axes, *[1] * (AXES - len(axes))] if isinstance(axes, list | tuple) else value


def _parse_arguments(value: Any) -> list[Argument]:
    if not isinstance(value, list | tuple):
        raise ValueError("args must be a list of arguments in parameter order")
    arguments = []
    for position, entry in enumerate(value):
        try:
            arguments.append(parse_argument(entry))
        except ValidationError as error:
            raise ValueError(f"argument {position}: {_first_sentence(error)}") from None
        except ValueError as error:
            raise ValueError(f"argument {position}: {error}") from None
    return arguments


Shape = Annotated[tuple[Count, Count, Count], BeforeValidator(_pad_axes)]


class LaunchSpec(Document):
    """A validated launch description. Shapes are (x, y, z); ``dynamic_smem`` in bytes."""

    kernel: str | None = None
    grid: Shape
    block: Shape
    cluster: Shape = (1, 1, 1)
    dynamic_smem: int = Field(default=0, strict=True, ge=0)
    args: Annotated[tuple[Argument, ...], BeforeValidator(_parse_arguments)] = ()

    @property
    def n_threads(self) -> int:
        """Threads of a CTA."""
        return self.block[0] * self.block[1] * self.block[2]

    @model_validator(mode="after")
    def _within_limits(self) -> LaunchSpec:
        if self.n_threads > MAX_THREADS:
            raise ValueError(
                f"block {_text(self.block)} has {self.n_threads:,} threads; a CTA has at most {MAX_THREADS:,}"
            )
        for name, shape, limits in (("block", self.block, MAX_BLOCK), ("grid", self.grid, MAX_GRID)):
            if any(extent > limit for extent, limit in zip(shape, limits, strict=True)):
                raise ValueError(f"{name} {_text(shape)} exceeds the largest {name}, {_text(limits)}")
        if self.cluster[0] * self.cluster[1] * self.cluster[2] > MAX_CLUSTER_CTAS:
            raise ValueError(f"cluster {_text(self.cluster)} has more than {MAX_CLUSTER_CTAS} CTAs")
        if any(extent % part for extent, part in zip(self.grid, self.cluster, strict=True)):
            raise ValueError(f"grid {_text(self.grid)} is not a multiple of the cluster {_text(self.cluster)}")
        return self


def parse_launch(document: Mapping[str, Any], source: str = "launch") -> LaunchSpec:
    """A launch from its document form. UserError, one sentence that names ``source`` and the field."""
    if not isinstance(document, Mapping):
        raise UserError(f"{source}: a launch description is a mapping with grid, block and args")
    try:
        return LaunchSpec.model_validate(dict(document))
    except ValidationError as error:
        raise UserError(f"{source}: {_first_sentence(error)}") from None


def load_launch(path: str | Path) -> LaunchSpec:
    """A launch from a YAML or JSON file. UserError when it cannot be read or is not valid."""
    try:
        text = Path(path).read_text()
        document = json.loads(text) if Path(path).suffix == ".json" else yaml.safe_load(text)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, yaml.YAMLError) as error:
        raise UserError(f"{path}: not a YAML or JSON document ({str(error).splitlines()[0]})") from None
    return parse_launch(document, str(path))


def launch_from_flags(
    grid: str,
    block: str,
    args: Sequence[str] = (),
    kernel: str | None = None,
    cluster: str = "1",
    smem: int = 0,
) -> LaunchSpec:
    """A launch from command-line texts: shapes ``X,Y,Z`` and one text per argument, see ``parse_flag_argument``."""
    document: dict[str, Any] = {"dynamic_smem": smem, "args": [parse_flag_argument(text) for text in args]}
    for name, text in (("grid", grid), ("block", block), ("cluster", cluster)):
        document[name] = _flag_shape(name, text)
    if kernel is not None:
        document["kernel"] = kernel
    return parse_launch(document, "command line")


def parse_flag_argument(text: str) -> dict[str, Any]:
    """One --arg: ``i32:8192``, ``f32:0.5``, ``bytes:00ff``, ``buffer:NAME:BYTES[:CONTENTS]`` (64MiB works) or
    ``tensormap:NAME:DTYPE:SHAPE:BOX[:SWIZZLE[:STRIDES]]`` with extents such as 8192x4096, innermost first."""
    kind, *fields = text.split(":")
    try:
        if kind in SCALARS and len(fields) == 1:
            return {kind: float(fields[0]) if kind.startswith("f") else int(fields[0], 0)}
        if kind == "bytes" and len(fields) == 1:
            return {"bytes": fields[0]}
        if kind == "buffer" and len(fields) >= 2:
            buffer: dict[str, Any] = {"buffer": _size(fields[1]), "name": fields[0]}
            return buffer | ({"contents": ":".join(fields[2:])} if len(fields) > 2 else {})
        if kind == "tensormap" and 4 <= len(fields) <= 6:
            return {"tensormap": _flag_tensor_map(fields)}
    except ValueError:
        pass
    raise UserError(
        f"--arg {text}: write i32:8192, f32:0.5, buffer:NAME:BYTES or tensormap:NAME:DTYPE:SHAPE:BOX:SWIZZLE:STRIDES"
    )


def _flag_tensor_map(fields: list[str]) -> dict[str, Any]:
    document: dict[str, Any] = {"name": fields[0], "dtype": fields[1]}
    document |= {"shape": _extents(fields[2]), "box": _extents(fields[3])}
    if len(fields) > 4:
        document["swizzle"] = fields[4]
    if len(fields) > 5:
        document["strides_bytes"] = _extents(fields[5])
    return document


def _extents(text: str) -> list[int]:
    return [int(part) for part in text.split("x")]


def _flag_shape(name: str, text: str) -> list[int]:
    try:
        shape = [int(part) for part in text.split(",")]
    except ValueError:
        shape = []
    if not 1 <= len(shape) <= AXES:
        raise UserError(f"--{name} {text}: write one to three whole numbers, such as 128 or 16,8,1")
    return shape


def _size(text: str) -> int:
    found = re.fullmatch(r"(0x[0-9a-fA-F]+|\d+)(KiB|MiB|GiB|)", text)
    if found is None:
        raise ValueError(text)
    return int(found[1], 0) * UNITS[found[2]]


def _text(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape))


def _first_sentence(error: ValidationError) -> str:
    """One sentence of the first problem that pydantic found."""
    problem = error.errors()[0]
    where = ".".join(str(part) for part in problem["loc"])
    message = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "value_error":
        return message
    given = "" if problem["type"] == "missing" else f", not {problem['input']!r}"
    return f"{where}: {message[0].lower()}{message[1:]}{given}"
