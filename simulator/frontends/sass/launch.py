"""A launch description bound to a kernel: constant bank 0, buffers with addresses, tensor maps, buffer contents."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from simulator.errors import UserError
from simulator.frontends.sass.arch import ABSENT, ConstantBank, architecture
from simulator.frontends.sass.arguments import Argument, DeviceBuffer, Scalar, Structure, TiledMap
from simulator.frontends.sass.contents import Contents, parse_contents
from simulator.frontends.sass.launch_spec import (
    LaunchSpec,
    launch_from_flags,
    load_launch,
    parse_flag_argument,
    parse_launch,
)
from simulator.frontends.sass.operands import Parameter, SassKernel
from simulator.trace.kernel_trace import Buffer, Launch, TensorMap

__all__ = [
    "BoundLaunch", "LaunchSpec", "bind", "launch_from_flags", "load_launch", "parse_flag_argument", "parse_launch",
]

# Virtual addresses of this launch model; any disjoint ranges would do. Window bases have 32 zero low bits, as the
# hardware's do (SR_SWINHI returns only the high word).
BUFFER_BASE = 0x7F00_0000_0000
BUFFER_ALIGNMENT = 2 << 20
PARAMETER_ADDRESS = 0x7E00_0000_0000
SHARED_WINDOW = 0x7D01_0000_0000
LOCAL_WINDOW = 0x7D02_0000_0000
STACK_POINTER = 0xFF_FC00
"""Initial R1: byte past a thread's local-memory frame."""
MINIMUM_BANK_BYTES = 4096
U32, U64, F32 = "<I", "<Q", "<f"


@dataclass(frozen=True)
class BoundLaunch:
    """A kernel with its launch values.

    ``constant_bank``: bank 0 bytes. ``tensor_maps``: rows of the trace; ``tensor_map_of_address``: address of a
    descriptor in parameter space -> row. ``buffers``: distinct allocations by first use. ``contents``: buffer name ->
    contents where the data is known. ``parameter_address``: generic address of parameter 0; ``stack_pointer``: initial
    R1; windows: generic base addresses of shared and local memory."""

    kernel: str
    launch: Launch
    constant_bank: bytes
    tensor_maps: tuple[TensorMap, ...]
    tensor_map_of_address: dict[int, int]
    buffers: tuple[Buffer, ...]
    contents: dict[str, Contents]
    parameter_address: int = PARAMETER_ADDRESS
    stack_pointer: int = STACK_POINTER
    shared_window: int = SHARED_WINDOW
    local_window: int = LOCAL_WINDOW


def bind(kernel: SassKernel, spec: LaunchSpec) -> BoundLaunch:
    """Lay out buffers and write constant bank 0. UserError when the launch does not fit the kernel: another kernel
    name, another number or size of arguments, another block than the one it was compiled for."""
    _check(kernel, spec)
    buffers = _place_buffers(spec.args)
    address_of = {buffer.name: buffer.address for buffer in buffers}
    tensor_maps, row_of_address = _tensor_maps(kernel.parameters, spec.args, address_of)
    return BoundLaunch(
        kernel=kernel.name,
        launch=Launch(spec.grid, spec.block, spec.cluster, spec.dynamic_smem),
        constant_bank=_constant_bank(kernel, spec, address_of),
        tensor_maps=tensor_maps,
        tensor_map_of_address=row_of_address,
        buffers=buffers,
        contents=_contents(spec.args),
    )


def _check(kernel: SassKernel, spec: LaunchSpec) -> None:
    if spec.kernel not in (None, kernel.name):
        raise UserError(f"the launch names kernel '{spec.kernel}', but the kernel is '{kernel.name}'")
    expected, given = kernel.parameters, spec.args
    if len(expected) != len(given):
        sizes = ", ".join(str(parameter.n_bytes) for parameter in expected) or "none"
        raise UserError(f"kernel '{kernel.name}' takes {len(expected)} arguments ({sizes} bytes); {len(given)} given")
    for position, (parameter, argument) in enumerate(zip(expected, given, strict=True)):
        if parameter.n_bytes != argument.n_bytes:
            raise UserError(f"argument {position} of kernel '{kernel.name}' has {parameter.n_bytes} bytes; "
                            f"{argument} has {argument.n_bytes}")
    if kernel.required_block not in (None, spec.block):
        raise UserError(f"kernel '{kernel.name}' was compiled for blocks of {_shape(kernel.required_block)} threads, "
                        f"not {_shape(spec.block)}")


def _shape(shape: tuple[int, int, int] | None) -> str:
    return "x".join(map(str, shape or ()))


def _place_buffers(arguments: Sequence[Argument]) -> tuple[Buffer, ...]:
    """Aligned, disjoint addresses in the order of first use; a name that occurs again keeps its largest size."""
    sizes: dict[str, int] = {}
    for argument in arguments:
        if isinstance(argument, DeviceBuffer):
            sizes[argument.name] = max(sizes.get(argument.name, 0), argument.size)
        elif isinstance(argument, TiledMap):
            sizes[argument.name] = max(sizes.get(argument.name, 0), argument.tensor_bytes)
    placed, address = [], BUFFER_BASE
    for name, n_bytes in sizes.items():
        placed.append(Buffer(name, address, n_bytes))
        address += -(-n_bytes // BUFFER_ALIGNMENT) * BUFFER_ALIGNMENT
    return tuple(placed)


def _tensor_maps(
    parameters: Sequence[Parameter], arguments: Sequence[Argument], address_of: dict[str, int]
) -> tuple[tuple[TensorMap, ...], dict[int, int]]:
    maps: list[TensorMap] = []
    rows: dict[int, int] = {}
    for parameter, argument in zip(parameters, arguments, strict=True):
        if isinstance(argument, TiledMap):
            rows[PARAMETER_ADDRESS + parameter.offset] = len(maps)
            maps.append(TensorMap(
                name=argument.name,
                element_bytes=argument.element_bytes,
                shape=argument.shape,
                strides_bytes=argument.strides,
                box=argument.box,
                swizzle_bytes=argument.swizzle_bytes,
                address=address_of[argument.name],
                l2_promotion_bytes=argument.l2_promotion_bytes,
            ))
    return tuple(maps), rows


def _contents(arguments: Sequence[Argument]) -> dict[str, Contents]:
    known: dict[str, Contents] = {}
    for argument in arguments:
        if isinstance(argument, DeviceBuffer | TiledMap) and argument.name not in known:
            contents = parse_contents(argument.contents)
            if contents is not None:
                known[argument.name] = contents
    return known


def _constant_bank(kernel: SassKernel, spec: LaunchSpec, address_of: dict[str, int]) -> bytes:
    end = max((p.offset + p.n_bytes for p in kernel.parameters), default=0)
    bank = bytearray(max(MINIMUM_BANK_BYTES, kernel.parameter_base + end))
    _write_launch_values(bank, architecture(kernel.arch).constant_bank, spec)
    for parameter, argument in zip(kernel.parameters, spec.args, strict=True):
        at = kernel.parameter_base + parameter.offset
        bank[at : at + parameter.n_bytes] = _encode(argument, address_of)
    return bytes(bank)


def _encode(argument: Argument, address_of: dict[str, int]) -> bytes:
    """Parameter bytes; a tensor map's are zero, since only its address matters."""
    if isinstance(argument, Scalar | Structure):
        return argument.encode()
    if isinstance(argument, DeviceBuffer):
        return struct.pack(U64, address_of[argument.name] + argument.offset)
    return bytes(argument.n_bytes)


def _write_launch_values(bank: bytearray, layout: ConstantBank, spec: LaunchSpec) -> None:
    n_ctas = spec.cluster[0] * spec.cluster[1] * spec.cluster[2]
    n_clusters = [extent // part for extent, part in zip(spec.grid, spec.cluster, strict=True)]
    for offset, form, values in (
        (layout.block, U32, spec.block),
        (layout.grid, U32, spec.grid),
        (layout.stack, U32, (STACK_POINTER,)),
        (layout.dynamic_smem, U32, (spec.dynamic_smem,)),
        (layout.shared_window, U64, (SHARED_WINDOW,)),
        (layout.local_window, U64, (LOCAL_WINDOW,)),
        (layout.parameter_address, U64, (PARAMETER_ADDRESS,)),
        (layout.is_cluster, U32, (int(n_ctas > 1),)),
        (layout.cluster, U32, spec.cluster),
        (layout.cluster_reciprocal, F32, [1 / extent for extent in spec.cluster]),
        (layout.n_clusters, U32, n_clusters),
        (layout.cluster_size, U32, (n_ctas,)),
    ):
        if offset != ABSENT:
            for position, value in enumerate(values):
                struct.pack_into(form, bank, offset + position * struct.calcsize(form), value)
