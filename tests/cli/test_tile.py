"""Does ``kernelcast tile`` answer in its contract, and refuse in one sentence?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from simulator.cli.app import run

SMALL = ["--m", "256", "--n", "256", "--k", "256", "--tile", "128x64x64", "--stages", "2", "--warps", "4"]


def test_a_card_has_the_keys_of_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tile", "gemm", *SMALL, "--hw", "h200", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["legal"] is True and document["violations"] == []
    assert document["projection"]["cycles"] >= max(document["projection"]["bounds"].values())
    assert {"occupancy", "smem_accesses", "suggestions", "bottlenecks", "tried"} <= document.keys()
    assert "nearest_legal" not in document


def test_an_illegal_design_ends_with_1_and_the_nearest_legal_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tile", "gemm", *SMALL, "--stages", "40", "--hw", "h200"]) == 2
    assert run(["tile", "gemm", *SMALL, "--stages", "20", "--hw", "h200", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["legal"] is False and "projection" not in document
    assert document["nearest_legal"]["stages"] == 9


def test_the_card_is_readable(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tile", "gemm", *SMALL, "--compare", "0", "--hw", "h200"]) == 0
    text = capsys.readouterr().out
    assert "legal" in text and "Occupancy" in text and "Next cliff" in text and "wavefronts" in text


def test_a_card_of_a_memory_bound_family_tells_bytes_per_second(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["softmax", "--rows", "64", "--columns", "1024", "--compare", "1", "--hw", "h200"]
    assert run(["tile", *options]) == 0
    assert "GB/s" in (text := capsys.readouterr().out) and "of the DRAM's peak" in text
    assert run(["tile", *options, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    seconds = document["projection"]["time_us"] * 1e-6
    assert document["projection"]["gigabytes_per_second"] == pytest.approx(2 * 64 * 1024 * 2 / seconds / 1e9)
    assert 0 < document["dram_share"] < 1


def test_the_card_of_an_unpadded_transpose_names_the_conflict_and_its_cure(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--operation", "transpose", "--rows", "256", "--columns", "256", "--layout", "shared", "--vector-bytes", "4"]
    assert run(["tile", "streaming", *options, "--compare", "2", "--hw", "h200", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["smem_accesses"][0]["bank_conflicts"] == 31
    assert "pad rows by 4 bytes" in document["smem_accesses"][0]["suggestion"]["text"]
    assert {one["change"] for one in document["tried"]} == {"layout xor", "layout padded"}


def test_a_design_file_is_checked_and_projected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "design.yaml"
    path.write_text("kind: gemm\nm: 256\nn: 256\nk: 256\ntile: {m: 128, n: 64, k: 64}\nstages: 2\n")
    assert run(["tile", str(path), "--compare", "0", "--hw", "h200", "--json"]) == 0
    card = json.loads(capsys.readouterr().out)
    assert run(["project", str(path), "--hw", "h200", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cycles"] == pytest.approx(card["projection"]["cycles"], rel=0.1)


def test_an_attention_card_says_problem_and_blocks(capsys: pytest.CaptureFixture[str]) -> None:
    small = ["--batch", "1", "--heads", "2", "--seq-q", "256", "--head-dim", "64", "--causal", "--producer-warps", "4"]
    assert run(["tile", "attention", *small, "--compare", "0", "--hw", "h200"]) == 0
    assert "attention 1 x 2 heads x 256 rows x 64, causal" in " ".join(capsys.readouterr().out.split())
    assert run(["tile", "attention", *small, "--block-n", "72", "--hw", "h200", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["nearest_legal"]["block_n"] == 64


def test_an_illegal_design_file_is_not_projected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "design.yaml"
    path.write_text("kind: gemm\nm: 256\nn: 256\nk: 256\ntile: {m: 128, n: 64, k: 40}\n")
    assert run(["project", str(path), "--hw", "h200"]) == 1
    assert "not a multiple of 16" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["gemm", "--m", "1", "--n", "1", "--k", "1", "--tiel", "1"], "--tiel"),
        (["gemm", "--m", "1", "--n", "1", "--k", "1", "--tile", "128x64"], "128x256x64"),
        (["gemm", "--m", "1", "--n", "1", "--k", "1", "--tile", "0x64x64"], "tile.m is 0"),
        (["gemm", "--m", "1", "--n", "1"], "'k' is missing"),
        (["softmax", "--rows", "8", "--columns", "8", "--wraps", "4"], "--wraps"),
        (["streaming", "--operation", "transpose", "--rows", "8", "--columns", "8", "--tile", "0x8"], "tile.rows is 0"),
        (["reduction", "--columns", "8", "--dtype", "fp7"], "dtype is 'fp7'"),
        (["gemn"], "neither a family"),
        (["none.yaml"], "cannot be read"),
    ],
)
def test_bad_input_is_one_sentence(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tile", *arguments, "--hw", "h200"]) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1
