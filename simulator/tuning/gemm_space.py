"""Every GEMM design worth a thought: tiles, stages, warps, roles, schedules, clusters, raster, splits of k, swizzles.

Legality is that of ``simulator.kernels.gemm_legality``, on whole columns. Left out are designs that do the same as another
one (a raster group of more rows than there are, more stages than steps, a persistent launch of a single round).
"""

from __future__ import annotations

import numpy as np

from simulator.errors import UserError
from simulator.hw.config import HardwareConfig
from simulator.isa.effects import GROUP_WARPS
from simulator.kernels.families import FAMILIES
from simulator.kernels.gemm_design import MMA_ROWS, REGISTERS_BESIDE, STORE_BOX_COLUMNS_BYTES, Format, ProductDesign
from simulator.kernels.gemm_legality import COPY_ALIGNMENT
from simulator.kernels.instruction_sets import instruction_set
from simulator.tuning.designs import Designs, choices, concatenate, product
from simulator.tuning.gemm_columns import (
    DIRECT,
    LOADS,
    STAGED,
    TMA,
    ProductProblem,
    accumulators,
    role_register_table,
    smem_bytes,
    thread_tile,
    warp_grid,
)

COLUMNS = (8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256)
STEP_BYTES = (32, 64, 128, 256)
"""Of a tile's row: what one instruction multiplies, a half line, a line, two."""
STAGES = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16)
GROUPS = (1, 2, 4, 8, 16)
SPLITS = (2, 3, 4, 6, 8, 16)
CLUSTERS = (2, 4)
LEAST_STEPS_OF_A_SPLIT = 4


def space(problem: ProductProblem, hw: HardwareConfig) -> Designs:
    """Legal designs on ``hw``, one a row. UserError where the problem itself rules them out."""
    known = instruction_set(hw.identity.instruction_set)
    parts: list[Designs] = []
    if problem.dtype in known.formats("wgmma"):
        parts += [_specialised(problem), _whole_warpgroups(problem, "tma"), _whole_warpgroups(problem, "cp_async")]
    if problem.dtype in known.formats("mma_sync"):
        loads = LOADS if known.has_bulk_copies else LOADS[1:]
        parts += [_single_warps(problem, load) for load in loads]
    if problem.dtype in known.formats("ffma"):
        parts.append(_scalar())
    found = [with_launches(part, problem) for part in parts]
    found = [part.take(_is_legal(part, problem, hw) & _is_different(part, problem, hw)) for part in found]
    found = [part for part in found if len(part)]
    if not found:
        raise UserError(why_none(problem, hw))
    return concatenate(found)


def requirements(design: ProductDesign) -> dict[str, int]:
    """Of which number each extent must be a multiple, for the copies and stores of ``design``."""
    return {"m": 1, "n": column_multiple(design), "k": COPY_ALIGNMENT // design.format.n_bytes}


def column_multiple(design: ProductDesign) -> int:
    """Of which number the columns of C must be a multiple, for its stores."""
    stores_rows = design.epilogue != "direct" and design.split_k == 1 and not design.stream_k
    return max(1, COPY_ALIGNMENT // design.result_bytes) if stores_rows else 1


NEAR = ("tile_m", "tile_n", "tile_k", "warps", "method", "loads", "producer_warps", "ping_pong")
"""Designs that agree in all of these are near-copies of each other."""
STEPS = (
    ("tile_m", "warps"), ("tile_n", "epilogue"), ("tile_k", "swizzle"), ("stages",), ("producer_warps", "ping_pong", "warps"),
    ("persistent",), ("stream_k", "split_k"), ("cluster", "multicast"), ("group_m",),
)  # fmt: skip
"""What may change together in one step of the search."""


def preference(d: Designs) -> tuple[np.ndarray, ...]:
    """Among designs that the screen cannot tell apart, first to last reason (smaller is better): full swizzle spans, deep
    rings, a square raster, no cluster."""
    return (np.where(d["swizzle"] == 128, 0, 1), -d["stages"], np.abs(np.log2(d["group_m"]) - 3), d["cluster"])


def _steps(fmt: Format, row_bytes: tuple[int, ...] = STEP_BYTES) -> Designs:
    """k of a tile with its swizzle: the widest that a row fills."""
    return choices(("tile_k", "swizzle"), [(size // fmt.n_bytes, min(size, 128)) for size in row_bytes])


def _stages() -> Designs:
    return choices(("stages",), [(s,) for s in STAGES])


def _fixed(**values: int) -> Designs:
    return choices(tuple(values), [tuple(values.values())])


def _epilogue(part: Designs, problem: ProductProblem, loads: str) -> Designs:
    """The widest stores that the tile and C's rows allow: whole boxes or lines, else straight from registers."""
    row = part["tile_n"] * problem.result_bytes
    if loads == "tma":
        whole = (row <= STORE_BOX_COLUMNS_BYTES) | (row % STORE_BOX_COLUMNS_BYTES == 0)
    else:
        whole = (row & (row - 1) == 0) & (row * part["tile_m"] >= COPY_ALIGNMENT * 32 * part["warps"])
    whole &= problem.n * problem.result_bytes % COPY_ALIGNMENT == 0
    kind = np.where(whole, TMA if loads == "tma" else STAGED, DIRECT)
    return Designs({**part.columns, "epilogue": kind.astype(np.int64)})


def _specialised(problem: ProductProblem) -> Designs:
    """A producer warpgroup; each consumer warpgroup multiplies its rows, or whole tiles in turn."""
    roles = [(64, 4, 0), (128, 4, 0), (128, 8, 0), (256, 8, 0), (192, 12, 0), (64, 8, 1), (128, 8, 1)]
    part = product(
        choices(("tile_m", "warps", "ping_pong"), roles),
        choices(("tile_n",), [(n,) for n in _widths(problem)]),
        _steps(problem.format),
        _stages(),
        _fixed(method=0, loads=0, producer_warps=GROUP_WARPS),
    )
    return _epilogue(part.take(part["stages"] > 1), problem, "tma")


def _whole_warpgroups(problem: ProductProblem, loads: str) -> Designs:
    """All warps load and multiply."""
    part = product(
        choices(("tile_m", "warps"), [(64, 4), (128, 4), (128, 8), (256, 8)]),
        choices(("tile_n",), [(n,) for n in _widths(problem) if loads == "tma" or n & (n - 1) == 0]),
        _steps(problem.format),
        _stages(),
        _fixed(ping_pong=0, method=0, loads=LOADS.index(loads), producer_warps=0),
    )
    return _epilogue(part.take((part["stages"] > 1) | (loads == "tma")), problem, loads)


def _single_warps(problem: ProductProblem, loads: str) -> Designs:
    part = product(
        choices(("tile_m", "tile_n"), [(m, n) for m in (16, 32, 64, 128) for n in (16, 32, 64, 128, 256)]),
        choices(("warps",), [(2,), (4,), (8,)]),
        _steps(problem.format),
        _stages(),
        _fixed(ping_pong=0, method=1, loads=LOADS.index(loads), producer_warps=0),
    )
    return _epilogue(part.take(part["stages"] > 1), problem, loads)


def _scalar() -> Designs:
    part = product(
        choices(("tile_m", "tile_n"), [(m, n) for m in (32, 64, 128, 256) for n in (32, 64, 128, 256)]),
        choices(("warps",), [(4,), (8,)]),
        choices(("tile_k", "swizzle"), [(32, 0)]),
        choices(("stages",), [(s,) for s in (2, 3, 4, 5)]),
        _fixed(ping_pong=0, method=2, loads=1, producer_warps=0, epilogue=DIRECT),
    )
    return part


def _widths(problem: ProductProblem) -> list[int]:
    return [n for n in COLUMNS if problem.dtype != "int8" or n <= 24 or n % 16 == 0]


def with_launches(part: Designs, problem: ProductProblem) -> Designs:
    """``part`` with every way to hand out its tiles: raster, persistence, clusters, splits and streams of k."""
    names = ("persistent", "stream_k", "split_k", "cluster", "multicast", "group_m")
    rows = [(persistent, 0, 1, 1, 0, group) for persistent in (0, 1) for group in GROUPS]
    if problem.can_split:
        rows += [(0, 0, split, 1, 0, 8) for split in SPLITS] + [(0, 1, 1, 1, 0, 8)]
    plain = product(part, choices(names, rows))
    special = part.take(part["producer_warps"] > 0)
    clusters = [
        (persistent, 0, 1, size, cast, group)
        for persistent in (0, 1) for group in GROUPS for size in CLUSTERS for cast in (1, 2)
    ]  # fmt: skip
    return concatenate([plain, product(special, choices(names, clusters))]) if len(special) else plain


def _is_legal(d: Designs, problem: ProductProblem, hw: HardwareConfig) -> np.ndarray:
    fmt = problem.format
    legal = smem_bytes(d, problem) <= hw.shared_memory.max_per_cta_bytes
    legal &= 32 * (d["warps"] + d["producer_warps"]) <= hw.sm.max_threads_per_cta
    legal &= d["cluster"] <= (hw.cluster.max_size if hw.cluster is not None else 1)
    legal &= problem.row_elements * fmt.n_bytes % COPY_ALIGNMENT == 0
    shared = np.where(d["multicast"] == 1, d["tile_m"], d["tile_n"])
    legal &= (d["multicast"] == 0) | (shared % (8 * d["cluster"]) == 0)
    held = accumulators(d)
    for groups, (consumer, producer) in role_register_table().items():
        of_role = (d["producer_warps"] > 0) & (d["warps"] == GROUP_WARPS * groups)
        fits = (consumer * groups + producer) * 32 * GROUP_WARPS <= hw.sm.n_registers
        legal &= ~of_role | (fits & (held + REGISTERS_BESIDE <= consumer))
    legal &= held <= hw.sm.max_registers_per_thread
    return legal & _has_whole_instructions(d, problem)


def _has_whole_instructions(d: Designs, problem: ProductProblem) -> np.ndarray:
    fmt, method = problem.format, d["method"]
    along_m, along_n = warp_grid(d)
    m, n, k = fmt.warp_shape
    by_warp = (d["tile_m"] % (m * along_m) == 0) & (d["tile_n"] % (n * along_n) == 0) & (d["tile_k"] % k == 0)
    edge_m, edge_n = thread_tile(d)
    by_thread = (d["tile_n"] % (8 * edge_n) == 0) & (d["tile_m"] % (4 * edge_m) == 0)
    by_thread &= (edge_m >= 4) & (edge_n >= 4) & (edge_m <= 16) & (edge_n <= 16)
    return np.where(method == 0, d["tile_k"] % fmt.async_k == 0, np.where(method == 1, by_warp, by_thread))


def _is_different(d: Designs, problem: ProductProblem, hw: HardwareConfig) -> np.ndarray:
    """Whether a design does something that no other row does."""
    tiles_m, tiles_n = -(-problem.m // d["tile_m"]), -(-problem.n // d["tile_n"])
    steps = -(-problem.k_steps(d["tile_k"]) // d["split_k"])
    keeps = (d["group_m"] == 1) | (d["group_m"] < 2 * tiles_m)
    keeps &= (d["stages"] <= steps) | (d["stages"] == 2)
    keeps &= (d["split_k"] == 1) | (steps >= LEAST_STEPS_OF_A_SPLIT)
    keeps &= (d["persistent"] == 0) | (tiles_m * tiles_n > hw.sm.count)
    along = np.where(d["multicast"] == 1, tiles_n, tiles_m)
    keeps &= (d["cluster"] == 1) | (along >= d["cluster"])
    rows, columns = _least_power(problem.m, MMA_ROWS), _least_power(problem.n, COLUMNS[0])
    keeps &= (d["tile_m"] < 2 * rows) & (d["tile_n"] < 2 * columns)
    return keeps


def _least_power(extent: int, least: int) -> int:
    """The smallest power of two that holds ``extent``, at least ``least``."""
    return max(least, 1 << (extent - 1).bit_length())


def why_none(problem: ProductProblem, hw: HardwareConfig) -> str:
    """Why the problem has no design on ``hw``, in a sentence."""
    values = {name: value for name, value in problem.model_dump().items() if value is not None}
    family = FAMILIES[problem.kind]
    violations = family.check(family.model.model_validate(values | {"epilogue": "direct"}), hw)
    if not violations:
        return f"{problem.kind} {problem.m}x{problem.n} {problem.dtype}: no design of the space is legal on {hw.name}"
    change = f"; {violations[0].change}" if violations[0].change else ""
    return f"{problem.kind} {problem.dtype}: no design is legal on {hw.name}: {violations[0].message}{change}"
