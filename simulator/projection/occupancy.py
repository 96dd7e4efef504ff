"""How many CTAs of a kernel fit on one SM, what limits them, and what would change that number."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from simulator.errors import UserError
from simulator.hw.config import HardwareConfig
from simulator.projection.residency import (
    RESOURCES,
    LaunchShape,
    carveout_bytes,
    ctas_by_registers,
    ctas_by_resource,
    max_registers_for,
    max_smem_for,
    registers_per_thread,
    registers_per_warp,
    smem_per_cta,
    warps_per_cta,
)


@dataclass(frozen=True)
class Cliff:
    """A change that moves the CTA count to ``ctas_per_sm`` (0: the launch fails).

    ``change``: by resource ("registers" per thread, "smem" bytes per CTA), all of it together; ``reaches``: the same
    as absolute values.
    """

    ctas_per_sm: int
    change: dict[str, int]
    reaches: dict[str, int]


@dataclass(frozen=True)
class Occupancy:
    """CTAs per SM and why. ``occupancy``: resident warps over the SM's warp slots, 0 to 1; ``limits``: CTAs that each
    resource alone allows; ``limiters``: the resources that allow the fewest; amounts are after rounding."""

    hw: str
    ctas_per_sm: int
    warps_per_sm: int
    occupancy: float
    limiters: list[str]
    limits: dict[str, int]
    warps_per_cta: int
    regs_allocated_per_warp: int
    smem_allocated_per_cta: int
    smem_carveout: int
    cluster_size: int
    cliffs: list[Cliff]

    def to_json(self) -> dict[str, Any]:
        """Plain dictionary; its keys are the contract of ``kernelcast occupancy --json``."""
        return asdict(self)


def occupancy(
    hw: HardwareConfig,
    regs: int,
    threads: int,
    smem: int = 0,
    *,
    cluster: int = 1,
    carveout: int | None = None,
    accumulator_regs: int = 0,
    is_nonportable_cluster: bool = False,
) -> Occupancy:
    """Occupancy of a launch on ``hw``; see LaunchShape for the arguments and their units.

    Raises UserError, with the number and the limit, for a launch that the chip refuses.
    """
    shape = LaunchShape(regs, threads, smem, cluster, carveout, accumulator_regs, is_nonportable_cluster)
    _refuse_impossible(hw, shape)
    limits = ctas_by_resource(hw, shape)
    ctas = min(limits.values())
    warps = warps_per_cta(hw.sm, threads)
    return Occupancy(
        hw=hw.name,
        ctas_per_sm=ctas,
        warps_per_sm=ctas * warps,
        occupancy=ctas * warps / hw.sm.max_warps,
        limiters=[name for name in RESOURCES if limits[name] == ctas and (name != "smem" or smem_per_cta(hw, smem))],
        limits=limits,
        warps_per_cta=warps,
        regs_allocated_per_warp=registers_per_warp(hw.sm, shape),
        smem_allocated_per_cta=smem_per_cta(hw, smem),
        smem_carveout=carveout_bytes(hw, shape),
        cluster_size=cluster,
        cliffs=_cliffs(hw, shape, ctas),
    )


def _cliffs(hw: HardwareConfig, shape: LaunchShape, ctas: int) -> list[Cliff]:
    """The nearest loss of each resource, then the smallest change that gains a CTA."""
    found = [_register_loss(hw, shape, ctas), _smem_loss(hw, shape, ctas), _gain(hw, shape, ctas + 1)]
    return [cliff for cliff in found if cliff is not None]


def _register_loss(hw: HardwareConfig, shape: LaunchShape, ctas: int) -> Cliff | None:
    regs = max_registers_for(hw, shape.threads, ctas, shape.accumulator_regs) + 1
    if regs + shape.accumulator_regs > hw.sm.max_registers_per_thread:
        return None
    return _cliff(hw, shape, {"registers": regs})


def _smem_loss(hw: HardwareConfig, shape: LaunchShape, ctas: int) -> Cliff | None:
    smem = max_smem_for(hw, ctas, shape.carveout) + 1
    if smem > hw.shared_memory.max_per_cta_bytes:
        return None
    return _cliff(hw, shape, {"smem": smem})


def _gain(hw: HardwareConfig, shape: LaunchShape, target: int) -> Cliff | None:
    """The registers and bytes to give up, both together, for ``target`` CTAs; None where slots or warps forbid it."""
    limits = ctas_by_resource(hw, shape)
    if min(limits["ctas"], limits["warps"]) < target:
        return None
    reaches: dict[str, int] = {}
    if limits["registers"] < target:
        reaches["registers"] = max_registers_for(hw, shape.threads, target, shape.accumulator_regs)
    if limits["smem"] < target:
        reaches["smem"] = max_smem_for(hw, target, shape.carveout)
    if reaches.get("registers", 1) < 1 or reaches.get("smem", 0) < 0:
        return None
    return _cliff(hw, shape, reaches)


def _cliff(hw: HardwareConfig, shape: LaunchShape, reaches: dict[str, int]) -> Cliff:
    moved = replace(shape, regs=reaches.get("registers", shape.regs), smem=reaches.get("smem", shape.smem))
    now = {"registers": shape.regs, "smem": shape.smem}
    change = {resource: value - now[resource] for resource, value in reaches.items()}
    return Cliff(min(ctas_by_resource(hw, moved).values()), change, reaches)


def _refuse_impossible(hw: HardwareConfig, shape: LaunchShape) -> None:
    """Raise UserError for a launch that the chip refuses, with the number and the limit."""
    _refuse_outside(hw, "threads per CTA", shape.threads, 1, hw.sm.max_threads_per_cta)
    _refuse_outside(hw, "registers per thread", shape.regs, 0, hw.sm.max_registers_per_thread)
    _refuse_outside(hw, "bytes of shared memory per CTA", shape.smem, 0, hw.shared_memory.max_per_cta_bytes)
    _refuse_accumulators(hw, shape)
    _refuse_cluster(hw, shape)
    _refuse_carveout(hw, shape)
    _refuse_register_file(hw, shape)


def _refuse_outside(hw: HardwareConfig, what: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise UserError(f"{value:,} {what} cannot launch on {hw.name}: valid is {low} to {high:,}")


def _refuse_register_file(hw: HardwareConfig, shape: LaunchShape) -> None:
    if ctas_by_registers(hw.sm, shape) > 0:
        return
    needed = registers_per_warp(hw.sm, shape) * warps_per_cta(hw.sm, shape.threads)
    fits = max_registers_for(hw, shape.threads, 1, shape.accumulator_regs)
    raise UserError(
        f"a CTA of {shape.threads:,} threads with {registers_per_thread(hw.sm, shape)} registers each takes {needed:,} "
        f"registers after rounding and cannot launch: an SM of {hw.name} has {hw.sm.n_registers:,} "
        f"(at most {fits} registers per thread at this size)"
    )


def _refuse_accumulators(hw: HardwareConfig, shape: LaunchShape) -> None:
    if shape.accumulator_regs == 0:
        return
    if hw.sm.accumulator_alignment is None:
        raise UserError(f"{hw.name} has no accumulator registers of their own, so accumulator_regs must be 0")
    _refuse_outside(hw, "accumulator registers per thread", shape.accumulator_regs, 0, hw.sm.max_registers_per_thread)
    total = registers_per_thread(hw.sm, shape)
    _refuse_outside(hw, "registers per thread with accumulators", total, 0, hw.sm.max_registers_per_thread)


def _refuse_cluster(hw: HardwareConfig, shape: LaunchShape) -> None:
    if shape.cluster == 1:
        return
    if hw.cluster is None:
        raise UserError(f"a cluster of {shape.cluster} CTAs cannot launch on {hw.name}: it has no clusters")
    if hw.cluster.max_size < shape.cluster <= hw.cluster.max_size_nonportable and not shape.is_nonportable_cluster:
        raise UserError(
            f"a cluster of {shape.cluster} CTAs is above the portable size of {hw.name}, {hw.cluster.max_size}; "
            f"up to {hw.cluster.max_size_nonportable} launch with the non-portable cluster attribute"
        )
    _refuse_outside(hw, "CTAs per cluster", shape.cluster, 1, hw.cluster.max_size_nonportable)


def _refuse_carveout(hw: HardwareConfig, shape: LaunchShape) -> None:
    listed = ", ".join(str(size) for size in hw.shared_memory.carveouts_bytes)
    if shape.carveout is not None and shape.carveout not in hw.shared_memory.carveouts_bytes:
        raise UserError(f"{hw.name} has no shared-memory carve-out of {shape.carveout:,} bytes; it has {listed}")
    allocated = smem_per_cta(hw, shape.smem)
    if allocated > carveout_bytes(hw, shape):
        raise UserError(
            f"a CTA takes {allocated:,} bytes of shared memory with the reserved part, more than the carve-out of "
            f"{carveout_bytes(hw, shape):,} bytes; carve-outs of {hw.name}: {listed}"
        )
