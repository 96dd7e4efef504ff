"""Does any legal memory-bound design touch its arrays exactly as often as it says, and nothing else?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.errors import UserError
from simulator.hw.loader import load_hw
from simulator.kernels.families import family_of, parse_design
from simulator.kernels.legality import nearest_legal
from simulator.projection.tile_card import check_design, ready_to_build
from simulator.trace.kernel_trace import KernelTrace
from tests.kernels.test_memory_kernels import ISA, touched

FORMATS = st.sampled_from(["fp32", "bf16", "fp16", "fp8_e4m3"])
VECTORS = st.sampled_from([None, 1, 4, 8, 16])
WARPS = st.sampled_from([1, 2, 3, 8])
COMMON = {"dtype": FORMATS, "vector_bytes": VECTORS, "warps": WARPS, "masked": st.sampled_from([True, True, False])}
ANY: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "normalization": st.fixed_dictionaries({
        "kind": st.sampled_from(["layer_norm", "rms_norm", "softmax"]),
        "rows": st.integers(1, 30),
        "columns": st.integers(1, 1200),
        "passes": st.integers(1, 3),
        "rows_per_cta": st.integers(1, 3),
        "persistent": st.booleans(),
        **COMMON,
    }),
    "reduction": st.fixed_dictionaries({
        "kind": st.just("reduction"),
        "rows": st.integers(1, 40),
        "columns": st.integers(1, 1200),
        "axis": st.sampled_from(["all", "row", "column"]),
        "unroll": st.integers(1, 5),
        "finish": st.sampled_from(["atomic", "two_stage"]),
        **COMMON,
    }),
    "transpose": st.fixed_dictionaries({
        "kind": st.just("streaming"),
        "operation": st.just("transpose"),
        "rows": st.integers(1, 150),
        "columns": st.integers(1, 150),
        "layout": st.sampled_from(["plain", "shared", "padded", "xor"]),
        "coalesced": st.sampled_from(["reads", "writes"]),
        **COMMON,
    }),
    "elementwise": st.fixed_dictionaries({
        "kind": st.just("streaming"),
        "operation": st.just("elementwise"),
        "elements": st.integers(1, 20_000),
        "inputs": st.integers(1, 3),
        "unroll": st.integers(1, 7),
        "loop": st.sampled_from(["one_tile", "grid_stride"]),
        **COMMON,
    }),
}  # fmt: skip


def all_bytes(trace: KernelTrace) -> int:
    """Bytes that all lanes of the launch's global accesses move."""
    is_global = np.array([opcode.split(".")[0] in ("LDG", "STG", "RED") for opcode in trace.static.opcode])
    lanes = (trace.lane_patterns >= 0).sum(axis=1)
    total = 0
    for number, warps in enumerate(trace.streams):
        n_members = int((trace.cta_class == number).sum())
        for stream in warps:
            on = is_global[stream.instruction] & (stream.active > 0)
            each = lanes[trace.events.pattern[stream.event[on]]] * trace.static.width_bytes[stream.instruction[on]]
            total += n_members * int(each.sum())
    return total


@pytest.mark.parametrize("family", ANY)
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_every_element_is_touched_as_often_as_the_design_says(family: str, data: st.DataObject) -> None:
    hw = load_hw("h200")
    try:
        design = parse_design(data.draw(ANY[family]), "drawn")
    except UserError:
        return
    legal = nearest_legal(design, hw, check_design)
    assert legal is not None
    ready, _, _ = ready_to_build(legal, hw)
    trace = family_of(ready).build(ready, ISA)
    hits = {b.name: touched(trace, b.name, ("LDG", "STG", "RED")) for b in trace.buffers}
    for name, times in hits.items():
        if name.startswith("x"):
            assert (times == getattr(ready, "passes", 1)).all()
        assert times.min() == times.max() > 0
    assert sum(int(times.sum()) for times in hits.values()) == all_bytes(trace)
