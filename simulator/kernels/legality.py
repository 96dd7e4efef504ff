"""Whether a chip can run a design: every limit that it breaks, with the number, the limit and the nearest legal change."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from simulator.errors import UserError
from simulator.hw.config import HardwareConfig
from simulator.kernels.instruction_sets import instruction_set


@dataclass(frozen=True)
class Violation:
    """``rule``: short name; ``message``: one sentence; ``value`` breaks ``limit``; ``change``: the nearest legal change in
    words; ``update``: the same as dotted fields of the design, empty when no single change helps."""

    rule: str
    message: str
    value: float | str
    limit: float | str
    change: str = ""
    update: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "rule": self.rule,
            "message": self.message,
            "value": self.value,
            "limit": self.limit,
            "change": self.change,
            "update": self.update,
        }


Check = Callable[[Any, HardwareConfig], list[Violation]]
Change = tuple[str, dict[str, Any]]
"""What changes, in words and as dotted fields."""
MOST_REPAIRS = 12


def updated(design: BaseModel, update: dict[str, Any]) -> BaseModel:
    """``design`` with dotted fields replaced, validated again."""
    values = design.model_dump()
    for path, value in update.items():
        *parents, name = path.split(".")
        place = values
        for parent in parents:
            place = place[parent]
        place[name] = value
    return type(design).model_validate(values)


def fewer_stages(design: Any, message: str, limit: int, fewest: int = 1) -> Violation | None:
    """The violation of a design whose shared memory is over ``limit`` bytes, when as many stages as fit, at least ``fewest``,
    mend it."""
    for stages in range(design.stages - 1, fewest - 1, -1):
        if design.model_copy(update={"stages": stages}).smem_bytes <= limit:
            return Violation("shared_memory", message, design.smem_bytes, limit, f"stages {stages}", {"stages": stages})
    return None


def variants(design: BaseModel, changes: Iterable[Change | None]) -> list[tuple[str, Any]]:
    """(what changes, design) of ``changes`` (the same, dotted fields) that are designs and change something."""
    found = []
    for what, update in filter(None, changes):
        try:
            other = updated(design, update)
        except ValueError:
            continue
        if other != design:
            found.append((what, other))
    return found


def nearest_legal(design: BaseModel, hw: HardwareConfig, check: Check) -> BaseModel | None:
    """The design after the change of each violation in turn; None when that does not end in a legal one."""
    for _ in range(MOST_REPAIRS):
        found = check(design, hw)
        if not found:
            return design
        repair = next((violation.update for violation in found if violation.update), None)
        if repair is None:
            return None
        try:
            design = updated(design, repair)
        except ValueError:
            return None
    return None


def check_threads(n_threads: int, hw: HardwareConfig) -> list[Violation]:
    """Threads of a CTA."""
    limit = hw.sm.max_threads_per_cta
    if n_threads <= limit:
        return []
    warps = limit // hw.sm.warp_size
    return [
        Violation(
            "threads",
            f"{n_threads:,} threads per CTA are more than {limit:,} on {hw.name}",
            n_threads,
            limit,
            f"at most {warps} warps in all",
        )
    ]


def check_registers(registers: int, n_threads: int, hw: HardwareConfig) -> list[Violation]:
    """Registers of a CTA against the register file."""
    unit = hw.sm.register_allocation_unit
    per_warp = -(-registers * hw.sm.warp_size // unit) * unit
    warps = -(-n_threads // hw.sm.warp_size)
    needed = per_warp * warps
    if needed <= hw.sm.n_registers:
        return []
    fits = hw.sm.n_registers // warps // unit * unit // hw.sm.warp_size
    return [
        Violation(
            "registers",
            f"{registers} registers for each of {n_threads} threads take {needed:,} registers, "
            f"an SM of {hw.name} has {hw.sm.n_registers:,}",
            needed,
            hw.sm.n_registers,
            f"at most {fits} registers per thread",
            {"max_registers": fits // 8 * 8} if fits >= 24 else {},
        )
    ]


def check_cluster(size: int, n_ctas_along: int, hw: HardwareConfig) -> list[Violation]:
    """CTAs of a cluster."""
    if size == 1:
        return []
    if hw.cluster is None:
        return [Violation("cluster", f"clusters of {size} CTAs: {hw.name} has no clusters", size, 1, "cluster 1", {"cluster": 1})]
    limit = hw.cluster.max_size
    if size > limit:
        return [
            Violation(
                "cluster",
                f"a cluster of {size} CTAs is above the portable size of {hw.name}, {limit}",
                size,
                limit,
                f"cluster {limit}",
                {"cluster": limit},
            )
        ]
    return []


def check_method(method: str, dtype: str, loads: str, hw: HardwareConfig, cluster: int = 1) -> list[Violation]:
    """Whether the instruction set has the instructions that a design asks for."""
    known = instruction_set(hw.identity.instruction_set)
    if known.generation == 0:
        raise UserError(
            f"designs are generated for chips of the sm_* instruction sets; {hw.name} executes {hw.identity.instruction_set}"
        )
    found = []
    if dtype not in known.formats(method):
        found.append(_missing_format(method, dtype, hw))
    if loads == "tma" and not known.has_bulk_copies:
        found.append(
            Violation(
                "loads",
                f"tensor bulk copies (loads tma) need sm_90, {hw.name} executes {known.name}",
                "tma",
                known.name,
                "loads cp_async",
                {"loads": "cp_async", "epilogue": "staged"},
            )
        )
    if loads == "cp_async" and not known.has_async_copies:
        found.append(
            Violation(
                "loads",
                f"asynchronous copies (loads cp_async) need sm_80, {hw.name} executes {known.name}",
                "cp_async",
                known.name,
            )
        )
    return found


def _missing_format(method: str, dtype: str, hw: HardwareConfig) -> Violation:
    known = instruction_set(hw.identity.instruction_set)
    others = [m for m in ("wgmma", "mma_sync", "ffma") if dtype in known.formats(m)]
    if others:
        update = {"multiply": others[0]}
        return Violation(
            "multiply",
            f"{hw.name} ({known.name}) does not multiply {dtype} by {method}",
            method,
            ", ".join(others),
            f"multiply {others[0]}",
            update,
        )
    formats: list[str] = [f for f in ("fp16", "bf16", "tf32", "int8", "fp8_e4m3") if f in known.formats("mma_sync")] or ["fp32"]
    nearest = "bf16" if "bf16" in formats else formats[0]
    return Violation(
        "dtype",
        f"{hw.name} ({known.name}) has no multiply-add of {dtype}; it has {', '.join(formats)}",
        dtype,
        ", ".join(formats),
        f"dtype {nearest} (convert the operands before)",
        {"dtype": nearest},
    )
