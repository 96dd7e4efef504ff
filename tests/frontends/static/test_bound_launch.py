"""Do constant bank 0, buffers and tensor maps hold what the kernel will read?"""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from simulator.errors import UserError
from simulator.frontends.sass.arch import architecture
from simulator.frontends.sass.decode import load_kernel
from simulator.frontends.sass.launch import BUFFER_ALIGNMENT, bind, load_launch, parse_launch
from simulator.frontends.sass.operands import OperandKind, Parameter, SassKernel

EXAMPLES = (
    "gemm_tma_bf16", "gemm_tma_fp8", "gemm_pointers_bf16", "gemm_splitk_bf16", "attention_bf16",
    "attention_causal_bf16", "softmax_bf16", "layernorm_bf16", "transpose_bf16", "gelu_bf16", "add_fp32",
    "row_sum_fp32",
)
AXPY = {"grid": [40, 3, 2], "block": [256, 1, 1], "dynamic_smem": 2048,
        "args": [{"buffer": 4096, "name": "y"}, {"buffer": 4096, "name": "x"}, {"f32": 0.5}, {"i32": 1000}]}


def _words(bank: bytes, offset: int, count: int = 3) -> tuple[int, ...]:
    return struct.unpack_from(f"<{count}I", bank, offset)


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_launches_fit_their_kernels(examples: Path, name: str) -> None:
    kernel = load_kernel(examples / f"{name}.cubin")
    bound = bind(kernel, load_launch(examples / f"{name}.yaml"))
    assert bound.launch.block == kernel.required_block
    for earlier, later in zip(bound.buffers, bound.buffers[1:], strict=False):
        assert earlier.address + earlier.n_bytes <= later.address
    assert all(buffer.address % BUFFER_ALIGNMENT == 0 for buffer in bound.buffers)


@pytest.mark.parametrize(
    ("arch", "block", "grid", "parameters"),
    [("sm_80", 0x0, 0xC, 0x160), ("sm_90a", 0x0, 0xC, 0x210), ("sm_100a", 0x360, 0x370, 0x380)],
)
def test_launch_values_lie_where_the_code_reads_them(
    probes: dict[str, Path], arch: str, block: int, grid: int, parameters: int
) -> None:
    kernel = load_kernel(probes[arch], "axpy")
    bound = bind(kernel, parse_launch(AXPY))
    assert _words(bound.constant_bank, block) == (256, 1, 1)
    assert _words(bound.constant_bank, grid) == (40, 3, 2)
    y, x, a, n = struct.unpack_from("<QQfI", bound.constant_bank, parameters)
    assert (y, x) == tuple(buffer.address for buffer in bound.buffers)
    assert (a, n) == (0.5, 1000)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100a"])
def test_what_the_code_reads_has_been_written(probes: dict[str, Path], arch: str) -> None:
    """Every constant that axpy reads from bank 0 has been written, but for the global descriptor (zero)."""
    kernel = load_kernel(probes[arch], "axpy")
    bound = bind(kernel, parse_launch(AXPY))
    operands = [operand for row in kernel.instructions for operand in row.operands]
    offsets = {o.value // 8 * 8 for o in operands if o.kind is OperandKind.CONSTANT and o.bank == 0}
    unwritten = {offset for offset in offsets if not any(bound.constant_bank[offset : offset + 8])}
    assert unwritten == {architecture(arch).constant_bank.global_descriptor}
    assert len(offsets) >= 5


def test_clusters(probes: dict[str, Path]) -> None:
    kernel = load_kernel(probes["sm_90a"], "axpy")
    bank = bind(kernel, parse_launch(AXPY | {"cluster": [4, 1, 2]})).constant_bank
    assert _words(bank, 0x140, 4) == (1, 4, 1, 2)
    assert struct.unpack_from("<3f", bank, 0x150) == (0.25, 1.0, 0.5)
    assert _words(bank, 0x15C) == (10, 3, 1)
    assert _words(bind(kernel, parse_launch(AXPY)).constant_bank, 0x140, 4) == (0, 1, 1, 1)


def test_tensor_maps_are_found_by_the_address_of_their_parameter(examples: Path) -> None:
    kernel = load_kernel(examples / "gemm_tma_bf16.cubin")
    bound = bind(kernel, load_launch(examples / "gemm_tma_bf16.yaml"))
    assert [tensor_map.name for tensor_map in bound.tensor_maps] == ["a", "b", "c"]
    base = struct.unpack_from("<Q", bound.constant_bank, 0x198)[0]
    maps = [parameter for parameter in kernel.parameters if parameter.n_bytes == 128]
    assert bound.tensor_map_of_address == {base + parameter.offset: row for row, parameter in enumerate(maps)}
    first = bound.tensor_maps[0]
    assert (first.element_bytes, first.shape, first.box, first.strides_bytes, first.swizzle_bytes) == (
        2, (8192, 8192), (64, 128), (16384,), 128)
    assert first.address == bound.buffers[0].address


def _kernel(*sizes: int, block: tuple[int, int, int] | None = None) -> SassKernel:
    offsets = [sum(sizes[:k]) for k in range(len(sizes))]
    parameters = tuple(Parameter(k, offset, size) for k, (offset, size) in enumerate(zip(offsets, sizes, strict=True)))
    return SassKernel("k", "sm_90a", (), parameters, 0x210, 16, 0, 0, block, {}, "")


def _launch(*args: dict[str, object], **more: object) -> dict[str, object]:
    return {"grid": [1], "block": [64], "args": list(args), **more}


def test_the_same_name_is_the_same_buffer_and_the_larger_size_counts() -> None:
    tensor = {"name": "c", "dtype": "bf16", "shape": [64, 64], "box": [64, 64]}
    args = ({"tensormap": tensor}, {"buffer": 100, "name": "c"}, {"buffer": 3 << 20, "name": "d", "offset": 4})
    bound = bind(_kernel(128, 8, 8), parse_launch(_launch(*args)))
    assert [(buffer.name, buffer.n_bytes) for buffer in bound.buffers] == [("c", 8192), ("d", 3 << 20)]
    c, d = struct.unpack_from("<QQ", bound.constant_bank, 0x210 + 128)
    assert (c, d) == (bound.buffers[0].address, bound.buffers[1].address + 4)


def test_contents_are_kept_by_buffer() -> None:
    args = ({"buffer": 64, "name": "x", "contents": "zeros"}, {"buffer": 64, "name": "y", "contents": "noise"})
    bound = bind(_kernel(8, 8), parse_launch(_launch(*args)))
    assert set(bound.contents) == {"x"}


@pytest.mark.parametrize(
    ("kernel", "launch", "message"),
    [
        (_kernel(8, 4), _launch({"i64": 0}), r"kernel 'k' takes 2 arguments \(8, 4 bytes\); 1 given"),
        (_kernel(), _launch({"i64": 0}), r"kernel 'k' takes 0 arguments \(none bytes\); 1 given"),
        (_kernel(8, 4), _launch({"i64": 0}, {"i64": 3}), r"argument 1 of kernel 'k' has 4 bytes; i64 3 has 8"),
        (_kernel(block=(128, 1, 1)), _launch(), r"kernel 'k' was compiled for blocks of 128x1x1 threads, not 64x1x1"),
        (_kernel(), _launch(kernel="other"), r"the launch names kernel 'other', but the kernel is 'k'"),
    ],
)
def test_launches_that_do_not_fit(kernel: SassKernel, launch: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        bind(kernel, parse_launch(launch))
