"""Row normalizations as rows of integer columns, and their fast screen: threads and registers of a row, passes, widths."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from pydantic import model_validator

from simulator.errors import UserError
from simulator.hw.config import HardwareConfig
from simulator.isa.effects import LINE_BYTES
from simulator.kernels.gemm_design import Section
from simulator.kernels.memory_legality import check_normalization
from simulator.kernels.normalization import code_of_row
from simulator.kernels.normalization_design import NormalizationDesign, NormKind
from simulator.kernels.streaming_design import Count
from simulator.kernels.vectors import FORMATS, WIDEST_BYTES, ElementType
from simulator.lower.program import timing_of
from simulator.projection.residency import LaunchShape, ctas_by_resource
from simulator.tuning.designs import Designs, Estimate, choices, product
from simulator.tuning.gemm_steps import together

ROW_WARPS = (1, 2, 4, 8, 16, 32)
ROWS = (1, 2, 4, 8)
TURN_VECTORS = (1, 2, 4, 8)
EXPONENTIALS = {"layer_norm": 0, "rms_norm": 0, "softmax": 1}
"""Of an element and pass that has them."""

NEAR = ("warps", "rows_per_cta", "passes", "turn_vectors", "vector_bytes", "persistent")
STEPS = (
    ("warps",), ("rows_per_cta", "warps"), ("passes", "turn_vectors"), ("turn_vectors",), ("vector_bytes",), ("persistent",),
    ("masked",),
)  # fmt: skip

CODE = ("row_warps", "passes", "vectors", "vector_bytes", "persistent", "masked")
_CODE: dict[tuple[Any, ...], tuple[int, int, int]] = {}
"""By problem and CODE columns: building code takes milliseconds, and does not depend on chip or extents."""


class NormalizationProblem(Section):
    """Rows of a matrix, normalized. Fields as in NormalizationDesign."""

    kind: NormKind
    rows: Count
    columns: Count
    dtype: ElementType = "bf16"
    result: ElementType | None = None
    weights: Literal["none", "scale", "scale_shift"] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> NormalizationProblem:
        if self.kind == "softmax" and self.weights not in (None, "none"):
            raise ValueError("softmax has no weights")
        return self

    @property
    def element_bytes(self) -> int:
        return FORMATS[self.dtype].n_bytes

    @property
    def result_bytes(self) -> int:
        return FORMATS[self.result or self.dtype].n_bytes


def space(problem: NormalizationProblem, hw: HardwareConfig) -> Designs:
    """Legal designs on ``hw``, one a row. UserError where the problem itself rules them out."""
    _refuse_formats(problem, hw)
    element, row_bytes = problem.element_bytes, problem.columns * problem.element_bytes
    widths = [(n,) for n in (1, 2, 4, 8, WIDEST_BYTES) if n >= element and row_bytes % n == 0]
    passes = [(1, 0)] + [(p, v) for p in ((2,) if problem.kind == "rms_norm" else (2, 3)) for v in TURN_VECTORS]
    found = product(
        choices(("warps", "rows_per_cta"), [(w * r, r) for w in ROW_WARPS for r in ROWS if w * r <= max(ROW_WARPS)]),
        choices(("passes", "turn_vectors"), passes),
        choices(("vector_bytes",), widths),
        choices(("persistent", "masked"), [(p, m) for p in (0, 1) for m in (0, 1)]),
    )
    keeps = (found["rows_per_cta"] <= problem.rows) & (32 * found["warps"] <= hw.sm.max_threads_per_cta)
    keeps &= (_span(problem, found) < 2 * problem.columns) | (found["warps"] == found["rows_per_cta"])
    keeps &= (found["passes"] == 1) | (_turns(problem, found) > 1)
    keeps &= (found["persistent"] == 0) | (_row_groups(problem, found) > hw.sm.count)
    found = found.take(keeps)
    found = found.take(_resident(problem, found, hw) > 0)
    if not len(found):
        raise UserError(f"{problem.kind} {problem.rows}x{problem.columns}: no design of the space is legal on {hw.name}")
    return found


def _refuse_formats(problem: NormalizationProblem, hw: HardwareConfig) -> None:
    """Formats that the chip cannot convert rule the problem out."""
    found = check_normalization(NormalizationDesign.model_validate(problem.model_dump() | {"passes": 2}), hw)
    if any(violation.rule == "dtype" for violation in found):
        raise UserError(f"{problem.kind} {problem.rows}x{problem.columns}: {found[0].message}; {found[0].change}")


def design_of(problem: NormalizationProblem, row: dict[str, int]) -> NormalizationDesign:
    """The design of a row."""
    values = problem.model_dump() | {name: row[name] for name in ("warps", "rows_per_cta", "passes", "vector_bytes")}
    values |= {"persistent": bool(row["persistent"]), "masked": bool(row["masked"])}
    if row["passes"] > 1:
        threads = 32 * row["warps"] // row["rows_per_cta"]
        values["block"] = row["turn_vectors"] * threads * max(1, row["vector_bytes"] // problem.element_bytes)
    return NormalizationDesign.model_validate(values)


def row_of(design: NormalizationDesign) -> dict[str, int]:
    """The row of a design."""
    return {
        "warps": design.warps,
        "rows_per_cta": design.rows_per_cta,
        "passes": design.passes,
        "turn_vectors": design.vectors if design.passes > 1 else 0,
        "vector_bytes": design.access_bytes,
        "persistent": int(design.persistent),
        "masked": int(design.masked),
    }


def requirements(design: NormalizationDesign) -> dict[str, int]:
    """Rows are masked; a row is whole vectors, without bounds checks whole turns of all threads."""
    if design.masked:
        return {"rows": 1, "columns": design.vector}
    return {"rows": 1, "columns": design.span * (design.vectors if design.passes > 1 else 1)}


def preference(d: Designs) -> tuple[np.ndarray, ...]:
    """Among equals: one pass, wide vectors, fewer warps, bounds checked."""
    return d["passes"], -d["vector_bytes"], d["warps"], 1 - d["masked"]


def _span(problem: NormalizationProblem, d: Designs) -> np.ndarray:
    """Columns of one vector of every thread of a row."""
    return 32 * d["warps"] // d["rows_per_cta"] * np.maximum(1, d["vector_bytes"] // problem.element_bytes)


def _vectors(problem: NormalizationProblem, d: Designs) -> np.ndarray:
    """Of a thread at once."""
    return np.where(d["passes"] == 1, -(-problem.columns // _span(problem, d)), d["turn_vectors"])


def _turns(problem: NormalizationProblem, d: Designs) -> np.ndarray:
    return -(-problem.columns // (_span(problem, d) * _vectors(problem, d)))


def _row_groups(problem: NormalizationProblem, d: Designs) -> np.ndarray:
    return -(-problem.rows // d["rows_per_cta"])


def _code(problem: NormalizationProblem, d: Designs, hw: HardwareConfig) -> np.ndarray:
    """int64 [3, n]: registers per thread and instructions of a row, see ``code_of_row``; registers beyond the chip's where a
    row does not fit them."""
    own = {"row_warps": d["warps"] // d["rows_per_cta"], "vectors": _vectors(problem, d)}
    kinds, number = np.unique(np.stack([own[name] if name in own else d[name] for name in CODE]), axis=1, return_inverse=True)
    codes = [_one_code(problem, dict(zip(CODE, kind, strict=True)), hw) for kind in kinds.T.tolist()]
    return np.array(codes, np.int64).T[:, number.ravel()]


def _one_code(problem: NormalizationProblem, kind: dict[str, int], hw: HardwareConfig) -> tuple[int, int, int]:
    values = kind["vectors"] * max(1, kind["vector_bytes"] // problem.element_bytes)
    if values > hw.sm.max_registers_per_thread:
        return values, 0, 0
    key = (problem.kind, problem.dtype, problem.result, problem.weights, *kind.values())
    if key not in _CODE:
        one = problem.model_copy(update={"rows": 1, "columns": 32 * kind["row_warps"] * values})
        row = kind | {"warps": kind["row_warps"], "rows_per_cta": 1, "turn_vectors": kind["vectors"]}
        _CODE[key] = code_of_row(design_of(one, row))
    return _CODE[key]


def _resident(problem: NormalizationProblem, d: Designs, hw: HardwareConfig) -> np.ndarray:
    """CTAs per SM, int64; 0 where a design is not legal for the problem's extents."""
    registers = _code(problem, d, hw)[0]
    smem = np.where(d["warps"] > d["rows_per_cta"], 4 * d["warps"], 0)
    shapes, number = np.unique(np.stack([registers, 32 * d["warps"], smem]), axis=1, return_inverse=True)
    limit = min(hw.sm.max_registers_per_thread, NormalizationDesign.model_fields["max_registers"].default)
    found = [
        min(ctas_by_resource(hw, LaunchShape(r, n, s, 1)).values()) if r <= limit else 0 for r, n, s in shapes.T.tolist()
    ]
    whole = (d["masked"] > 0) | (problem.columns % (_span(problem, d) * _vectors(problem, d)) == 0)
    whole &= problem.columns * problem.element_bytes % d["vector_bytes"] == 0
    return np.where(whole, np.array(found, np.int64)[number.ravel()], 0)


def estimate(problem: NormalizationProblem, d: Designs, hw: HardwareConfig) -> Estimate:
    """Times of all designs, infinite where one is not legal: launch, and the longest of DRAM, the busiest SM's issue slots
    and L1, and the chain of its rows (latency of each pass, its instructions, reductions)."""
    t = timing_of(hw)
    clock = t.clock.plain_hz
    resident = _resident(problem, d, hw)
    _, once, per_turn = _code(problem, d, hw)
    turns, passes = _turns(problem, d), d["passes"]
    instructions = once + per_turn * turns
    on_sm = -(-_row_groups(problem, d) // hw.sm.count)
    at_once = np.minimum(np.maximum(1, resident), on_sm)
    rounds = -(-on_sm // at_once)
    row_bytes = problem.columns * problem.element_bytes
    exponentials = EXPONENTIALS[problem.kind] * np.maximum(1, passes) * problem.columns / hw.sm.warp_size
    special = exponentials * t.pipes["transcendental"].interval_cycles * d["rows_per_cta"] / hw.sm.n_subpartitions
    issue = np.maximum(d["warps"] * instructions, 0) / np.minimum(hw.sm.n_subpartitions, d["warps"]) + special
    port = d["rows_per_cta"] * (
        passes * row_bytes / t.l1.fill_bytes_per_cycle + problem.columns * problem.result_bytes / t.l1.store_bytes_per_cycle
    )
    l2 = t.l2.near_latency_cycles + t.l2.latency_spread_cycles + t.l2.far_extra_cycles
    lines = d["rows_per_cta"] * row_bytes / LINE_BYTES
    dram_latency = t.dram.extra_latency_cycles + t.dram.spread_cycles * np.log1p(lines)
    reductions = np.where(d["warps"] > d["rows_per_cta"], 2 * (t.barrier.base_cycles + t.barrier.per_warp_cycles * d["warps"]), 0)
    reductions = reductions + 5 * t.shared.load_latency_cycles
    alone = l2 * passes * turns + dram_latency * turns + issue + 2 * reductions
    between = np.where(d["persistent"] > 0, 0, t.launch.cta_turnaround_cycles)
    chain = rounds * (alone + between)
    weights = problem.columns * problem.element_bytes
    read = problem.rows * row_bytes + weights
    capacity = hw.l2.capacity_bytes / hw.l2.n_partitions if hw.l2 is not None else 0
    written = max(0.0, problem.rows * problem.columns * problem.result_bytes - capacity)
    moved = read / t.dram.read_bytes_per_second + written / t.dram.write_bytes_per_second
    dram = np.full(len(d), moved * clock + l2)
    start = t.launch.latency_cycles + t.launch.extra_cold_cycles + at_once * t.launch.cta_interval_cycles
    cycles = start + together(np.maximum(chain, on_sm * (issue + port)), dram)
    cycles = np.where(resident > 0, cycles, np.inf)
    return Estimate(cycles, cycles / clock * 1e6)
