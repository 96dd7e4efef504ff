"""Results to compare, gate and set beside measurements."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def result() -> dict[str, Any]:
    return {
        "kernel": "matmul_tma",
        "hw": "chip",
        "cycles": 100_000.0,
        "time_us": 60.0,
        "clock_mhz": 1700.0,
        "bound_by": "tensor",
        "bounds": {"tensor": 70_000.0, "dram": 20_000.0},
        "occupancy": {"ctas_per_sm": 1, "occupancy": 0.125, "achieved": 0.12, "warps_per_cta": 8},
        "waves": 2.5,
        "warp_instructions": 1_000_000,
        "smem": {"wavefronts": 500_000, "bank_conflicts": 0},
        "bytes": {"l2_read": 64_000_000, "dram_read": 32_000_000, "dram_write": 16_000_000},
        "cycle_stack": {"tensor": 0.6, "hbm_latency": 0.3, "launch": 0.1},
        "stalls": {"selected": 0.25, "long_scoreboard": 0.5, "wait": 0.25},
        "counters": {"l2_read_sectors": 2_000_000.0, "tensor_active_pct": 60.0},
        "weakest_inputs": [{"path": "timing.x", "confidence": "assumed"}],
        "warnings": [],
    }
