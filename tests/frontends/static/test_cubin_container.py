"""What does a cubin say about its kernels, and what does a user read when the file is wrong?"""

from __future__ import annotations

import re
import struct
import sys
from pathlib import Path

import pytest

from simulator.errors import Unsupported, UserError
from simulator.frontends.sass.decode import list_kernels, load_kernel
from simulator.frontends.sass.elf import read_cubin
from simulator.frontends.sass.operands import Parameter

FLAGS_OFFSET = 0x30


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100a"])
def test_architecture_comes_from_the_file(probes: dict[str, Path], arch: str) -> None:
    assert read_cubin(probes[arch]).arch == arch


def test_architecture_of_the_older_container_generation(examples: Path) -> None:
    assert read_cubin(examples / "add_fp32.cubin").arch == "sm_90a"


@pytest.mark.parametrize(("arch", "base"), [("sm_80", 0x160), ("sm_90a", 0x210), ("sm_100a", 0x380)])
def test_parameters_lie_where_the_architecture_puts_them(probes: dict[str, Path], arch: str, base: int) -> None:
    kernel = read_cubin(probes[arch]).kernel("axpy")
    assert kernel.parameter_base == base
    assert kernel.parameters == (Parameter(0, 0, 8), Parameter(1, 8, 8), Parameter(2, 16, 4), Parameter(3, 20, 4))


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100a"])
def test_static_shared_memory_is_the_kernels_own(probes: dict[str, Path], arch: str) -> None:
    """axpy declares 1,024 bytes; from sm_90 on the section also holds the system's kilobyte."""
    assert load_kernel(probes[arch], "axpy").static_smem_bytes == 1024


def test_registers_block_and_local_memory(examples: Path) -> None:
    kernel = load_kernel(examples / "gemm_splitk_bf16.cubin")
    assert (kernel.name, kernel.registers_per_thread, kernel.required_block) == ("matmul_splitk", 112, (256, 1, 1))
    assert (kernel.static_smem_bytes, kernel.local_bytes_per_thread) == (0, 0)


def test_constant_banks_hold_jump_tables_and_constants(probes: dict[str, Path]) -> None:
    constants = read_cubin(probes["sm_90a"]).kernel("mixed").constants
    assert struct.unpack("<4i", constants[3]) == (1, 2, 3, 4)
    assert all(0 < target < 0x2000 and target % 16 == 0 for target in struct.unpack("<7I", constants[2]))


def test_kernels_are_listed_in_full(probes: dict[str, Path]) -> None:
    assert sorted(list_kernels(probes["sm_80"])) == ["axpy", "matrix", "mixed"]
    assert sorted(list_kernels(probes["sm_100a"].read_bytes())) == ["axpy", "bulk", "matrix", "mixed"]


def _rejected(source: Path | bytes, kernel: str | None = None) -> str:
    with pytest.raises(UserError) as caught:
        load_kernel(source, kernel)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_a_text_file_named_cubin(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cubin"
    path.write_text(".visible .entry kernel()\n")
    assert re.search(r"kernel\.cubin is not a cubin.*ELF signature", _rejected(path))


@pytest.mark.parametrize("kept", [0.02, 0.3, 0.6, 0.97])
def test_a_truncated_cubin(examples: Path, kept: float) -> None:
    content = (examples / "softmax_bf16.cubin").read_bytes()
    assert "truncated" in _rejected(content[: int(len(content) * kept)], "softmax_row")


def test_an_elf_file_that_is_not_for_a_gpu() -> None:
    executable = Path(sys.executable).resolve()
    assert re.search(r"is an ELF file for EM_\w+, not a CUDA cubin", _rejected(executable))


def test_an_architecture_without_tables(probes: dict[str, Path]) -> None:
    content = bytearray(probes["sm_80"].read_bytes())
    content[FLAGS_OFFSET + 1] = 35
    with pytest.raises(Unsupported, match=r"sm_35 is not supported; the front end reads sm_70"):
        load_kernel(bytes(content), "axpy")


def test_a_missing_kernel_lists_the_names(probes: dict[str, Path]) -> None:
    message = _rejected(probes["sm_90a"], "axpby")
    assert "no kernel 'axpby'" in message
    assert all(name in message for name in ("axpy", "mixed", "matrix", "bulk"))


def test_several_kernels_without_a_name(probes: dict[str, Path]) -> None:
    assert "holds 3 kernels, name one of" in _rejected(probes["sm_80"])


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert "cannot be read" in _rejected(tmp_path / "absent.cubin")
