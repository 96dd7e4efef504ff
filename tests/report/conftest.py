"""A projection with something in every field."""

from __future__ import annotations

import pytest

from simulator.projection.projection import Projection


@pytest.fixture
def projection() -> Projection:
    return Projection(
        kernel="matmul<bf16>",
        hw="chip",
        hw_digest="0123456789abcdef",
        cycles=412_345.0,
        time_us=233.1,
        clock_mhz=1769.0,
        bound_by="shared_memory",
        bounds={"issue": 101_000.0, "shared_memory": 371_000.0, "dram": 0.0},
        occupancy={"ctas_per_sm": 2, "warps_per_sm": 8, "occupancy": 0.125, "limiters": ["registers", "smem"]},
        waves=15.52,
        tail_fraction=0.03,
        warp_instructions=334_036_992,
        smem={"wavefronts": 209_041_586, "bank_conflicts": 609_232},
        bytes={"l2_read": 14_586_473_600, "l2_write": 201_378_336, "dram_read": 1_386_664_960, "dram_write": 0},
        stalls={"selected": 0.21, "long_scoreboard": 0.6, "mbarrier": 0.186, "wait": 0.003, "membar": 0.001},
        weakest_inputs=[{"path": "timing.queue_depth", "confidence": "assumed", "effect": "2 %"}],
        simulated={"fraction": 0.25, "seconds": 1.5},
        warnings=["an instruction is approximated"],
    )
