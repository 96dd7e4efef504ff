"""The limits of attention designs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from simulator.hw.config import HardwareConfig
from simulator.isa.effects import GROUP_WARPS
from simulator.kernels.attention_design import WARP_MMA_ROWS, AttentionDesign
from simulator.kernels.gemm_design import LARGEST_MMA_COLUMNS, MMA_ROWS, REGISTERS_BESIDE
from simulator.kernels.gemm_legality import multiple
from simulator.kernels.legality import Violation, check_method, check_threads, fewer_stages

KEYS_STEP = 16
"""P is multiplied 16 keys at a time."""
MOST_CONSUMERS = 3
"""Consumer warpgroups that take turns: named barriers of three."""


def check_attention(design: AttentionDesign, hw: HardwareConfig) -> list[Violation]:
    """Every limit that ``design`` breaks on ``hw``."""
    found = check_method(design.method, design.dtype, design.loads, hw)
    found += _shape(design)
    found += _feeds(design, hw)
    found += check_threads(32 * design.n_warps, hw)
    found += _shared_memory(design, hw)
    found += _roles(design, hw) if design.producer_warps == GROUP_WARPS else _registers(design)
    return [replace(violation, update=_with_dependents(violation.update, design)) for violation in found]


def _with_dependents(update: dict[str, Any], design: AttentionDesign) -> dict[str, Any]:
    """A change together with the options that make no sense without what it takes away."""
    more: dict[str, Any] = {}
    if update.get("loads") == "cp_async" or update.get("multiply", "wgmma") != "wgmma":
        more |= {"producer_warps": 0, "overlap": None, "ping_pong": False}
    if update.get("loads") == "tma":
        more |= {"load_q": "copies"}
    if "block_m" in update and design.multiply is None:
        more |= {"multiply": design.method}
    return more | update


def _shape(design: AttentionDesign) -> list[Violation]:
    """Blocks and head dimension in units of the multiply-add instruction."""
    is_group = design.method == "wgmma"
    found = multiple("warps", "warps", design.warps, GROUP_WARPS, "the warps of a warpgroup", "warps") if is_group else []
    each, what = (MMA_ROWS, "warpgroups") if is_group else (WARP_MMA_ROWS, "warps")
    n = design.warpgroups if is_group else design.warps
    found += multiple("block_m", "block m", design.block_m, each * n, f"{each} rows for each of {n} {what}", "block_m")
    found += multiple("block_n", "block n", design.block_n, KEYS_STEP, "the keys that P is multiplied by at a time", "block_n")
    found += multiple("head_dim", "head dim", design.head_dim, KEYS_STEP, "the instruction's k", "head_dim")
    for rule, what, value in (("block_n", "block n", design.block_n), ("head_dim", "head dim", design.head_dim)):
        if value > LARGEST_MMA_COLUMNS:
            message = f"{what} {value} is more than {LARGEST_MMA_COLUMNS}, the largest n of a multiply-add"
            change = {rule: LARGEST_MMA_COLUMNS}
            found.append(Violation(rule, message, value, LARGEST_MMA_COLUMNS, f"{what} {LARGEST_MMA_COLUMNS}", change))
    return found


def _feeds(design: AttentionDesign, hw: HardwareConfig) -> list[Violation]:
    found = []
    if design.loads == "tma" and not design.producer_warps and design.stages == 1:
        message = "stages 1 with bulk copies and no producer: the warps would wait for every copy; at least 2 are needed"
        found.append(Violation("stages", message, 1, 2, "stages 2", {"stages": 2}))
    if design.page_size is not None and design.loads == "tma":
        message = f"pages of {design.page_size} keys are gathered row by row: bulk copies (loads tma) fetch dense blocks"
        found.append(Violation("paged", message, "tma", "cp_async", "loads cp_async", {"loads": "cp_async"}))
    if design.page_size is not None and design.page_size % (rows := max(1, 512 // design.row_bytes)):
        size = -(-design.page_size // rows) * rows
        message = f"pages of {design.page_size} keys: a warp copies {rows} rows at a time, which must lie in one page"
        found.append(Violation("page_size", message, design.page_size, rows, f"page_size {size}", {"page_size": size}))
    if design.split_kv > design.most_steps:
        message = f"split_kv {design.split_kv} is more than the {design.most_steps} blocks of keys"
        most = design.most_steps
        found.append(Violation("split_kv", message, design.split_kv, most, f"split_kv {most}", {"split_kv": most}))
    if design.ping_pong and design.warpgroups > MOST_CONSUMERS:
        message = f"{design.warpgroups} consumer warpgroups take turns at {MOST_CONSUMERS} named barriers at most"
        found.append(Violation("ping_pong", message, design.warpgroups, MOST_CONSUMERS, "ping_pong false", {"ping_pong": False}))
    return found


def _smaller_blocks(design: AttentionDesign) -> tuple[str, dict[str, Any]]:
    """The nearest smaller block: fewer keys first, then fewer rows with their warps."""
    if design.block_n > KEYS_STEP:
        smaller = max(KEYS_STEP, design.block_n // 2 // KEYS_STEP * KEYS_STEP)
        return f"block n {smaller}", {"block_n": smaller}
    if design.warps >= 2 * GROUP_WARPS:
        halved = {"block_m": design.block_m // 2, "warps": design.warps // 2}
        return f"block m {halved['block_m']}, warps {halved['warps']}", halved
    return "", {}


def _shared_memory(design: AttentionDesign, hw: HardwareConfig) -> list[Violation]:
    limit = hw.shared_memory.max_per_cta_bytes
    if design.smem_bytes <= limit:
        return []
    message = (
        f"{design.smem_bytes:,} bytes of shared memory (Q {design.q_bytes:,}, {design.stages} stages of K and V of "
        f"{2 * design.kv_bytes:,}) are more than the {limit:,} that a CTA can have on {hw.name}"
    )
    fewest = 2 if design.loads == "tma" and not design.producer_warps else 1
    found = fewer_stages(design, message, limit, fewest)
    return [found or Violation("shared_memory", message, design.smem_bytes, limit, *_smaller_blocks(design))]


def _registers(design: AttentionDesign) -> list[Violation]:
    """O, the scores and P of a step live at once in every thread."""
    return _matrix_registers(design, design.max_registers, "a thread can have")


def _matrix_registers(design: AttentionDesign, limit: int, whose: str) -> list[Violation]:
    needed = design.matrix_registers + REGISTERS_BESIDE
    if needed <= limit:
        return []
    half = design.thread_scores // 2
    message = (
        f"head dim {design.head_dim} and blocks of {design.block_m} x {design.block_n} take {design.accumulators} registers per "
        f"thread for O, {design.thread_scores} for scores, {half} for P and {REGISTERS_BESIDE} others, {needed}, "
        f"more than the {limit} that {whose}"
    )
    left = limit - REGISTERS_BESIDE - design.accumulators
    keys = int(left / (1.5 * design.thread_rows / 4)) // KEYS_STEP * KEYS_STEP if left > 0 else 0
    if keys >= KEYS_STEP:
        return [Violation("registers", message, needed, limit, f"block n {keys}", {"block_n": keys})]
    if design.rows_per_warp > WARP_MMA_ROWS:
        rows = design.block_m // 2
        return [Violation("registers", message, needed, limit, f"block m {rows}", {"block_m": rows})]
    return [Violation("registers", message, needed, limit)]


def _roles(design: AttentionDesign, hw: HardwareConfig) -> list[Violation]:
    """Specialised warpgroups: what each role keeps must fit the register file together, and hold the matrices."""
    consumer, producer = design.role_registers
    needed = (consumer * design.warpgroups + producer) * 32 * GROUP_WARPS
    found = _matrix_registers(design, consumer, "a consumer keeps")
    if needed > hw.sm.n_registers:
        fits = (hw.sm.n_registers // (32 * GROUP_WARPS) - producer) // design.warpgroups // 8 * 8
        message = (
            f"{design.warpgroups} consumer warpgroups with {consumer} registers and a producer with "
            f"{producer} take {needed:,} registers, an SM of {hw.name} has {hw.sm.n_registers:,}"
        )
        found.append(
            Violation(
                "registers", message, needed, hw.sm.n_registers, f"consumer_registers {fits}", {"consumer_registers": fits}
            )
        )
    return found
