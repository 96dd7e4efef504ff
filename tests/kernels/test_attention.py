"""Do generated attention kernels do the work of attention, with every option, and does each run to its end?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.errors import UserError
from simulator.hw.config import HardwareConfig
from simulator.hw.loader import load_hw
from simulator.kernels.attention import SAMPLE_STEPS, build, extent_of, flops, least_bytes, neighbours
from simulator.kernels.attention_design import AttentionDesign
from simulator.kernels.attention_tiles import divide, n_ctas
from simulator.kernels.families import parse_design
from simulator.kernels.legality import nearest_legal
from simulator.kernels.list_scheduling import list_schedule
from simulator.kernels.sampling import Extent, choose_sample
from simulator.kernels.writer import Block
from simulator.projection.run import project_trace
from simulator.projection.tile_card import check_design
from tests.kernels.attention_designs import COPIES, DECODE, OPTIONS, SMALL, SPECIAL, design
from tests.kernels.limits import nearest_to_broken
from tests.kernels.test_gemm import executions, tensor_flops

ISA = "sm_90a"


@pytest.fixture(scope="module")
def hw() -> HardwareConfig:
    return load_hw("h200")


@pytest.mark.parametrize("option", OPTIONS)
def test_every_option_runs_to_the_end(option: str, hw: HardwareConfig) -> None:
    one = design(**OPTIONS[option])
    assert check_design(one, hw) == []
    projection = project_trace(build(one, ISA), hw, explains=False)
    assert projection.cycles >= max(projection.bounds.values())


@pytest.mark.parametrize("option", OPTIONS)
def test_multiply_adds_are_those_of_the_steps(option: str) -> None:
    one = design(**OPTIONS[option])
    steps = sum(work.steps * len(work.members) for work in divide(one))
    assert tensor_flops(build(one, ISA)) == 4 * one.block_m * one.block_n * one.head_dim * steps


@pytest.mark.parametrize("heads_kv", [4, 2])
@pytest.mark.parametrize("extra", [{}, SPECIAL, COPIES])
def test_work_of_whole_blocks_equals_the_closed_form(heads_kv: int, extra: dict[str, object]) -> None:
    one = design(batch=2, heads=4, heads_kv=heads_kv, **extra)
    assert flops(one) == 4 * 2 * 4 * 256 * 256 * 64 == tensor_flops(build(one, ISA))
    assert least_bytes(one) == 2 * 2 * 64 * 256 * (4 + 4 + 2 * heads_kv)


def test_causal_attention_counts_half() -> None:
    assert flops(design(causal=True)) == flops(design()) / 2
    ahead = flops(design(causal=True, seq_q=1, seq_kv=1000))
    assert ahead == pytest.approx(flops(design(seq_q=1, seq_kv=1000)), rel=1e-3)


@pytest.mark.parametrize("option", ["bulk copies", "specialised", "ping-pong", "grouped", "causal", "causal, specialised"])
def test_bulk_copies_bring_q_once_and_keys_and_values_once_a_step(option: str) -> None:
    one = design(**OPTIONS[option])
    trace = build(one, ISA)
    copied = sum(int(trace.events.count[event]) * n for _, event, n in executions(trace, "UTMALDG"))
    expected = sum(len(work.members) * (one.q_bytes + 2 * one.kv_bytes * work.steps) for work in divide(one))
    assert copied == expected


@pytest.mark.parametrize("option", ["asynchronous copies", "ragged", "decode", "decode, split", "decode, pages"])
def test_asynchronous_copies_touch_every_byte_of_the_keys_of_a_head(option: str) -> None:
    one = design(**OPTIONS[option])
    trace = build(one, ISA)
    k = next(b for b in trace.buffers if b.name == "k")
    hits = np.zeros(k.n_bytes // 16, np.int64)
    for number, warps in enumerate(trace.streams):
        for cta in np.flatnonzero(trace.cta_class == number):
            for stream in warps:
                is_copy = np.array([op.startswith("LDGSTS") for op in trace.static.opcode])[stream.instruction]
                for event in stream.event[is_copy & (stream.active > 0)]:
                    base = trace.events.base[event, 0]
                    start = trace.events.address[event] + (trace.cta_base[cta, base] if base >= 0 else 0) - k.address
                    offsets = trace.lane_patterns[trace.events.pattern[event]]
                    place = start + offsets[offsets >= 0]
                    np.add.at(hits, place[(place >= 0) & (place < k.n_bytes)] // 16, 1)
    times = one.blocks_m * (1 if one.pack_gqa else one.group)
    assert (hits == times).all()


@given(
    seq_q=st.integers(1, 700),
    more=st.integers(0, 700),
    block_m=st.sampled_from([64, 128, 192]),
    block_n=st.sampled_from([32, 64, 176]),
    heads=st.sampled_from([1, 4]),
    pack=st.booleans(),
    causal=st.booleans(),
    split=st.integers(1, 3),
)
@settings(max_examples=60, deadline=None)
def test_every_seen_key_of_every_row_is_in_one_step_and_unmasked_steps_have_no_other(
    seq_q: int, more: int, block_m: int, block_n: int, heads: int, pack: bool, causal: bool, split: int
) -> None:
    one = AttentionDesign(
        batch=1, heads=heads, heads_kv=1, seq_q=seq_q, seq_kv=seq_q + more, head_dim=64, block_m=block_m, block_n=block_n,
        causal=causal, pack_gqa=pack, split_kv=split,
    )  # fmt: skip
    seen = np.zeros((one.block_heads, one.rows, one.keys), np.int64)
    for work in divide(one):
        for row, head, first in zip(work.row, work.head, work.first_key, strict=True):
            rows = slice(row, row + work.valid_rows)
            last = min(one.keys, first + work.steps * block_n)
            seen[head, rows, first:last] += 1
            position = np.arange(row, row + work.valid_rows) // (one.group if pack else 1)
            limit = position + one.keys - seq_q if causal else np.full(len(position), one.keys - 1)
            unmasked = first + (work.steps - work.masked) * block_n
            assert work.steps == work.masked or unmasked - 1 <= limit.min()
    position = np.arange(one.rows) // (one.group if pack else 1)
    limit = position + one.keys - seq_q if causal else np.full(one.rows, one.keys - 1)
    wanted = np.arange(one.keys)[None, :] <= limit[:, None]
    assert (seen[:, wanted] == 1).all() and seen.max() == 1


def test_causal_classes_have_the_trip_counts_of_their_blocks() -> None:
    works = divide(design(causal=True, seq_q=512, block_m=128, block_n=64, **{"warps": 8, "producer_warps": 4}))
    assert {(work.steps, work.masked) for work in works} == {(2, 2), (4, 2), (6, 2), (8, 2)}
    assert all(len(work.members) == 2 for work in works)


def test_longest_blocks_start_first_unless_asked() -> None:
    for order, first in (("longest_first", 4), ("ascending", 1)):
        assert min(divide(design(causal=True, order=order)), key=lambda work: work.members[0]).steps == first


def test_masked_steps_cost_instructions_and_full_steps_do_not() -> None:
    changes: list[dict[str, object]] = [{}, {"causal": True}, {"causal": True, "masks": "every_step"}]
    selects = [sum(n for _, _, n in executions(build(design(**change), ISA), "ISETP")) for change in changes]
    assert selects[0] < selects[1] < selects[2]


@given(st.lists(st.sampled_from(["FADD", "FMNMX", "MUFU.EX2", "SHFL.BFLY", "F2FP"]), max_size=40), st.randoms())
@settings(max_examples=40, deadline=None)
def test_a_list_schedule_keeps_dependences(opcodes: list[str], random) -> None:  # type: ignore[no-untyped-def]
    from simulator.kernels.control_words import Value

    values = [Value(f"v{i}") for i in range(6)]
    block = Block("b", is_loop=False)
    for opcode in opcodes:
        block.op(opcode, [random.choice(values)], random.sample(values, 2))
    order = list_schedule(block.instructions)
    place = {id(one): i for i, one in enumerate(order)}
    assert sorted(place) == sorted(id(one) for one in block.instructions)
    for i, early in enumerate(block.instructions):
        for late in block.instructions[i + 1 :]:
            if set(early.writes) & {*late.reads, *late.writes} or set(early.reads) & set(late.writes):
                assert place[id(early)] < place[id(late)]


def test_removing_a_stage_never_helps_a_design_that_waits_for_memory(hw: HardwareConfig) -> None:
    one = {**DECODE, "batch": 33, "heads": 8, "heads_kv": 4, "seq_kv": 512, "head_dim": 128}
    four, three, two = (project_trace(build(design(**one, stages=s), ISA), hw, explains=False).cycles for s in (4, 3, 2))
    assert two >= 0.98 * three and three >= 0.98 * four


def test_softmax_under_multiply_adds_is_not_slower(hw: HardwareConfig) -> None:
    common = {**SPECIAL, "heads": 33, "seq_q": 512, "head_dim": 128, "block_n": 128}
    turn, over = (project_trace(build(design(**common, overlap=o), ISA), hw, explains=False).cycles for o in (False, True))
    assert over < turn


def test_registers_follow_scores_and_output() -> None:
    narrow, wide = (build(design(head_dim=d), ISA).registers_per_thread for d in (64, 128))
    assert wide - narrow >= 32
    few, many = (build(design(block_n=n), ISA).registers_per_thread for n in (64, 128))
    assert many - few >= 48


def test_parts_keep_the_shares_of_causal_blocks() -> None:
    one = design(causal=True, seq_q=4096)
    whole, part = (sum(w.steps * len(w.members) for w in divide(one, e)) for e in (None, Extent(1, 16)))
    assert part == pytest.approx(whole * 16 / extent_of(one).steps, rel=0.05)
    busy = design(seq_q=4096, heads=16, resident_ctas=132)
    assert n_ctas(busy) == 1024 and extent_of(busy).units == 8
    assert [n_ctas(busy, Extent(units, 64)) for units in (2, 8)] == [256, 1024]


@pytest.mark.parametrize("changes", [{}, {"causal": True}, {"split_kv": 2, "heads": 20}])
def test_parts_of_a_long_launch_add_up_to_it(changes: dict[str, object]) -> None:
    one = design(**{"seq_q": 4096, "heads": 40, "resident_ctas": 132, **changes})
    sample = choose_sample(extent_of(one), SAMPLE_STEPS)
    parts = [sum(float(w.steps * len(w.members)) for w in divide(one, extent)) for extent in sample.extents]
    assert len(parts) > 1
    assert sample.extrapolate(parts) == pytest.approx(sum(w.steps * len(w.members) for w in divide(one)), rel=0.02)


BREAKS: dict[str, tuple[dict[str, object], str, float | str, float | str]] = {
    "rows of the warpgroups": ({"block_m": 96, "multiply": "wgmma"}, "block_m", 96, 64),
    "rows of the warps": ({"block_m": 24, "multiply": "mma_sync"}, "block_m", 24, 64),
    "keys of a step": ({"block_n": 72}, "block_n", 72, 16),
    "most keys of a step": ({"block_n": 512, "seq_q": 1024}, "block_n", 512, 256),
    "head dimension": ({"head_dim": 72}, "head_dim", 72, 16),
    "largest head dimension": ({"head_dim": 512}, "head_dim", 512, 256),
    "registers": ({"head_dim": 256, "block_m": 128}, "registers", 376, 255),
    "registers of a consumer": ({**SPECIAL, "head_dim": 256, "block_n": 128}, "registers", 248, 240),
    "roles' registers": ({**SPECIAL, "consumer_registers": 256}, "registers", 68608, 65536),
    "shared memory": ({"stages": 20}, "shared_memory", 336040, 232448),
    "one stage of bulk copies": ({"stages": 1}, "stages", 1, 2),
    "pages of bulk copies": ({"page_size": 16, "seq_q": 64}, "paged", "tma", "cp_async"),
    "pages smaller than a copy": ({**COPIES, "page_size": 2}, "page_size", 2, 4),
    "splits": ({"split_kv": 9}, "split_kv", 9, 4),
    "four take turns": (
        {"producer_warps": 4, "warps": 16, "block_m": 256, "ping_pong": True, "consumer_registers": 120},
        "ping_pong",
        4,
        3,
    ),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_limit_is_named_and_its_change_is_legal(name: str, hw: HardwareConfig) -> None:
    changes, rule, value, limit = BREAKS[name]
    legal = nearest_to_broken(design(**changes), hw, rule, value, limit)
    assert legal is not None and check_design(legal, hw) == []


@pytest.mark.parametrize(
    ("chip", "changes", "rule"), [("a100_sxm", {}, "loads"), ("b200", {}, "multiply"), ("rtx_4090", SPECIAL, "multiply")]
)
def test_what_a_chip_lacks_is_refused(chip: str, changes: dict[str, object], rule: str) -> None:
    other, one = load_hw(chip), design(**changes)
    assert rule in [violation.rule for violation in check_design(one, other)]
    legal = nearest_legal(one, other, check_design)
    assert legal is not None and check_design(legal, other) == []


@pytest.mark.parametrize("option", OPTIONS)
def test_single_step_changes_are_designs(option: str) -> None:
    one = design(**OPTIONS[option])
    for change, other in neighbours(one):
        assert change and other != one


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"heads_kv": 3}, "not a multiple of heads_kv 3"),
        ({"head_dim": 0}, "head_dim is 0"),
        ({"causal": True, "seq_kv": 16}, "more than seq_kv 16"),
        ({"overlap": True}, "overlap needs producer_warps"),
        ({"ping_pong": True}, "ping_pong needs producer_warps"),
        ({**SPECIAL, "ping_pong": True, "overlap": False}, "ping_pong needs overlap"),
        ({**COPIES, "producer_warps": 4}, "producer_warps need"),
        ({"load_q": "registers"}, "load_q registers needs"),
        ({"dtype": "fp8_e4m3"}, "dtype is 'fp8_e4m3'"),
        ({"block_k": 64}, "'block_k' is not known"),
    ],
)
def test_bad_designs_are_one_sentence(values: dict[str, object], words: str) -> None:
    with pytest.raises(UserError) as error:
        parse_design({"kind": "attention", **SMALL, **values}, "x.yaml")
    assert words in str(error.value) and "\n" not in str(error.value)
