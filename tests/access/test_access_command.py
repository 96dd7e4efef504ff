"""Does ``kernelcast access`` answer, draw, work through a file, and say in one sentence what is wrong?"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from simulator.cli.app import run

DATA = Path(__file__).resolve().parents[1] / "data"
H200 = ("--hw", "h200")


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    assert run(["access", *arguments, *H200, "--json"]) == 0
    out, err = capsys.readouterr()
    assert not err
    return json.loads(out)


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one sentence on stderr of a command line that must fail with exit code 2."""
    assert run(["access", *arguments]) == 2
    out, err = capsys.readouterr()
    assert not out and "Traceback" not in err and len(err.strip().splitlines()) == 1
    return err


def test_are_the_contract_keys_there(capsys: pytest.CaptureFixture[str]) -> None:
    shared = answer(capsys, "lds", "--width", "4", "--expr", "128*lane")
    assert (shared["wavefronts"], shared["ideal_wavefronts"], shared["bank_conflicts"]) == (32, 1, 31)
    assert shared["sectors"] is None and "132 instead of 128" in shared["suggestion"]["text"]
    of_global = answer(capsys, "ldg", "--width", "4", "--expr", "12*lane")
    assert (of_global["sectors"], of_global["lines"], of_global["ideal_sectors"]) == (12, 3, 4)
    assert of_global["wavefronts"] is None and of_global["suggestion"] is None and of_global["reason"]


def test_are_lanes_taken_as_a_list_too(capsys: pytest.CaptureFixture[str]) -> None:
    lanes = " ".join(str(16 * lane) if lane < 16 else "-1" for lane in range(32))
    assert answer(capsys, "LDS", "--width", "16", "--lanes", lanes)["wavefronts"] == 2


def test_does_an_override_of_the_chip_count(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["lds", "--width", "4", "--expr", "4*lane", "--set", "shared_memory.n_banks=16"]
    assert answer(capsys, *arguments)["ideal_wavefronts"] == 2


def test_is_the_picture_plain_text_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["access", "lds", "--width", "16", "--expr", "(lane//4)*128 + (lane%4)*16", *H200]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "── phase 4 of 4: 2 wavefronts" in out and "lane 4   2 2 2 2 · ·" in out
    assert max(map(len, out.splitlines()[1:35])) <= 80
    assert run(["access", "stg", "--width", "4", "--expr", "4 + 4*lane", *H200]) == 0
    out = capsys.readouterr().out
    assert "sectors 5, lines 2" in out and "  28  32  32  32" in out


def test_is_the_picture_of_64_lanes_and_banks_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["access", "lds", "--width", "16", "--expr", "(lane%32)*256 + 16*(lane//32)", "--hw", "mi355x"]) == 0
    assert "lane 63 " in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["lds", "ldg"])
def test_is_the_picture_drawn_into_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    target = tmp_path / "picture.png"
    answer(capsys, kind, "--width", "4", "--expr", "32*lane", "--png", str(target))
    assert target.read_bytes().startswith(b"\x89PNG") and [path.name for path in tmp_path.iterdir()] == ["picture.png"]


def test_is_a_whole_file_answered_with_its_other_columns_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "out.csv"
    assert run(["access", "--batch", str(DATA / "access_patterns.csv"), "-o", str(target), *H200]) == 0
    assert "519 patterns" in capsys.readouterr().out
    with (DATA / "access_patterns.csv").open() as before, target.open() as after:
        measured, answered = list(csv.DictReader(before)), list(csv.DictReader(after))
    assert len(measured) == len(answered) == 519
    for question, row in zip(measured, answered, strict=True):
        assert all(row[name] == question[name] for name in question if name != "bank_conflicts")
        assert {"wavefronts", "ideal_wavefronts", "bank_conflicts", "sectors"} <= set(row)
        if question["sectors_per_request"]:
            assert row["sectors"] == f"{float(question['sectors_per_request']):.0f}" and row["wavefronts"] == ""
        else:
            assert row["wavefronts"] == f"{float(question['shared_wavefronts']):.0f}" and row["sectors"] == ""
            assert row["bank_conflicts"] == f"{float(question['bank_conflicts']):.0f}"
            assert int(row["ideal_wavefronts"]) == int(row["wavefronts"]) - int(row["bank_conflicts"])


def test_does_a_batch_go_to_stdout_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    questions = tmp_path / "in.csv"
    lanes = " ".join(str(8 * lane) for lane in range(32))
    questions.write_text(f"id,lane_offsets,kind,width_bytes\na,{lanes},lds,4\n")
    rows = answer(capsys, "--batch", str(questions))["rows"]
    assert [(row["id"], row["wavefronts"], row["sectors"]) for row in rows] == [("a", 2, None)]
    questions.write_text("kind,width_bytes,lane_offsets\n")
    assert answer(capsys, "--batch", str(questions)) == {"rows": []}


GOOD_LANES = " ".join(str(4 * lane) for lane in range(32))
BAD_ROWS = [
    (f"lds,3,{GOOD_LANES}", "no width 3"),
    (f"lsd,4,{GOOD_LANES}", "unknown access kind 'lsd'"),
    (f"lds,four,{GOOD_LANES}", "width_bytes is 'four'"),
    ("lds,4,0 4 8", "needs 32 lane offsets"),
    (f"lds,4,{GOOD_LANES.replace('124', 'x')}", "entry 31 is 'x'"),
    (f"lds,8,{GOOD_LANES}", "not a multiple of 8"),
    (f"lds,4,{GOOD_LANES},surplus", "more cells"),
    ("lds,4", "needs 32 lane offsets"),
]


@pytest.mark.parametrize(("row", "complaint"), BAD_ROWS, ids=[complaint for _, complaint in BAD_ROWS])
def test_does_a_bad_row_name_its_line_and_write_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], row: str, complaint: str
) -> None:
    questions, target = tmp_path / "in.csv", tmp_path / "out.csv"
    questions.write_text(f"kind,width_bytes,lane_offsets\nlds,4,{GOOD_LANES}\n{row}\n")
    message = refusal(capsys, "--batch", str(questions), "-o", str(target), *H200)
    assert "in.csv line 3" in message and complaint in message
    assert not target.exists()


BAD_COMMANDS = [
    (("lds", "--width", "4", "--lanes", "0 4 8", *H200), "needs 32 lane offsets"),
    (("lds", "--width", "4", "--lanes", " ".join(["0"] * 31), *H200), "got 31"),
    (("lds", "--width", "8", "--expr", "4*lane", *H200), "lane 1 has the offset 4, which is not a multiple of 8"),
    (("ldsm", "--width", "4", "--expr", "8*lane", *H200), "16-byte alignment"),
    (("lds", "--width", "4", "--lanes", GOOD_LANES.replace("124", "-4"), *H200), "lane 31 has the negative offset -4"),
    (("lds", "--width", "4", "--expr", "4*lane - 8", *H200), "gives -8 for lane 0"),
    (("ldd", "--width", "4", "--expr", "lane", *H200), "one of lds, sts"),
    (("lds", "--width", "3", "--expr", "3*lane", *H200), "no width 3"),
    (("ldsm", "--width", "8", "--expr", "16*lane", *H200), "number of 8x8 matrices is one of 1, 2 or 4"),
    (("lds", "--width", "4", "--expr", "128*lan", *H200), "unknown name 'lan'"),
    (("lds", "--width", "4", "--expr", "128*", *H200), "not an expression"),
    (("lds", "--width", "4", "--expr", "lane/4", *H200), "write //"),
    (("lds", "--width", "4", "--expr", "4//lane", *H200), "division by zero"),
    (("lds", "--width", "4", "--expr", "1 << (lane * 10**9)", *H200), "not allowed"),
    (("lds", "--width", "4", "--expr", "1 << 99", *H200), "shift by 99"),
    (("lds", "--width", "4", "--expr", "__import__('os').getpid()", *H200), "not allowed"),
    (("lds", "--width", "4", "--expr", "4*lane", "--lanes", GOOD_LANES, *H200), "either --lanes or --expr"),
    (("lds", "--width", "4", "--expr", "4*lane"), "needs --hw"),
    (("lds", "--width", "4", "--expr", "4*lane", "--hw", "h2000"), "h2000"),
    (("lds", "--width", "4", "--expr", "4*lane", "-o", "x.csv", *H200), "-o goes with --batch"),
    (("lds", "--batch", "x.csv", *H200), "leave KIND"),
    (("--batch", "nowhere.csv", "-o", "out.csv", *H200), "nowhere.csv does not exist"),
    (("ldg", "--width", "4", "--expr", "4*lane", "--hw", "mi300x"), "lacks the section l1"),
    (("ldg", "--width", "4", "--expr", "4*lane", "--png", "no/such/folder/x.png", *H200), "does not exist"),
]


@pytest.mark.parametrize(("arguments", "complaint"), BAD_COMMANDS, ids=[complaint for _, complaint in BAD_COMMANDS])
def test_is_bad_input_told_in_one_sentence(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], complaint: str
) -> None:
    assert complaint in refusal(capsys, *arguments)


def test_is_a_batch_without_its_columns_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    questions = tmp_path / "in.csv"
    questions.write_text("kind,width\nlds,4\n")
    assert "lacks the columns width_bytes, lane_offsets" in refusal(capsys, "--batch", str(questions), "-o", "o", *H200)
