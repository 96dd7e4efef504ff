"""Contents of input buffers, regenerated from the sentence that describes how they were filled.

Understood sentences (the ``contents`` of a launch description):

* ``zeros``, optionally followed by a remark after ``;``
* ``<dtype> <name>: element i = <formula>[, <symbol>=<formula>...][; hsh(x): ...]``
* ``uint32 pointer chase over <lines> lines of <bytes> bytes: all <words> words of line l hold the number of the next
  line, <formula in l>``

* ``npy <path>``: the elements of a NumPy file

Everything else is unknown data. Elements are computed where they are read, so that a gigabyte costs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simulator.errors import UserError
from simulator.frontends.sass.formula import FormulaError, parse_formula

ARRAY_FILE = "npy "
HASH_DEFINITION = "x^=x>>16; x*=0x7feb352d; x^=x>>15; x*=0x846ca68b; x^=x>>16"
CHUNK = 1 << 20
"""Elements that are computed at once: formulas take several times their room."""
_DTYPES: dict[str, np.dtype] = {
    name: np.dtype(kind)
    for names, kind in (
        ("fp32 f32 float32", "f4"), ("fp64 f64 float64", "f8"), ("fp16 f16 float16", "f2"), ("bf16 bfloat16", "u2"),
        ("uint8 u8", "u1"), ("int8 i8", "i1"), ("uint16 u16", "u2"), ("int16 i16", "i2"),
        ("uint32 u32", "u4"), ("int32 i32", "i4"), ("uint64 u64", "u8"), ("int64 i64", "i8"),
    )
    for name in names.split()
}
_BFLOAT = ("bf16", "bfloat16")
_FORMULA = re.compile(r"(?P<dtype>\w+)\b[^:]*: element i = (?P<body>[^;]*)(?:; hsh\(x\): (?P<hash>.*))?")
_CHASE = re.compile(
    r"(?P<dtype>\w+) pointer chase over \d+ lines of (?P<bytes>\d+) bytes: all (?P<words>\d+) words of line l "
    r"hold the number of the next line, (?P<body>.*)"
)
_REMARK = re.compile(r"\(uint(?:8|16|32|64)(?: index)?(?: arithmetic)?\)")
_WORD_SPLIT = re.compile(r",\s*(?=[A-Za-z_]\w*\s*=)")


@dataclass(frozen=True)
class Contents:
    """Elements of one buffer by index. ``element``: int64 indices [n] -> elements [n] of ``dtype`` (bfloat16 as the
    bits of a uint16); ``repeat``: so many elements from each multiple of it on are equal."""

    dtype: np.dtype
    element: Callable[[np.ndarray], np.ndarray]
    repeat: int = 1

    def elements(self, n_bytes: int) -> np.ndarray:
        """The whole buffer of ``n_bytes`` bytes as an array of ``dtype``."""
        return self.element(np.arange(n_bytes // self.dtype.itemsize, dtype=np.int64))

    def distinct(self, n_bytes: int) -> np.ndarray:
        """The elements of a buffer of ``n_bytes`` bytes as an array of ``dtype``, equal ones once."""
        n_elements = n_bytes // self.dtype.itemsize
        step = self.repeat * CHUNK
        ranges = [(at, min(n_elements, at + step)) for at in range(0, n_elements, step)]
        parts = [self.element(np.arange(first, end, self.repeat, dtype=np.int64)) for first, end in ranges]
        return np.concatenate(parts) if parts else np.zeros(0, self.dtype)

    def read(self, offsets: np.ndarray, n_bytes: int) -> np.ndarray:
        """Little-endian values of ``n_bytes`` (1, 2, 4) at byte offsets [n]: int64 [n], zero-extended."""
        value = np.zeros(np.shape(offsets), np.int64)
        for k in range(n_bytes):
            value |= self._byte(np.asarray(offsets, np.int64) + k) << np.int64(8 * k)
        return value

    def _byte(self, offsets: np.ndarray) -> np.ndarray:
        size = self.dtype.itemsize
        raw = np.ascontiguousarray(self.element(offsets // size)).view(f"u{size}")
        byte: np.ndarray = (raw >> (offsets % size * 8).astype(raw.dtype)).astype(np.int64) & 0xFF
        return byte


def array_contents(array: np.ndarray) -> Contents:
    """Contents given as an array; elements past its end are zero."""
    flat = np.ascontiguousarray(array).reshape(-1)

    def element(indices: np.ndarray) -> np.ndarray:
        inside = indices < len(flat)
        return np.asarray(np.where(inside, flat[np.where(inside, indices, 0)], flat.dtype.type(0)))

    return Contents(flat.dtype, element)


def parse_contents(sentence: str | None) -> Contents | None:
    """Contents that a sentence describes; None when there is none or it is not understood (unknown data).
    UserError when a NumPy file that it names cannot be read."""
    if not sentence:
        return None
    if sentence.startswith(ARRAY_FILE):
        return array_contents(_load_array(sentence.removeprefix(ARRAY_FILE).strip()))
    if sentence.split(";")[0].strip() == "zeros":
        return Contents(np.dtype("u1"), lambda indices: np.zeros(np.shape(indices), np.uint8))
    try:
        return _chase(sentence) or _formula(sentence)
    except FormulaError:
        return None


def _load_array(path: str) -> np.ndarray:
    try:
        array: np.ndarray = np.load(Path(path), allow_pickle=False)
    except (OSError, ValueError, EOFError):
        raise UserError(f"{path}: contents cannot be read; give a NumPy .npy file of numbers") from None
    return array


def _chase(sentence: str) -> Contents | None:
    found = _CHASE.fullmatch(sentence)
    if found is None or found["dtype"] not in _DTYPES:
        return None
    words = int(found["words"])
    node = parse_formula(_REMARK.sub("", found["body"]))

    def values(indices: np.ndarray) -> np.ndarray:
        return node({"l": indices // words})

    return _computed(found["dtype"], values, words)


def _formula(sentence: str) -> Contents | None:
    found = _FORMULA.fullmatch(sentence)
    if found is None or found["dtype"] not in _DTYPES:
        return None
    if "hsh" in found["body"] and not (found["hash"] or "").startswith(HASH_DEFINITION):
        return None
    first, *definitions = _WORD_SPLIT.split(_REMARK.sub("", found["body"]))
    node = parse_formula(first)
    symbols = {name.strip(): parse_formula(text) for name, text in (d.split("=", 1) for d in definitions)}

    def values(indices: np.ndarray) -> np.ndarray:
        variables = {"i": indices}
        return node(variables | {name: symbol(variables) for name, symbol in symbols.items()})

    return _computed(found["dtype"], values)


def _computed(dtype: str, values: Callable[[np.ndarray], np.ndarray], repeat: int = 1) -> Contents:
    """Contents of computed elements (see Contents); a formula with an undefined name fails here, not at the first read."""
    values(np.zeros(1, np.int64))

    def element(indices: np.ndarray) -> np.ndarray:
        computed = np.broadcast_to(values(np.asarray(indices, np.int64)), np.shape(indices))
        return bfloat16_bits(computed) if dtype in _BFLOAT else computed.astype(_DTYPES[dtype])

    return Contents(_DTYPES[dtype], element, repeat)


def bfloat16_bits(values: np.ndarray) -> np.ndarray:
    """Bits of values rounded to bfloat16, nearest even: uint16."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32).astype(np.uint64)
    rounded: np.ndarray = ((bits + np.uint64(0x7FFF) + (bits >> np.uint64(16) & np.uint64(1))) >> np.uint64(16))
    return rounded.astype(np.uint16)
