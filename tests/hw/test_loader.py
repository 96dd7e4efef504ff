"""Does a chip load to plain values, with its sources beside them, its family below and its overrides on top?"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from simulator import data_files
from simulator.errors import Unsupported, UserError
from simulator.hw.loader import load_hw, load_hw_with_provenance, with_overrides
from simulator.hw.provenance import CONFIDENCES

WriteChip = Callable[..., Path]


def leaf(value: object, **more: str) -> dict[str, object]:
    return {"value": value, "source": "assumption", "confidence": "assumed"} | more


def test_does_a_family_lie_below_and_the_chip_on_top(write_chip: WriteChip) -> None:
    chip, provenance = load_hw_with_provenance(write_chip())
    assert (chip.name, chip.sm.count, chip.sm.max_warps) == ("chip", 4, 64)
    assert provenance["sm.count"].file.endswith("chip.yaml")
    assert provenance["sm.max_warps"].file == "hw_configs/_families/large_sm.yaml"
    assert provenance["sm.max_warps"].source in provenance.sources


def test_do_later_parents_win_over_earlier_ones(write_chip: WriteChip) -> None:
    write_chip(text="sm: {max_ctas: {value: 8, source: assumption, confidence: assumed}}\n", name="_families/few.yaml")
    write_chip(text="sm: {max_ctas: {value: 9, source: assumption, confidence: assumed}}\n", name="_families/more.yaml")
    chip = load_hw(write_chip(lambda document: document.update(extends=["hopper", "more", "few"])))
    assert chip.sm.max_ctas == 8


def test_does_a_chip_extend_another_chip(write_chip: WriteChip) -> None:
    chip = load_hw(write_chip(lambda document: document.update(extends="h200")))
    assert chip.timing == load_hw("h200").timing
    assert chip.sm.count == 4


def test_can_a_folder_bring_its_own_sources(write_chip: WriteChip) -> None:
    write_chip(text="my_lab: {title: My lab, kind: measurement, address: here}\n", name="_sources.yaml")
    chip = load_hw(write_chip(lambda document: document["sm"].update(count=leaf(5, source="my_lab"))))
    assert chip.provenance.sources["my_lab"].title == "My lab"
    write_chip(text="my_lab: {title: My lab, kind: hearsay}\n", name="_sources.yaml")
    with pytest.raises(UserError, match="source 'my_lab' is of kind 'hearsay'; it must be one of vendor"):
        load_hw(write_chip())


def test_is_a_unit_read_from_the_text_or_from_its_own_key(write_chip: WriteChip) -> None:
    def edit(document: dict[str, Any]) -> None:
        document["clock"] = {"boost_hz": leaf("1755MHz"), "base_hz": leaf(1.2, unit="GHz")}

    clock = load_hw(write_chip(edit)).clock
    assert clock is not None
    assert (clock.boost_hz, clock.base_hz) == (1_755_000_000, 1_200_000_000)


def test_may_each_item_of_a_list_have_its_own_source(write_chip: WriteChip) -> None:
    items = [leaf(0, confidence="measured"), leaf("228KiB", confidence="derived", note="the largest")]
    chip = load_hw(write_chip(lambda document: document.update(shared_memory={"carveouts_bytes": items})))
    assert chip.shared_memory.carveouts_bytes == (0, 233_472)
    origin = chip.provenance["shared_memory.carveouts_bytes"]
    assert (origin.confidence, origin.note) == ("derived", "the largest")


def test_may_an_open_section_gain_an_entry(write_chip: WriteChip) -> None:
    pipe = {"interval_cycles": leaf(2), "latency_cycles": leaf(9)}
    chip = load_hw(write_chip(lambda document: document.update(extends="h200", timing={"pipes": {"matrix": pipe}})))
    assert chip.timing is not None
    assert chip.timing.pipes["matrix"].latency_cycles == 9
    assert chip.provenance["timing.pipes.matrix.latency_cycles"].confidence == "assumed"


def test_is_an_override_recorded_as_an_assumption() -> None:
    chip = load_hw(
        "h200", ("clock.boost_hz=1755MHz", "identity.product=5090", "shared_memory.carveouts_bytes=[0,228KiB]")
    )
    assert chip.clock is not None
    assert chip.clock.boost_hz == 1_755_000_000
    assert chip.identity.product == "5090"
    assert chip.shared_memory.carveouts_bytes == (0, 233_472)
    origin = chip.provenance["clock.boost_hz"]
    assert (origin.source, origin.confidence, origin.note) == ("override", "assumed", "set to 1755MHz")


def test_may_an_override_name_a_key_with_dots() -> None:
    chip = load_hw("h200", ("timing.opcodes.IMAD.HI.interval_cycles=3",))
    assert chip.timing is not None
    assert chip.timing.opcodes["IMAD.HI"].interval_cycles == 3


def test_may_an_override_set_what_the_chip_leaves_open() -> None:
    assert load_hw("h200", ("sm.max_multi_warp_ctas=16",)).sm.max_multi_warp_ctas == 16
    with pytest.raises(UserError, match=r"clock\.boost_hz is missing; clock needs it"):
        load_hw("b300", ("clock.base_hz=1GHz",))


def test_is_overriding_a_loaded_chip_the_same_as_loading_it_overridden() -> None:
    overrides = ("sm.count=144", "timing.opcodes.IMAD.HI.interval_cycles=3")
    later, at_once = with_overrides(load_hw("h200"), overrides), load_hw("h200", overrides)
    assert later.digest() == at_once.digest()
    assert later.provenance == at_once.provenance
    assert later == at_once


def test_does_the_digest_follow_values_and_nothing_else(write_chip: WriteChip) -> None:
    chip = load_hw(write_chip())
    renamed = load_hw(write_chip(name="other.yaml"))
    reworded = load_hw(write_chip(lambda document: document["sm"].update(count=leaf(4, note="counted"))))
    changed = load_hw(write_chip(lambda document: document["sm"].update(count=leaf(5))))
    assert len(chip.digest()) == 64
    assert chip.digest() == renamed.digest() == reworded.digest() != changed.digest()


def test_is_a_chip_frozen_and_fit_for_worker_processes() -> None:
    chip = load_hw("h200")
    with pytest.raises(ValidationError):
        chip.sm.count = 3  # type: ignore[misc]
    copy = pickle.loads(pickle.dumps(chip))
    assert (copy.digest(), copy.provenance) == (chip.digest(), chip.provenance)


def test_does_a_chip_without_timing_say_what_is_missing() -> None:
    assert load_hw("h200").missing_for_execution() == []
    assert load_hw("h200").execution_sections().dram.kind == "HBM3e"
    with pytest.raises(Unsupported, match=r"b300 cannot run kernels yet.*sections clock, l2, dram, timing"):
        load_hw("b300").execution_sections()


def test_are_the_weakest_values_ranked_first() -> None:
    provenance = load_hw("h200").provenance
    weak = provenance.weaker_than("measured")
    ranks = [CONFIDENCES.index(provenance[path].confidence) for path in weak]
    assert ranks == sorted(ranks, reverse=True)
    assert set(weak) <= set(provenance)
    assert provenance.weaker_than("derived", ["sm.count", "dram.capacity_bytes"]) == ["dram.capacity_bytes"]
    assert sum(provenance.count_by_confidence().values()) == len(provenance)


def test_are_the_shipped_chips_found_in_a_checkout_and_in_a_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = data_files.data_folder("hw_configs")
    assert (checkout / "h200.yaml").is_file()
    package = tmp_path / "site-packages" / "simulator"
    (package / "_data" / "hw_configs").mkdir(parents=True)
    monkeypatch.setattr(data_files, "_PACKAGE", package)
    assert data_files.data_folder("hw_configs") == package / "_data" / "hw_configs"
    with pytest.raises(UserError, match="lacks its kernel_traces folder"):
        data_files.data_folder("kernel_traces")
