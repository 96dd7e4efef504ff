"""Is every launch description read right, and is every mistake in one told in one clear sentence?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from simulator.errors import UserError
from simulator.frontends.sass.arguments import DeviceBuffer, Scalar, Structure, TiledMap
from simulator.frontends.sass.launch import launch_from_flags, load_launch, parse_launch

MAP = {"name": "a", "dtype": "bf16", "shape": [4096, 1024], "box": [64, 128], "swizzle": "128B"}
LAUNCH: dict[str, Any] = {
    "kernel": "k",
    "grid": [16, 2, 1],
    "block": [128, 1, 1],
    "dynamic_smem": 4096,
    "args": [
        {"buffer": 1024, "name": "x"}, {"i32": -1}, {"f32": 0.5}, {"u64": 2**63}, {"bytes": "00ff"}, {"tensormap": MAP},
    ],
}


def test_a_document_becomes_typed_arguments() -> None:
    spec = parse_launch(LAUNCH)
    assert (spec.grid, spec.block, spec.cluster, spec.dynamic_smem) == ((16, 2, 1), (128, 1, 1), (1, 1, 1), 4096)
    assert [type(argument) for argument in spec.args] == [DeviceBuffer, Scalar, Scalar, Scalar, Structure, TiledMap]
    assert [argument.n_bytes for argument in spec.args] == [8, 4, 4, 8, 2, 128]


def test_json_and_yaml_files_and_flags_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "launch.json").write_text(json.dumps(LAUNCH))
    (tmp_path / "launch.yaml").write_text(yaml.safe_dump(LAUNCH))
    flags = launch_from_flags(
        kernel="k",
        grid="16,2",
        block="128",
        smem=4096,
        args=["buffer:x:1KiB", "i32:-1", "f32:0.5", f"u64:{2**63:#x}", "bytes:00ff",
              "tensormap:a:bf16:4096x1024:64x128:128B"],
    )
    files = [load_launch(tmp_path / f"launch.{suffix}") for suffix in ("json", "yaml")]
    assert files == [flags, flags] == [parse_launch(LAUNCH)] * 2


def test_strides_are_dense_unless_given() -> None:
    dense = parse_launch(LAUNCH).args[-1]
    padded = parse_launch(LAUNCH | {"args": [{"tensormap": MAP | {"strides_bytes": [8448]}}]}).args[0]
    assert isinstance(dense, TiledMap) and isinstance(padded, TiledMap)
    assert (dense.strides, dense.tensor_bytes) == ((8192,), 4096 * 1024 * 2)
    assert (padded.strides, padded.tensor_bytes) == ((8448,), 1023 * 8448 + 8192)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"block": [2000]}, "block 2000x1x1 has 2,000 threads; a CTA has at most 1,024"),
        ({"block": [1, 1, 128]}, "block 1x1x128 exceeds the largest block, 1024x1024x64"),
        ({"grid": [0, 1, 1]}, "grid.0: input should be greater than or equal to 1, not 0"),
        ({"grid": [1, 70000]}, "grid 1x70000x1 exceeds the largest grid"),
        ({"grid": ["many"]}, "grid.0: input should be a valid integer, not 'many'"),
        ({"grid": [1, 1, 1, 1]}, "grid"),
        ({"cluster": [3]}, "grid 16x2x1 is not a multiple of the cluster 3x1x1"),
        ({"cluster": [16, 2]}, "cluster 16x2x1 has more than 16 CTAs"),
        ({"dynamic_smem": -1}, "dynamic_smem: input should be greater than or equal to 0, not -1"),
        ({"blocks": [1]}, "blocks: extra inputs are not permitted"),
        ({"args": {"i32": 1}}, "args must be a list of arguments in parameter order"),
        ({"args": [8192]}, "argument 0: 8192 is not an argument; write a mapping such as {i32: 8192}"),
        ({"args": [{"i33": 1}]}, "argument 0: {'i33': 1} needs exactly one of the keys buffer, tensormap, bytes, i8"),
        ({"args": [{"i32": 1, "f32": 1}]}, "argument 0"),
        ({"args": [{"i32": 2**31}]}, "argument 0: 2147483648 does not fit i32"),
        ({"args": [{"i32": 0.5}]}, "argument 0: 0.5 does not fit i32"),
        ({"args": [{"i32": 1, "name": "n"}]}, "argument 0: name does not belong to a i32 argument"),
        ({"args": [{"i32": 1}, {"buffer": 0, "name": "x"}]}, "argument 1: size: input should be greater than or equal"),
        ({"args": [{"buffer": 16}]}, "argument 0: name: field required"),
        ({"args": [{"bytes": "0g"}]}, "argument 0: hexadecimal"),
        ({"args": [{"tensormap": MAP | {"dtype": "bf15"}}]}, "argument 0: dtype 'bf15' is none of fp8"),
        ({"args": [{"tensormap": MAP | {"swizzle": "96B"}}]}, "swizzle '96B' is none of none, 32B, 64B, 128B"),
        ({"args": [{"tensormap": MAP | {"interleave": "16B"}}]}, "interleave '16B' is not supported"),
        ({"args": [{"tensormap": MAP | {"box": [64]}}]}, "shape has 2 dimensions, so box needs 2 values"),
        ({"args": [{"tensormap": MAP | {"box": [64, 512]}}]}, "box [64, 512] exceeds 256 elements"),
        ({"args": [{"tensormap": MAP | {"box": [128, 64]}}]}, "has 256 bytes, more than the swizzle of 128B"),
        ({"args": [{"tensormap": MAP | {"strides_bytes": [8200]}}]}, "must be multiples of 16 bytes"),
    ],
)
def test_mistakes_in_one_sentence(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_launch(LAUNCH | change, "my.yaml")
    assert str(caught.value).startswith("my.yaml: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("grid: [1", "not a YAML or JSON document"),
        ("- 1", "is a mapping with grid, block and args"),
        ("block: 32", "grid: field required"),
    ],
)
def test_files_that_are_no_launch(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "launch.yaml"
    path.write_text(content)
    with pytest.raises(UserError, match=message):
        load_launch(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        load_launch(tmp_path / "absent.yaml")


@pytest.mark.parametrize(
    "text",
    ["i32", "i32:x", "i32:1.5", "int:3", "buffer:a", "buffer:a:lots", "tensormap:a:bf16:64", "tensormap:a:u8:8xx8:8x8"],
)
def test_flags_that_are_no_argument(text: str) -> None:
    with pytest.raises(UserError, match=r"--arg .*: write i32:8192"):
        launch_from_flags(grid="1", block="32", args=[text])


@pytest.mark.parametrize("text", ["", "a", "1,2,3,4", "1x2"])
def test_flag_shapes(text: str) -> None:
    with pytest.raises(UserError, match=r"--grid .*: write one to three whole numbers"):
        launch_from_flags(grid=text, block="32")


def test_contents_of_a_flag_may_hold_colons() -> None:
    (buffer,) = launch_from_flags(grid="1", block="32", args=["buffer:x:64:int32 iota: element i = i"]).args
    assert isinstance(buffer, DeviceBuffer)
    assert buffer.contents == "int32 iota: element i = i"
