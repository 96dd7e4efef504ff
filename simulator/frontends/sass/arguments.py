"""Kernel arguments of a launch description: scalar, structure, buffer, tensor map.

The document forms are ``{i32: 8192}``, ``{bytes: "00ff"}``, ``{buffer: 4096, name: a}`` and ``{tensormap: {...}}``.
"""

from __future__ import annotations

import struct
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

SCALARS = {
    "i8": "<b", "i16": "<h", "i32": "<i", "i64": "<q", "u8": "<B", "u16": "<H", "u32": "<I", "u64": "<Q",
    "f16": "<e", "f32": "<f", "f64": "<d",
}
"""Scalar kinds with their packing."""
DTYPE_BYTES = {
    dtype: size
    for size, dtypes in (
        (1, "fp8 e4m3 e5m2 i8 u8 int8 uint8"), (2, "bf16 fp16 f16 bfloat16 float16 i16 u16 int16 uint16"),
        (4, "fp32 f32 tf32 float32 i32 u32 int32 uint32"), (8, "fp64 f64 float64 i64 u64 int64 uint64"),
    )
    for dtype in dtypes.split()
}
SWIZZLE_BYTES = {"none": 0, "32B": 32, "64B": 64, "128B": 128}
PROMOTION_BYTES = {"none": 0, "64B": 64, "128B": 128, "256B": 256}
TENSOR_MAP_BYTES = 128
POINTER_BYTES = 8
# Limits of the tensor map encoding (driver API, cuTensorMapEncodeTiled).
MAX_RANK = 5
MAX_BOX = 256
STRIDE_GRANULE_BYTES = 16

Count = Annotated[int, Field(strict=True, ge=1)]


class Document(BaseModel):
    """Frozen part of a launch description; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=True)


class Scalar(Document):
    """A number by value; ``kind`` is a key of SCALARS."""

    kind: str
    value: int | float

    @model_validator(mode="after")
    def _fits(self) -> Scalar:
        self.encode()
        return self

    def encode(self) -> bytes:
        """Little-endian bytes. ValueError when the value does not fit."""
        try:
            return struct.pack(SCALARS[self.kind], self.value)
        except (struct.error, OverflowError):
            raise ValueError(f"{self.value!r} does not fit {self.kind}") from None

    @property
    def n_bytes(self) -> int:
        return struct.calcsize(SCALARS[self.kind])

    def __str__(self) -> str:
        return f"{self.kind} {self.value}"


class Structure(Document):
    """A structure by value, as hexadecimal text."""

    hexadecimal: str = Field(pattern=r"^([0-9a-fA-F]{2})+$")

    def encode(self) -> bytes:
        """The bytes."""
        return bytes.fromhex(self.hexadecimal)

    @property
    def n_bytes(self) -> int:
        return len(self.hexadecimal) // 2

    def __str__(self) -> str:
        return f"structure of {self.n_bytes} bytes"


class DeviceBuffer(Document):
    """A pointer into a global allocation of ``size`` bytes; arguments with the same name share it. ``offset``: bytes
    from the allocation's start to the pointer. ``contents``: how the buffer was filled (see contents.py)."""

    size: Count
    name: str = Field(min_length=1)
    offset: int = Field(default=0, strict=True, ge=0)
    contents: str | None = None

    @property
    def n_bytes(self) -> int:
        return POINTER_BYTES

    def __str__(self) -> str:
        return f"buffer {self.name}"


class TiledMap(Document):
    """A tiled tensor map by value. ``shape`` and ``box`` in elements, innermost first; ``strides_bytes`` of dimensions
    1.., dense when left out; ``swizzle`` is a key of SWIZZLE_BYTES, ``l2_promotion`` of PROMOTION_BYTES."""

    name: str = Field(min_length=1)
    dtype: str
    shape: tuple[Count, ...] = Field(min_length=1, max_length=MAX_RANK)
    box: tuple[Count, ...]
    strides_bytes: tuple[Count, ...] | None = None
    swizzle: str = "none"
    interleave: str = "none"
    l2_promotion: str = "128B"
    contents: str | None = None

    @model_validator(mode="after")
    def _consistent(self) -> TiledMap:
        if self.dtype not in DTYPE_BYTES:
            raise ValueError(f"dtype '{self.dtype}' is none of {', '.join(DTYPE_BYTES)}")
        if self.swizzle not in SWIZZLE_BYTES:
            raise ValueError(f"swizzle '{self.swizzle}' is none of {', '.join(SWIZZLE_BYTES)}")
        if self.l2_promotion not in PROMOTION_BYTES:
            raise ValueError(f"l2_promotion '{self.l2_promotion}' is none of {', '.join(PROMOTION_BYTES)}")
        if self.interleave != "none":
            raise ValueError(f"interleave '{self.interleave}' is not supported, only none")
        rank = len(self.shape)
        if len(self.box) != rank or len(self.strides) != rank - 1:
            raise ValueError(f"shape has {rank} dimensions, so box needs {rank} values and strides_bytes {rank - 1}")
        if max(self.box) > MAX_BOX:
            raise ValueError(f"box {list(self.box)} exceeds {MAX_BOX} elements in a dimension")
        if any(stride % STRIDE_GRANULE_BYTES for stride in self.strides):
            raise ValueError(f"strides {list(self.strides)} must be multiples of {STRIDE_GRANULE_BYTES} bytes")
        inner = self.box[0] * self.element_bytes
        if self.swizzle_bytes and inner > self.swizzle_bytes:
            raise ValueError(f"the inner box dimension has {inner} bytes, more than the swizzle of {self.swizzle}")
        return self

    @property
    def element_bytes(self) -> int:
        return DTYPE_BYTES[self.dtype]

    @property
    def swizzle_bytes(self) -> int:
        return SWIZZLE_BYTES[self.swizzle]

    @property
    def l2_promotion_bytes(self) -> int:
        return PROMOTION_BYTES[self.l2_promotion]

    @property
    def strides(self) -> tuple[int, ...]:
        """Strides in bytes of dimensions 1.., given or dense."""
        if self.strides_bytes is not None:
            return self.strides_bytes
        strides, stride = [], self.element_bytes
        for extent in self.shape[:-1]:
            stride *= extent
            strides.append(stride)
        return tuple(strides)

    @property
    def tensor_bytes(self) -> int:
        """Bytes from the first to past the last element of the tensor in global memory."""
        steps = zip(self.shape, (self.element_bytes, *self.strides), strict=True)
        return self.element_bytes + sum((extent - 1) * stride for extent, stride in steps)

    @property
    def n_bytes(self) -> int:
        return TENSOR_MAP_BYTES

    def __str__(self) -> str:
        return f"tensormap {self.name}"


Argument = Scalar | Structure | DeviceBuffer | TiledMap


def parse_argument(value: Any) -> Argument:
    """One argument from its document form. ValueError (or pydantic's) says what is wrong with it."""
    if isinstance(value, Argument):
        return value
    if not isinstance(value, dict):
        raise ValueError(f"{value!r} is not an argument; write a mapping such as {{i32: 8192}}")
    kinds = [key for key in value if key in SCALARS or key in ("buffer", "bytes", "tensormap")]
    if len(kinds) != 1:
        known = ", ".join(["buffer", "tensormap", "bytes", *SCALARS])
        raise ValueError(f"{value!r} needs exactly one of the keys {known}")
    kind = kinds[0]
    rest = {str(key): entry for key, entry in value.items() if key != kind}
    if kind == "buffer":
        return DeviceBuffer.model_validate({"size": value[kind]} | rest)
    if kind == "tensormap":
        return TiledMap.model_validate(value[kind])
    if rest:
        raise ValueError(f"{', '.join(rest)} does not belong to a {kind} argument")
    return Structure(hexadecimal=value[kind]) if kind == "bytes" else Scalar(kind=kind, value=value[kind])
