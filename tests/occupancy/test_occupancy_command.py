"""Does ``kernelcast occupancy`` keep its contract: JSON keys, batch files, one sentence for bad input?"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from simulator.cli.app import run

KEYS = {
    "ctas_per_sm",
    "warps_per_sm",
    "occupancy",
    "limiters",
    "limits",
    "regs_allocated_per_warp",
    "smem_allocated_per_cta",
    "cliffs",
}
LAUNCH = ["occupancy", "--hw", "h200", "--regs", "168", "--threads", "384", "--smem", "161KiB"]


def refusal(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one sentence of a refused command; nothing on stdout, no traceback, exit code 2."""
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err
    return captured.err


def test_is_the_json_one_document_with_the_promised_keys(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*LAUNCH, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert set(answer) >= KEYS
    assert set(answer["limits"]) == {"ctas", "registers", "smem", "warps"}
    assert (answer["ctas_per_sm"], answer["occupancy"]) == (1, 0.1875)


def test_does_the_text_name_limiter_and_cliff(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(LAUNCH) == 0
    text = capsys.readouterr().out
    assert "1 CTA per SM on h200: 12 warps, 18.8% occupancy, limited by registers and shared memory" in text
    assert "1 register more per thread (169): the launch fails" in text


def test_does_an_override_reach_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        run([*LAUNCH, "--json", "--set", "sm.n_registers=131072", "--set", "shared_memory.max_per_cta_bytes=190KiB"])
        == 0
    )
    assert json.loads(capsys.readouterr().out)["limits"]["registers"] == 2


def test_does_a_batch_answer_every_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    questions, answers = tmp_path / "in.csv", tmp_path / "out.csv"
    questions.write_text("id,hw,regs,threads,smem,carveout\na,h200,32,1024,0,8192\nb,rtx_4090,8,256,24576,\n")
    assert run(["occupancy", "--batch", str(questions), "-o", str(answers), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["rows"]) == 2
    with answers.open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["id"], row["ctas_per_sm"]) for row in rows] == [("a", "2"), ("b", "4")]
    assert set(rows[0]) >= KEYS | {"limits.ctas", "limits.registers", "limits.smem", "limits.warps"}
    assert json.loads(rows[0]["limits"]) == {"ctas": 32, "registers": 2, "smem": 8, "warps": 2}
    assert rows[0]["limiters"] == "registers warps"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".partial")] == []


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("h200,32,2000,0", "line 3: 2,000 threads per CTA cannot launch on h200"),
        ("h201,32,128,0", "line 3: there is no chip 'h201'; did you mean h200"),
        ("h200,many,128,0", "line 3: column regs is 'many', which is not a whole number"),
        ("h200,32,128,4GHz", "line 3: column smem: '4GHz' has the wrong unit"),
        ("h200,32", "line 3: column threads is ''"),
    ],
)
def test_does_a_bad_row_name_its_line_and_leave_no_output(
    row: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    questions, answers = tmp_path / "in.csv", tmp_path / "out.csv"
    questions.write_text(f"hw,regs,threads,smem\nh200,32,128,0\n{row}\n")
    assert sentence in refusal(["occupancy", "--batch", str(questions), "-o", str(answers)], capsys)
    assert not answers.exists()


def test_are_bad_command_lines_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    headless = tmp_path / "in.csv"
    headless.write_text("hw,regs\nh200,3\n")
    sentences = {
        "needs --hw, --regs and --threads": ["occupancy", "--hw", "h200"],
        "2,000 threads": ["occupancy", "--hw", "h200", "--regs", "32", "--threads", "2000"],
        "'x'": ["occupancy", "--hw", "h200", "--regs", "x", "--threads", "128"],
        "No such option": ["occupancy", "--bogus"],
        "--smem: 'lots' is not a number": [*LAUNCH[:-1], "lots"],
        "0.5 bytes": ["occupancy", "--hw", "h200", "--regs", "1", "--threads", "1", "--smem", "0.5 bytes"],
        "unknown; did you mean sm.count": [*LAUNCH, "--set", "sm.cuont=3"],
        "lacks the columns threads, smem": ["occupancy", "--batch", str(headless), "-o", str(tmp_path / "o.csv")],
        "batch file nowhere.csv does not exist": ["occupancy", "--batch", "nowhere.csv", "-o", str(tmp_path / "o.csv")],
        "--batch needs -o": ["occupancy", "--batch", str(headless)],
        "the folder": ["occupancy", "--batch", _one_row(tmp_path), "-o", str(tmp_path / "absent" / "o.csv")],
    }
    for sentence, arguments in sentences.items():
        assert sentence in refusal(arguments, capsys)


def _one_row(folder: Path) -> str:
    (folder / "one.csv").write_text("hw,regs,threads,smem\nh200,32,128,0\n")
    return str(folder / "one.csv")
