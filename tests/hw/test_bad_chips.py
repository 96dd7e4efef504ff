"""Is a broken chip file refused with one sentence that names file, path, value and what would be valid?"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simulator.errors import UserError
from simulator.hw.loader import load_hw

Document = dict[str, Any]
WriteChip = Callable[..., Path]


def leaf(value: object, **more: str) -> Document:
    return {"value": value, "source": "assumption", "confidence": "assumed"} | more


def at(path: str, value: object) -> Callable[[Document], None]:
    """An edit that puts ``value`` at a dotted path of the document."""

    def edit(document: Document) -> None:
        *sections, name = path.split(".")
        for section in sections:
            document = document.setdefault(section, {})
        document[name] = value

    return edit


BROKEN_LEAVES = {
    "sm.count is the bare value 132; write {value: 132, source: <key of _sources.yaml>": at("sm.count", 132),
    "sm.cuont is unknown in section sm; did you mean count": at("sm.cuont", leaf(4)),
    "shared_mem is unknown in a chip; did you mean shared_memory": at("shared_mem", {"n_banks": leaf(32)}),
    "sm.count names the source 'h200_lauches', which _sources.yaml does not have; did you mean h200_launches": at(
        "sm.count", leaf(4, source="h200_lauches")
    ),
    "sm.count has confidence 'certain'; it must be one of vendor, measured, derived, extrapolated, assumed": at(
        "sm.count", leaf(4, confidence="certain")
    ),
    "sm.count lacks its confidence": at("sm.count", {"value": 4, "source": "assumption"}),
    "sm.count lacks its value": at("sm.count", {"source": "assumption", "confidence": "assumed"}),
    "sm.count has the unknown key 'note_'; did you mean note": at("sm.count", leaf(4, note_="x")),
    "clock.boost_hz: '1755 MB' has the wrong unit for boost_hz": at("clock.boost_hz", leaf(1755, unit="MB")),
    "clock.boost_hz: '1755MB/s' has the wrong unit": at("clock.boost_hz", leaf("1755MB/s")),
    "sm.count: '4 Hz' has a unit, but count is a plain number": at("sm.count", leaf(4, unit="Hz")),
    "sm.count: nan is not a finite number": at("sm.count", leaf(math.nan)),
    "sm.count: inf is not a finite number": at("sm.count", leaf(math.inf)),
    "sm.count: True is not a number": at("sm.count", leaf(True)),
    "sm.count is 4.5, but input should be a valid integer": at("sm.count", leaf(4.5)),
    "sm.count is -4, but input should be greater than 0": at("sm.count", leaf(-4)),
    "identity.product: the text 'x' cannot have a unit": at("identity.product", leaf("x", unit="Hz")),
    "identity.product is 3, but input should be a valid string": at("identity.product", leaf(3)),
    "sm is a section, not a value": at("sm", leaf(3)),
    "sm.count is a single value and has no key 'per_die'": at("sm.count", {"per_die": leaf(3)}),
    "extends 'hoper', which is neither a family nor a chip; did you mean hopper": at("extends", "hoper"),
    "extends must be the name of a family or chip, or a list of names": at("extends", [3]),
}

IMPOSSIBLE_MACHINES = {
    "shared_memory: n_banks is 33, which is not a power of two": at("shared_memory.n_banks", leaf(33)),
    "shared_memory: bank_width_bytes is 6": at("shared_memory.bank_width_bytes", leaf(6)),
    "carveouts_bytes reaches 262144, above capacity_bytes": at("shared_memory.carveouts_bytes", leaf(["0", "256KiB"])),
    "must be ascending": at("shared_memory.carveouts_bytes", leaf(["228KiB", "8KiB"])),
    "max_per_cta_bytes (233472) with reserved_per_cta_bytes (1024) is above": at(
        "shared_memory.max_per_cta_bytes", leaf("228KiB")
    ),
    "n_registers (65536) is not a multiple of n_subpartitions (3)": at("sm.n_subpartitions", leaf(3)),
    "n_registers (65536) is not a multiple of register_allocation_unit (96)": at(
        "sm.register_allocation_unit", leaf(96)
    ),
    "max_threads_per_cta (4096) is above max_threads (2048)": at("sm.max_threads_per_cta", leaf(4096)),
    "max_threads (4096) is above max_warps x warp_size (2048)": at("sm.max_threads", leaf(4096)),
    "line_bytes (128) is not a multiple of sector_bytes (256)": at("l1.sector_bytes", leaf(256)),
    "l1.combined_capacity_bytes (131072) is below": at("l1.combined_capacity_bytes", leaf("128KiB")),
    "l2: capacity_bytes (100) is not a multiple of n_partitions (3)": at(
        "l2", {"capacity_bytes": leaf(100), "n_partitions": leaf(3)}
    ),
    "base_hz (2000000000) is above boost_hz (1000000000)": at(
        "clock", {"boost_hz": leaf("1GHz"), "base_hz": leaf("2GHz")}
    ),
    "max_size (32) is above max_size_nonportable (16)": at("cluster.max_size", leaf(32)),
}


@pytest.mark.parametrize("sentence", BROKEN_LEAVES)
def test_is_a_malformed_value_refused(sentence: str, write_chip: WriteChip) -> None:
    path = write_chip(BROKEN_LEAVES[sentence])
    with pytest.raises(UserError) as refusal:
        load_hw(path)
    assert sentence in str(refusal.value)
    assert str(path) in str(refusal.value)


@pytest.mark.parametrize("sentence", IMPOSSIBLE_MACHINES)
def test_is_a_machine_that_cannot_exist_refused(sentence: str, write_chip: WriteChip) -> None:
    path = write_chip(IMPOSSIBLE_MACHINES[sentence])
    with pytest.raises(UserError) as refusal:
        load_hw(path)
    assert sentence in str(refusal.value)
    assert "this machine cannot exist" in str(refusal.value)
    assert str(path) in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("latency_cycles", -4, "timing.pipes.alu.latency_cycles is -4, but input should be greater than"),
        ("latency_cycles", 0, "timing.pipes.alu.latency_cycles is 0"),
        ("interval_cycles", 0, "timing.pipes.alu.interval_cycles is 0, but input should be greater than 0"),
        ("latency_cycles", math.nan, "timing.pipes.alu.latency_cycles: nan is not a finite number"),
        ("latency_cycles", "4 MHz", "timing.pipes.alu.latency_cycles: '4 MHz' has the wrong unit"),
        ("latencey_cycles", 4, "timing.pipes.alu.latencey_cycles is unknown in section timing.pipes.alu; did you mean"),
    ],
)
def test_is_an_impossible_timing_refused(name: str, value: object, sentence: str, write_chip: WriteChip) -> None:
    def edit(document: Document) -> None:
        document["extends"] = "h200"
        at(f"timing.pipes.alu.{name}", leaf(value))(document)

    path = write_chip(edit)
    with pytest.raises(UserError) as refusal:
        load_hw(path)
    assert sentence in str(refusal.value)
    assert str(path) in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("- 1\n- 2\n", "must hold a mapping of sections"),
        ("", "must hold a mapping of sections"),
        ("sm: {count: [\n", "is not valid YAML"),
        ("sm: {}\nsm: {}\n", "the key 'sm' is given twice (line 2)"),
        ("sm: {count: {value: 3, value: 4}}\n", "the key 'value' is given twice"),
        ("extends: chip\n", "extends 'chip', which is neither a family nor a chip"),
        ("extends: hopper\n", "identity.product is missing; identity needs it"),
        ("{}\n", "identity is missing; every chip needs it"),
    ],
)
def test_is_a_file_that_is_no_chip_refused(text: str, sentence: str, write_chip: WriteChip) -> None:
    path = write_chip(text=text)
    with pytest.raises(UserError) as refusal:
        load_hw(path)
    assert sentence in str(refusal.value)
    assert str(path) in str(refusal.value)


def test_is_a_binary_file_refused(tmp_path: Path) -> None:
    path = tmp_path / "chip.yaml"
    path.write_bytes(b"\x7fELF\xff\xfe")
    with pytest.raises(UserError, match=r"chip\.yaml is not text"):
        load_hw(path)


def test_are_two_chips_that_extend_each_other_refused(write_chip: WriteChip) -> None:
    write_chip(text="extends: second\n", name="first.yaml")
    second = write_chip(text="extends: first\n", name="second.yaml")
    with pytest.raises(UserError, match="extends itself"):
        load_hw(second)


def test_is_an_unknown_chip_answered_with_the_known_ones() -> None:
    with pytest.raises(UserError, match=r"no chip 'h20O'; did you mean h200.*a100_sxm.*path to a \.yaml file"):
        load_hw("h20O")
    with pytest.raises(UserError, match=r"nowhere\.yaml does not exist"):
        load_hw("nowhere.yaml")


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("sm.cuont=3", "override path sm.cuont is unknown; did you mean sm.count"),
        ("boost_hz=1GHz", "did you mean clock.boost_hz"),
        ("sm=3", "override path sm is a section; set one of its values: sm."),
        ("name=x", "override path name is unknown"),
        ("timing.opcodes.IMAD.HI.latency=3", "did you mean timing.opcodes.IMAD.HI.latency_cycles"),
        ("clock.boost_hz=4GB", "'4GB' has the wrong unit"),
        ("sm.count=many", "override sm.count=many: 'many' is not a number"),
        ("sm.count=-1", "sm.count is -1, but input should be greater than 0"),
        ("sm.count=1.5", "sm.count is 1.5, but input should be a valid integer"),
        ("shared_memory.n_banks=24", "with shared_memory.n_banks=24: this machine cannot exist"),
        ("sm.count", "override 'sm.count' must be path=value"),
        ("=3", "override '=3' must be path=value"),
        ("shared_memory.carveouts_bytes=[0,", "override shared_memory.carveouts_bytes=[0,:"),
    ],
)
def test_is_a_bad_override_refused(override: str, sentence: str) -> None:
    with pytest.raises(UserError) as refusal:
        load_hw("h200", (override,))
    assert sentence in str(refusal.value)
