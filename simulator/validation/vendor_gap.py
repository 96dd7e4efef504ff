"""How far compiled kernels are from the vendor's library on the same problem: measured, projected, and the roofline under both.

Times are durations of the kernels as the profiler measured them (``ncu_time_ns``), for library and compiled kernels alike.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from simulator.hw.config import HardwareConfig
from simulator.validation.baselines import roofline, work_of

LIBRARIES = {
    "matmul_tma": "lib_cublas_gemm",
    "matmul_ptr": "lib_cublas_gemm",
    "matmul_splitk": "lib_cublas_gemm",
    "cuda_wgmma_ws": "lib_cublas_gemm",
    "cuda_wgmma_ms": "lib_cublas_gemm",
    "cuda_hgemm": "lib_cublas_gemm",
    "cuda_sgemm_vec": "lib_cublas_gemm",
    "cuda_sgemm_2d": "lib_cublas_gemm",
    "cuda_sgemm_1d": "lib_cublas_gemm",
    "cuda_sgemm_smem": "lib_cublas_gemm",
    "cuda_sgemm_naive": "lib_cublas_gemm",
    "attn_fwd": "lib_sdpa",
    "softmax_row": "lib_softmax",
    "cuda_softmax": "lib_softmax",
    "layernorm_row": "lib_layer_norm",
    "row_sum": "lib_sum",
}
"""The library kernel that solves the problem of a compiled one."""
CHOICES = ("backend", "math")
"""Parts of a library's shape that are its own choice, not the problem's."""
FUSED_MATH = "fp32"
"""Math of kernels that multiply fp32 without tensor cores; others multiply it as tf32."""
COLUMNS = (
    "problem", "dtype", "shape", "library", "library_us", "kernel", "config", "id", "measured_us", "projected_us", "roofline_us",
    "measured_gap_pct", "projected_gap_pct", "library_over_roofline_pct",
)  # fmt: skip


@dataclass(frozen=True)
class Pair:
    """A problem with both: ``kernel`` and ``library`` are measured rows (column -> text), ``library_name`` says which of the
    library's ways is meant; ``source``: which measured file the kernel is in."""

    problem: str
    library_name: str
    source: int
    kernel: Mapping[str, str]
    library: Mapping[str, str]


def pairs(measured: Sequence[pd.DataFrame], split: str, left_out: Collection[str] = ()) -> list[Pair]:
    """Every problem of ``split`` with a compiled kernel and a library kernel: the fastest measured of each.

    ``measured``: files as ``read_measured`` gives them; library rows count in any split, since nothing is fitted to them.
    ``left_out``: ids of kernels that are passed over."""
    libraries = _fastest_libraries(measured)
    found: dict[tuple[str, ...], Pair] = {}
    for source, table in enumerate(measured):
        for row in _rows(table, LIBRARIES):
            key = _problem(row, LIBRARIES[row["kernel"]])
            if row.get("split") != split or key not in libraries or row["id"] in left_out:
                continue
            if key not in found or _duration(row) < _duration(found[key].kernel):
                library = libraries[key]
                found[key] = Pair(key[0].removeprefix("lib_"), _library_name(library), source, row, library)
    order = list(dict.fromkeys(LIBRARIES.values()))
    return sorted(found.values(), key=lambda pair: (order.index(f"lib_{pair.problem}"), pair.kernel["dtype"]))


def gap_table(found: Sequence[Pair], projected_us: Sequence[float], hw: HardwareConfig) -> pd.DataFrame:
    """COLUMNS of every pair; gaps in per cent of the library's time (negative: faster than the library)."""
    table = pd.DataFrame([pair.kernel for pair in found])
    bound_us = roofline(work_of(table, hw)) / hw.execution_sections().clock.boost_hz * 1e6
    rows = []
    for pair, projected, bound in zip(found, projected_us, bound_us, strict=True):
        library, measured = _duration(pair.library), _duration(pair.kernel)
        values = (
            pair.problem, pair.kernel["dtype"], pair.kernel["shape"], pair.library_name, library, pair.kernel["kernel"],
            pair.kernel["config"], pair.kernel["id"], measured, projected, float(bound),
            100 * (measured / library - 1), 100 * (projected / library - 1), 100 * (library / float(bound) - 1),
        )  # fmt: skip
        rows.append(dict(zip(COLUMNS, values, strict=True)))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _rows(table: pd.DataFrame, kernels: Mapping[str, str] | set[str]) -> Iterator[Mapping[str, str]]:
    for record in table[table["kernel"].isin(list(kernels))].to_dict("records"):
        row = {str(name): str(value) for name, value in record.items()}
        if _duration(row) > 0:
            yield row


def _fastest_libraries(measured: Sequence[pd.DataFrame]) -> dict[tuple[str, ...], Mapping[str, str]]:
    found: dict[tuple[str, ...], Mapping[str, str]] = {}
    for row in (row for table in measured for row in _rows(table, set(LIBRARIES.values()))):
        key = _problem(row, row["kernel"])
        if key not in found or _duration(row) < _duration(found[key]):
            found[key] = row
    return found


def _problem(row: Mapping[str, str], library: str) -> tuple[str, ...]:
    """What two kernels must have in common: operation, formats, extents."""
    shape = json.loads(row["shape"])
    extents = {name: value for name, value in shape.items() if name not in CHOICES}
    math = shape.get("math", FUSED_MATH if row["kernel"].startswith("cuda_") else "tf32") if row["dtype"] == "fp32" else ""
    return library, row["dtype"], math, json.dumps(extents, sort_keys=True)


def _library_name(row: Mapping[str, str]) -> str:
    shape = json.loads(row["shape"])
    return " ".join([row["kernel"].removeprefix("lib_"), *(str(shape[name]) for name in CHOICES if name in shape)])


def _duration(row: Mapping[str, str]) -> float:
    """Microseconds; 0 where it was not measured."""
    text = row.get("ncu_time_ns", "")
    value = float(text) / 1e3 if text not in ("", "nan") else 0.0
    return value if np.isfinite(value) else 0.0
