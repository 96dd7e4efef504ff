"""Is every shipped chip valid, sourced value by value, and the size that its sources say?"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from simulator.data_files import data_folder
from simulator.hw.catalog import chip_names, load_sources
from simulator.hw.loader import load_hw
from simulator.hw.provenance import CONFIDENCES
from simulator.projection.occupancy import occupancy

KIB = 1024


@pytest.mark.parametrize("name", chip_names())
def test_does_the_chip_load_and_answer(name: str) -> None:
    chip = load_hw(name)
    assert occupancy(chip, regs=8, threads=chip.sm.warp_size).ctas_per_sm > 0
    assert chip.provenance
    for path in chip.provenance:
        origin = chip.provenance[path]
        assert origin.confidence in CONFIDENCES
        assert chip.provenance.sources[origin.source].title
        if origin.source == "assumption":
            assert origin.confidence == "assumed", path


@pytest.mark.parametrize(
    ("name", "sms", "per_sm", "per_cta", "threads", "ctas"),
    [
        ("h200", 132, 233_472, 232_448, 2048, 32),
        ("h100_sxm", 132, 233_472, 232_448, 2048, 32),
        ("a100_sxm", 108, 167_936, 166_912, 2048, 32),
        ("b200", 148, 233_472, 232_448, 2048, 32),
        ("rtx_3090", 82, 102_400, 101_376, 1536, 16),
        ("rtx_4090", 128, 102_400, 101_376, 1536, 24),
        ("mi300x", 304, 65_536, 65_536, 2048, 32),
    ],
)
def test_are_the_launch_limits_the_documented_ones(
    name: str, sms: int, per_sm: int, per_cta: int, threads: int, ctas: int
) -> None:
    chip = load_hw(name)
    assert (chip.sm.count, chip.sm.max_threads, chip.sm.max_ctas) == (sms, threads, ctas)
    shared = chip.shared_memory
    assert (shared.capacity_bytes, shared.max_per_cta_bytes) == (per_sm, per_cta)
    assert shared.capacity_bytes == shared.max_per_cta_bytes + shared.reserved_per_cta_bytes


def test_is_the_measured_chip_measured() -> None:
    chip = load_hw("h200")
    measured = ("sm.count", "sm.n_registers", "shared_memory.capacity_bytes", "l2.capacity_bytes", "clock.boost_hz")
    assert {chip.provenance[path].confidence for path in measured} == {"measured"}
    assert chip.sm.register_file_bytes == 256 * KIB
    assert chip.sm.max_warps_per_subpartition == 16
    assert chip.shared_memory.bandwidth_bytes_per_cycle == 128


def test_is_every_source_described_and_every_file_named_in_it_there(repository: Path) -> None:
    sources = load_sources(data_folder("hw_configs"))
    assert all(source.title and source.kind for source in sources.values())
    for source in sources.values():
        if source.address.startswith("projections/"):
            assert (repository / source.address.split(" ")[0]).is_file(), source.key


def test_does_no_leaf_name_a_number_without_a_source() -> None:
    """Families are not loaded on their own, so read them here: every mapping with a value has its two companions."""
    for file in sorted(data_folder("hw_configs").rglob("*.yaml")):
        if file.name != "_sources.yaml":
            document = yaml.safe_load(file.read_text())
            document.pop("extends", None)
            _assert_sourced(document, file.name)


def _assert_sourced(node: object, where: str) -> None:
    assert isinstance(node, dict), f"{where} is a bare value"
    if "value" in node:
        assert {"source", "confidence"} <= set(node), where
        return
    for key, child in node.items():
        _assert_sourced(child, f"{where}.{key}")
