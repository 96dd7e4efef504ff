"""Are input buffers regenerated as their description says?"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.errors import UserError
from simulator.frontends.sass.contents import Contents, array_contents, bfloat16_bits, parse_contents
from simulator.frontends.sass.formula import FormulaError, hash32, parse_formula

HASH = "hsh(x): x^=x>>16; x*=0x7feb352d; x^=x>>15; x*=0x846ca68b; x^=x>>16 (uint32)"
NORMAL = (
    "{dtype} normal(0,1), seed {seed}: element i = sqrt(-2*ln(max(u,1e-10)))*cos(2*pi*v), "
    "u=(hsh(2i+{seed})+0.5)*2^-32, v=hsh(2i+1+{seed}*7919)*2^-32 (uint32 index arithmetic); " + HASH
)
UNIFORM = "fp32 uniform [0,1), seed 3: element i = (hsh(i+3)>>8)*2^-24; " + HASH
CHASE = (
    "uint32 pointer chase over {lines} lines of 128 bytes: all 32 words of line l hold the number of the next line, "
    "(l*1664525+1013904223) mod 2^32 & {mask}"
)
M32 = 0xFFFFFFFF


def _known(sentence: str) -> Contents:
    contents = parse_contents(sentence)
    assert contents is not None
    return contents


def _hash(x: int) -> int:
    x = (x ^ x >> 16) * 0x7FEB352D & M32
    x = (x ^ x >> 15) * 0x846CA68B & M32
    return x ^ x >> 16


@given(st.integers(0, M32))
def test_the_hash(x: int) -> None:
    assert int(hash32(np.array(x))) == _hash(x)


def test_normal_numbers() -> None:
    elements = _known(NORMAL.format(dtype="fp32", seed=2)).elements(4000)
    for i in (0, 1, 999):
        u, v = (_hash(2 * i + 2) + 0.5) * 2**-32, _hash(2 * i + 1 + 2 * 7919) * 2**-32
        assert elements[i] == np.float32(math.sqrt(-2 * math.log(u)) * math.cos(2 * math.pi * v))
    assert abs(elements.mean()) < 0.1 and abs(elements.std() - 1) < 0.1


def test_sixteen_bit_types_are_rounded_from_the_same_numbers() -> None:
    single = _known(NORMAL.format(dtype="fp32", seed=4)).elements(400)
    assert np.array_equal(_known(NORMAL.format(dtype="fp16", seed=4)).elements(200), single.astype(np.float16))
    assert np.array_equal(_known(NORMAL.format(dtype="bf16", seed=4)).elements(200), bfloat16_bits(single))


def test_bfloat16_rounds_to_nearest_even() -> None:
    bits = np.array([0x3F808000, 0x3F818000, 0x3F808001, 0x3F807FFF], np.uint32)
    assert bfloat16_bits(bits.view(np.float32)).tolist() == [0x3F80, 0x3F82, 0x3F81, 0x3F80]


def test_uniform_numbers() -> None:
    assert _known(UNIFORM).elements(12).tolist() == [(_hash(i + 3) >> 8) * 2.0**-24 for i in range(3)]


@pytest.mark.parametrize("lines", [512, 8388608])
def test_pointer_chases_visit_every_line(lines: int) -> None:
    contents = _known(CHASE.format(lines=lines, mask=lines - 1))
    at = np.array([0, 4, 124, 128, 128 * (lines - 1)])
    expected = [(line * 1664525 + 1013904223) & M32 & (lines - 1) for line in (0, 0, 0, 1, lines - 1)]
    assert contents.read(at, 4).tolist() == expected
    if lines == 512:
        assert len(np.unique(contents.elements(512 * 128))) == 512


def test_values_are_read_by_byte_in_any_width() -> None:
    contents = _known("int32 squares: element i = i*i - 300")
    whole = contents.elements(64).view(np.uint8)
    for width in (1, 2, 4):
        offsets = np.arange(0, 60, width)
        expected = [int.from_bytes(whole[at : at + width].tobytes(), "little") for at in offsets]
        assert contents.read(offsets, width).tolist() == expected


def test_zeros_with_a_remark() -> None:
    assert _known("zeros; accumulates from launch to launch").read(np.array([0, 400]), 4).tolist() == [0, 0]


def test_arrays_and_files(tmp_path: Path) -> None:
    table = np.array([[3, 1], [4, 1]], np.int32)
    np.save(tmp_path / "table.npy", table)
    for contents in (array_contents(table), _known(f"npy {tmp_path / 'table.npy'}")):
        assert contents.read(np.array([0, 8, 16]), 4).tolist() == [3, 4, 0]
    with pytest.raises(UserError, match="give a NumPy"):
        parse_contents(f"npy {tmp_path / 'absent.npy'}")


@pytest.mark.parametrize(
    "sentence",
    [
        None,
        "",
        "random",
        "fp31 iota: element i = i",
        "int32 odd: element i = j",
        "int32 code: element i = __import__('os').getpid()",
        "int32 other: element i = hsh(i); hsh(x): x*=3",
        "int32 unfinished: element i = (i+",
    ],
)
def test_what_is_not_understood_is_unknown_data(sentence: str | None) -> None:
    assert parse_contents(sentence) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [("1+2*3", 7), ("2^3^2", 512), ("-2^2", -4), ("7 mod 4 & 2", 2), ("1<<2+1", 8), ("2i+1", 11), ("3(i-1)", 12),
     ("(i+0.5)*2^-1", 2.75), ("max(i, 9) - min(i, 1)", 8), ("10/4", 2.5), ("floor(2.7)", 2)],
)
def test_formulas(text: str, value: float) -> None:
    assert float(parse_formula(text)({"i": np.array(5)})) == value


@pytest.mark.parametrize("text", ["", "1+", "(1", "1 2", "f(1)", "i.real", "[1]", "sqrt", "max 1"])
def test_formulas_outside_the_grammar(text: str) -> None:
    with pytest.raises(FormulaError):
        parse_formula(text)({"i": np.array(5)})
