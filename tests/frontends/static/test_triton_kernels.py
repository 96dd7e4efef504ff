"""Does an object that Triton returns become a cubin and a launch that fits it?"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from simulator.errors import UserError
from simulator.frontends.sass.arguments import DeviceBuffer, Scalar, TiledMap
from simulator.frontends.sass.decode import load_kernel
from simulator.frontends.sass.launch import bind, load_launch
from simulator.frontends.sass.triton import from_triton


class Tensor:
    """What a tensor shows of itself."""

    def __init__(self, *shape: int, element_bytes: int = 2) -> None:
        self.shape, self._bytes = shape, element_bytes

    def data_ptr(self) -> int:
        return 0

    def numel(self) -> int:
        return int(np.prod(self.shape))

    def element_size(self) -> int:
        return self._bytes


def _compiled(path: Path, name: str, signature: dict[str, str], **metadata: Any) -> SimpleNamespace:
    values = {"name": name, "num_warps": 4, "num_ctas": 1, "shared": 0, "tensordesc_meta": [], "global_scratch_size": 0}
    return SimpleNamespace(
        asm={"cubin": path.read_bytes(), "ptx": ""},
        metadata=SimpleNamespace(**(values | metadata)),
        src=SimpleNamespace(signature=signature),
    )


@pytest.fixture
def add(examples: Path) -> SimpleNamespace:
    signature = {"x": "*fp32", "y": "*fp32", "o": "*fp32", "n": "i32", "B": "constexpr"}
    return _compiled(examples / "add_fp32.cubin", "ew_add", signature, num_warps=8)


def test_pointers_numbers_and_scratch(add: SimpleNamespace, examples: Path) -> None:
    n = 67108864
    x, y, o = (Tensor(n, element_bytes=4) for _ in range(3))
    cubin, spec = from_triton(add, (n // 2048,), {"x": x, "y": y, "o": o, "n": n, "B": 2048})
    measured = load_launch(examples / "add_fp32.yaml")
    assert (spec.grid, spec.block, spec.dynamic_smem) == (measured.grid, measured.block, measured.dynamic_smem)
    assert [argument.n_bytes for argument in spec.args] == [argument.n_bytes for argument in measured.args]
    assert len(bind(load_kernel(cubin), spec).buffers) == 3


def test_a_sequence_leaves_constants_out_and_one_tensor_twice_is_one_buffer(add: SimpleNamespace) -> None:
    x = Tensor(1024, element_bytes=4)
    _, spec = from_triton(add, 1, [x, x, np.zeros(1024, np.float32), 1024], contents={"x": "zeros"})
    buffers = [argument for argument in spec.args if isinstance(argument, DeviceBuffer)]
    assert [(buffer.name, buffer.size, buffer.contents) for buffer in buffers] == [
        ("x", 4096, "zeros"), ("x", 4096, "zeros"), ("o", 4096, None)]


def test_descriptors_become_maps_with_shape_and_strides(examples: Path) -> None:
    names = ("a_desc", "b_desc", "c_desc")
    layout = {"swizzle": 3, "elem_size": 2, "elem_type": 10, "fp4_padded": False}
    compiled = _compiled(
        examples / "gemm_tma_bf16.cubin",
        "matmul_tma",
        {**dict.fromkeys(names, "tensordesc<bf16[128, 64]>"), "M": "i32", "N": "i32", "K": "i32", "BM": "constexpr"},
        num_warps=8,
        shared=147480,
        tensordesc_meta=[layout | {"block_size": block} for block in ([128, 64], [256, 64], [128, 64])],
    )
    descriptors = {
        name: SimpleNamespace(base=Tensor(8192, 8192), shape=[8192, 8192], strides=[8192, 1], block_shape=[128, 64])
        for name in names
    }
    cubin, spec = from_triton(compiled, (2048, 1, 1), descriptors | {"M": 8192, "N": 8192, "K": 8192})
    measured = load_launch(examples / "gemm_tma_bf16.yaml")
    assert [type(argument) for argument in spec.args] == [type(argument) for argument in measured.args]
    for ours, theirs in zip(spec.args, measured.args, strict=True):
        if isinstance(ours, TiledMap) and isinstance(theirs, TiledMap):
            assert (ours.shape, ours.box, ours.strides, ours.swizzle) == (
                theirs.shape, theirs.box, theirs.strides, theirs.swizzle)
        elif isinstance(ours, Scalar) and isinstance(theirs, Scalar):
            assert (ours.n_bytes, ours.value) == (theirs.n_bytes, theirs.value)
    assert len(bind(load_kernel(cubin), spec).tensor_maps) == 3


def test_scratch_memory_is_a_buffer_when_the_kernel_uses_it(add: SimpleNamespace) -> None:
    add.metadata.global_scratch_size = 256
    _, spec = from_triton(add, (3, 2), [Tensor(8), Tensor(8), Tensor(8), 8])
    scratch = spec.args[4]
    assert isinstance(scratch, DeviceBuffer)
    assert (scratch.name, scratch.size) == ("global_scratch", 256 * 6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([1, 2], r"2 arguments given; the kernel takes 4: x, y, o, n"),
        ({"x": 1}, r"arguments y, o, n are missing; the kernel takes x, y, o, n"),
        ([Tensor(8), Tensor(8), Tensor(8), "8"], r"argument n: str is neither a number, a tensor nor a descriptor"),
        ([Tensor(8), Tensor(8), Tensor(8), 2**40], r"argument n: 1099511627776 does not fit a parameter of 4 bytes"),
    ],
)
def test_values_that_do_not_match(add: SimpleNamespace, arguments: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        from_triton(add, 1, arguments)


def test_an_object_that_is_not_a_compiled_kernel() -> None:
    with pytest.raises(UserError, match=r"has no asm\['cubin'\]"):
        from_triton(SimpleNamespace(asm={"ptx": ""}), 1, [])
