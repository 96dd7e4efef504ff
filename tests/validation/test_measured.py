"""Is a measured file read as it is, and a bad one refused in one sentence?"""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from simulator.errors import UserError
from simulator.validation.measured import cases_of, labels, numbers, read_measured, select

TEXT = 'id,cubin,launch,split,cycles\n007,abc,"{""kernel"": ""k""}",fit,12\nlib row,,,check,\n9,abc,{},check,30\n'


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    path = tmp_path / "m.csv"
    path.write_text(TEXT)
    return path


def test_do_ids_stay_text_and_library_rows_stay(measured: Path) -> None:
    cases = cases_of(read_measured(measured))
    assert [case.id for case in cases] == ["007", "lib row", "9"]
    assert cases[0].launch == '{"kernel": "k"}'
    assert cases[1].cubin == cases[1].launch == ""


def test_is_a_compressed_file_the_same(measured: Path, tmp_path: Path) -> None:
    packed = tmp_path / "m.csv.gz"
    packed.write_bytes(gzip.compress(TEXT.encode()))
    assert read_measured(packed).equals(read_measured(measured))


def test_are_rows_chosen_by_split_id_and_number(measured: Path) -> None:
    frame = read_measured(measured)
    assert list(select(frame, split="check")["id"]) == ["lib row", "9"]
    assert list(select(frame, ids=["9", "007"])["id"]) == ["007", "9"]
    assert [case.index for case in cases_of(select(frame, split="check", limit=1))] == [0]


def test_is_an_absent_column_unknown_and_not_zero(measured: Path) -> None:
    frame = read_measured(measured)
    assert np.isnan(numbers(frame, "warp_insts")).all()
    assert list(numbers(frame, "cycles"))[::2] == [12.0, 30.0]
    assert labels(frame, "kernel") == ["all"] * 3


def test_are_three_columns_enough(tmp_path: Path) -> None:
    path = tmp_path / "least.csv"
    path.write_text("launch,id,cubin\n{},a,b\n")
    assert cases_of(read_measured(path))[0].id == "a"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"id,cubin\n1,a\n", "lacks the column launch"),
        (b"", "not a readable CSV"),
        (b"id,cubin,launch\n", "holds no cases"),
        (b'id,cubin,launch\n1,2,3,4,5\n"6', "not a readable CSV"),
        (b"\xff\xfe\x00", "not a readable CSV"),
    ],
)
def test_is_a_bad_file_named_with_its_fault(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_bytes(content)
    with pytest.raises(UserError, match=said) as caught:
        read_measured(path)
    assert "bad.csv" in str(caught.value)


def test_is_a_truncated_archive_refused(tmp_path: Path) -> None:
    path = tmp_path / "cut.csv.gz"
    path.write_bytes(gzip.compress(TEXT.encode())[:40])
    with pytest.raises(UserError, match="not a readable CSV"):
        read_measured(path)


def test_is_an_unknown_choice_told_with_what_there_is(measured: Path) -> None:
    frame = read_measured(measured)
    with pytest.raises(UserError, match="the file has check, fit"):
        select(frame, split="chek")
    with pytest.raises(UserError, match="no case 8; ids look like 007"):
        select(frame, ids=["8"])
    with pytest.raises(UserError, match="no column split"):
        select(frame.drop(columns="split"), split="check")
