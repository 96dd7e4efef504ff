"""The allocation rules of an SM: what a CTA takes of it after rounding, and how many CTAs each resource holds.

As counted on measured launches: a warp's registers are rounded up to the allocation unit; the warps that the register
file holds are rounded down to the allocation granularity; threads are rounded up to whole warps; shared memory takes a
reserved part per CTA and is rounded up to its unit.  Compute units with SIMD register files and an LDS follow the same
rules with their own numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from simulator.hw.config import HardwareConfig, Sm

RESOURCES = ("ctas", "registers", "smem", "warps")


@dataclass(frozen=True)
class LaunchShape:
    """What a kernel asks of an SM.

    ``regs`` and ``accumulator_regs``: 32-bit registers per thread; ``threads``: per CTA; ``smem``: static plus
    dynamic bytes per CTA; ``cluster``: CTAs per cluster; ``carveout``: shared-memory bytes of the SM, None for the
    largest.
    """

    regs: int
    threads: int
    smem: int = 0
    cluster: int = 1
    carveout: int | None = None
    accumulator_regs: int = 0
    is_nonportable_cluster: bool = False


def ctas_by_resource(hw: HardwareConfig, shape: LaunchShape) -> dict[str, int]:
    """CTAs per SM that each of RESOURCES alone allows; 0 where not even one fits."""
    return {
        "ctas": _cta_slots(hw.sm, shape.threads),
        "registers": ctas_by_registers(hw.sm, shape),
        "smem": _ctas_by_smem(hw, shape),
        "warps": hw.sm.max_warps // warps_per_cta(hw.sm, shape.threads),
    }


def warps_per_cta(sm: Sm, threads: int) -> int:
    """Warps of a CTA: threads rounded up."""
    return -(-threads // sm.warp_size)


def registers_per_thread(sm: Sm, shape: LaunchShape) -> int:
    """Registers per thread with accumulators, which start at an aligned register of the same file; at least one."""
    if shape.accumulator_regs and sm.accumulator_alignment:
        return _round_up(shape.regs, sm.accumulator_alignment) + shape.accumulator_regs
    return max(shape.regs, 1)


def registers_per_warp(sm: Sm, shape: LaunchShape) -> int:
    """Registers that one warp holds after rounding (its share, where registers are handed out CTA by CTA)."""
    if sm.is_register_allocation_per_cta:
        return _registers_per_cta(sm, shape) // _warps_allocated(sm, shape)
    return _round_up(registers_per_thread(sm, shape) * sm.warp_size, sm.register_allocation_unit)


def ctas_by_registers(sm: Sm, shape: LaunchShape) -> int:
    """CTAs that the register file holds."""
    if sm.is_register_allocation_per_cta:
        return sm.n_registers // _registers_per_cta(sm, shape)
    warps = sm.n_registers // registers_per_warp(sm, shape)
    return _round_down(warps, sm.warp_allocation_granularity) // warps_per_cta(sm, shape.threads)


def smem_per_cta(hw: HardwareConfig, smem: int) -> int:
    """Shared-memory bytes that a CTA holds: its request and the reserved part, rounded up."""
    return _round_up(smem + hw.shared_memory.reserved_per_cta_bytes, hw.shared_memory.allocation_unit_bytes)


def carveout_bytes(hw: HardwareConfig, shape: LaunchShape) -> int:
    """The carve-out of the launch: the one asked for, else the largest."""
    return hw.shared_memory.carveouts_bytes[-1] if shape.carveout is None else shape.carveout


def max_registers_for(hw: HardwareConfig, threads: int, n_ctas: int, accumulator_regs: int = 0) -> int:
    """The most registers per thread with which the register file still holds ``n_ctas`` CTAs; 0 if none does."""
    shape = LaunchShape(regs=0, threads=threads, accumulator_regs=accumulator_regs)
    low, high = 0, hw.sm.max_registers_per_thread - accumulator_regs
    while low < high:
        middle = (low + high + 1) // 2
        if ctas_by_registers(hw.sm, replace(shape, regs=middle)) >= n_ctas:
            low = middle
        else:
            high = middle - 1
    return low


def max_smem_for(hw: HardwareConfig, n_ctas: int, carveout: int | None = None) -> int:
    """The most shared memory per CTA (bytes, as the kernel asks) with which ``n_ctas`` CTAs fit; negative if none."""
    shared = hw.shared_memory
    available = shared.carveouts_bytes[-1] if carveout is None else carveout
    allocated = _round_down(available // n_ctas, shared.allocation_unit_bytes)
    return min(allocated - shared.reserved_per_cta_bytes, shared.max_per_cta_bytes)


def _ctas_by_smem(hw: HardwareConfig, shape: LaunchShape) -> int:
    """CTAs by shared memory; a kernel that takes none is limited by the CTA slots alone."""
    allocated = smem_per_cta(hw, shape.smem)
    return carveout_bytes(hw, shape) // allocated if allocated else hw.sm.max_ctas


def _cta_slots(sm: Sm, threads: int) -> int:
    """CTA slots; a CTA of several warps also needs a hardware barrier, of which there may be fewer."""
    if sm.max_multi_warp_ctas is not None and threads > sm.warp_size:
        return min(sm.max_ctas, sm.max_multi_warp_ctas)
    return sm.max_ctas


def _registers_per_cta(sm: Sm, shape: LaunchShape) -> int:
    """Registers of a CTA where they are handed out CTA by CTA."""
    registers = _warps_allocated(sm, shape) * sm.warp_size * registers_per_thread(sm, shape)
    return _round_up(registers, sm.register_allocation_unit)


def _warps_allocated(sm: Sm, shape: LaunchShape) -> int:
    return _round_up(warps_per_cta(sm, shape.threads), sm.warp_allocation_granularity)


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def _round_down(value: int, unit: int) -> int:
    return value // unit * unit
