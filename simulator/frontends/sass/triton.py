"""A kernel that Triton compiled, as (cubin, launch): takes what ``triton.compile`` or ``kernel[grid](...)`` returns.

Triton is not imported: the object is used through ``asm["cubin"]``, ``metadata`` and ``src.signature`` (3.2 and later).
Arguments that are compile-time constants, or that the compiler specialised away because they equal 1, take no
parameter; a host-side tensor descriptor takes a tensor map, its shape and its strides; up to two trailing pointers are
Triton's own scratch memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from simulator.errors import Unsupported, UserError
from simulator.frontends.sass.arguments import Argument, DeviceBuffer, Scalar, TiledMap
from simulator.frontends.sass.elf import KernelSection, read_cubin
from simulator.frontends.sass.launch_spec import LaunchSpec, parse_launch
from simulator.frontends.sass.operands import Parameter

CONSTANT = "constexpr"
SWIZZLES = ("none", "32B", "64B", "128B")
"""Tensor map swizzles by the code in ``metadata.tensordesc_meta``."""
DTYPE_OF_BYTES = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}
POINTER_BYTES = 8
WARP_THREADS = 32
SCRATCH_NAMES = ("global_scratch", "profile_scratch")


def from_triton(
    compiled: Any,
    grid: int | Sequence[int],
    arguments: Sequence[Any] | Mapping[str, Any],
    contents: Mapping[str, str] | None = None,
) -> tuple[bytes, LaunchSpec]:
    """Cubin bytes and launch of a compiled Triton kernel.

    ``grid``: programs in x, y, z. ``arguments``: values by name, or in signature order; constants may be left out of a
    sequence. A value is a number, a tensor (``data_ptr``/``numel``/``element_size``, also on the "meta" device), an
    array (``nbytes``), a tensor descriptor (``base``/``shape``/``strides``/``block_shape``) or an ``Argument``.
    ``contents``: how buffers were filled, by argument name. UserError when the values do not match the kernel."""
    cubin, metadata = _cubin(compiled), compiled.metadata
    section = read_cubin(cubin).kernel(str(metadata.name))
    names = _parameter_names(compiled)
    expander = _Expander(section, list(getattr(metadata, "tensordesc_meta", None) or []), dict(contents or {}))
    for name, value in _named_values(names, arguments):
        expander.add(name, value)
    extents = (grid,) if isinstance(grid, int) else tuple(int(extent) for extent in grid)
    n_ctas = int(getattr(metadata, "num_ctas", 1) or 1)
    programs = 1
    for extent in extents:
        programs *= extent
    expander.add_scratch(int(getattr(metadata, "global_scratch_size", 0) or 0) * programs * n_ctas)
    document = {
        "kernel": section.name,
        "grid": [extents[0] * n_ctas, *extents[1:]],
        "block": section.required_block or (WARP_THREADS * int(metadata.num_warps), 1, 1),
        "cluster": (n_ctas, 1, 1),
        "dynamic_smem": int(metadata.shared),
        "args": expander.arguments,
    }
    return cubin, parse_launch(document, f"Triton kernel {section.name}")


def _cubin(compiled: Any) -> bytes:
    binaries = getattr(compiled, "asm", None)
    if binaries is None or "cubin" not in binaries:
        raise UserError("the object has no asm['cubin']; pass what triton.compile or kernel[grid](...) returns")
    return bytes(binaries["cubin"])


def _parameter_names(compiled: Any) -> list[str]:
    """Names of the arguments that are not constants, in order; empty when the signature is not at hand."""
    signature = getattr(getattr(compiled, "src", None), "signature", None) or {}
    return [str(name) for name, kind in signature.items() if kind != CONSTANT]


def _named_values(names: list[str], arguments: Sequence[Any] | Mapping[str, Any]) -> list[tuple[str, Any]]:
    if isinstance(arguments, Mapping):
        wanted = names or [str(name) for name in arguments]
        missing = [name for name in wanted if name not in arguments]
        if missing:
            raise UserError(f"arguments {', '.join(missing)} are missing; the kernel takes {', '.join(wanted)}")
        return [(name, arguments[name]) for name in wanted]
    if names and len(arguments) != len(names):
        raise UserError(f"{len(arguments)} arguments given; the kernel takes {len(names)}: {', '.join(names)}")
    return list(zip(names or [f"arg{k}" for k in range(len(arguments))], arguments, strict=True))


class _Expander:
    """Turns argument values into kernel parameters, in order."""

    def __init__(self, section: KernelSection, descriptors: list[Any], contents: dict[str, str]) -> None:
        self.arguments: list[Argument] = []
        self._section = section
        self._descriptors = descriptors
        self._contents = contents
        self._names: dict[int, str] = {}

    def add(self, name: str, value: Any) -> None:
        """Append the parameters of one argument."""
        if isinstance(value, Argument):
            self.arguments.append(value)
        elif all(hasattr(value, field) for field in ("base", "shape", "strides", "block_shape")):
            self._add_descriptor(name, value)
        elif (n_bytes := _tensor_bytes(value)) is not None:
            self.arguments.append(self._buffer(name, value, n_bytes))
        elif isinstance(value, bool | int | float):
            self._add_number(name, value)
        else:
            raise UserError(f"argument {name}: {type(value).__name__} is neither a number, a tensor nor a descriptor")

    def add_scratch(self, n_bytes: int) -> None:
        """Append Triton's trailing scratch pointers: null, or a buffer of ``n_bytes`` for the first one."""
        rest = self._section.parameters[len(self.arguments) :]
        if len(rest) > len(SCRATCH_NAMES) or any(parameter.n_bytes != POINTER_BYTES for parameter in rest):
            return
        for name, _ in zip(SCRATCH_NAMES, rest, strict=False):
            is_used = name == SCRATCH_NAMES[0] and n_bytes > 0
            self.arguments.append(DeviceBuffer(size=n_bytes, name=name) if is_used else Scalar(kind="u64", value=0))

    def _buffer(self, name: str, value: Any, n_bytes: int) -> DeviceBuffer:
        """The same object passed twice is one buffer."""
        shared = self._names.setdefault(id(value), name)
        return DeviceBuffer(size=max(n_bytes, 1), name=shared, contents=self._contents.get(shared))

    def _next(self, name: str) -> Parameter:
        parameters = self._section.parameters
        if len(self.arguments) >= len(parameters):
            raise UserError(f"kernel '{self._section.name}' has no parameter left for argument {name}; it has "
                            f"{len(parameters)}; leave out constants and arguments that equal 1")
        return parameters[len(self.arguments)]

    def _add_number(self, name: str, value: int | float) -> None:
        n_bytes = self._next(name).n_bytes
        value = int(value) if isinstance(value, bool) else value
        kind = "f" if isinstance(value, float) else "i" if value < 1 << (8 * n_bytes - 1) else "u"
        try:
            self.arguments.append(Scalar(kind=f"{kind}{8 * n_bytes}", value=value))
        except (KeyError, ValueError):
            raise UserError(f"argument {name}: {value!r} does not fit a parameter of {n_bytes} bytes") from None

    def _add_descriptor(self, name: str, value: Any) -> None:
        if not self._descriptors:
            raise Unsupported(f"argument {name}: this kernel was compiled without tensor maps for its descriptors")
        layout = self._descriptors.pop(0)
        shape, strides = [int(s) for s in value.shape], [int(s) for s in value.strides]
        element = int(layout["elem_size"])
        base = value.base
        n_bytes = _tensor_bytes(base)
        shared = self._names.setdefault(id(base), name) if n_bytes is not None else name
        self.arguments.append(TiledMap(
            name=shared,
            dtype=DTYPE_OF_BYTES[element],
            shape=tuple(reversed(shape)),
            strides_bytes=tuple(stride * element for stride in reversed(strides[:-1])),
            box=tuple(int(extent) for extent in reversed(layout["block_size"])),
            swizzle=SWIZZLES[int(layout["swizzle"])],
            contents=self._contents.get(shared),
        ))
        for extent in (*shape, *strides):
            self._add_number(name, extent)


def _tensor_bytes(value: Any) -> int | None:
    """Bytes of a tensor or array; None when it is neither."""
    if hasattr(value, "data_ptr") and hasattr(value, "numel"):
        return int(value.numel()) * int(value.element_size())
    return int(value.nbytes) if hasattr(value, "nbytes") and hasattr(value, "shape") else None
