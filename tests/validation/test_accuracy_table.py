"""Is the accuracy table of the README what the validation run says?"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from simulator.errors import UserError
from simulator.validation.accuracy_table import BEGIN, END, main, replace_between_markers


@pytest.fixture
def run(tmp_path: Path) -> tuple[Path, Path]:
    """A measured file of four cases and its predictions, 10 % and 30 % off in the reported split."""
    cases = pd.DataFrame(
        {
            "id": ["1", "2", "3", "4"],
            "kernel": ["gemm", "gemm", "gemm", "lib"],
            "cubin": ["a", "a", "a", ""],
            "launch": ["{}", "{}", "{}", ""],
            "cycles": [1000, 1000, 1000, 1000],
            "ncu_time_ns": [1000, 90000, 1000, 1000],
            "split": ["check", "check", "fit", "check"],
        }
    )
    predictions = pd.DataFrame(
        {
            "id": ["1", "2", "3", "4"],
            "predicted_cycles": [1100, 700, 1000, None],
            "status": ["ok", "ok", "ok", "unsupported"],
            "reason": ["", "", "", "library kernel"],
        }
    )
    cases.to_csv(tmp_path / "m.csv", index=False)
    predictions.to_csv(tmp_path / "p.csv", index=False)
    return tmp_path / "m.csv", tmp_path / "p.csv"


def test_is_the_table_written_between_its_markers(run: tuple[Path, Path], tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    arguments = ["--hw", "h200", "--readme", str(readme), "--run", "Triton", *map(str, run)]
    assert main(arguments) == 0
    text = readme.read_text()
    assert text.startswith(f"before\n{BEGIN}\n**Triton**: 2 of 2 compiled kernels predicted.\n")
    assert text.endswith(f"{END}\nafter\n") and "old" not in text
    assert "| `gemm` | 2 | 20.0 % | 20.0 % | -10.0 % | 50 % |  |  |" in text
    assert "| measured < 15 us | 1 | 10.0 % |" in text
    assert main(arguments) == 0 and readme.read_text() == text


def test_is_a_prediction_of_other_cases_refused(
    run: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measured, predicted = run
    measured.write_text(measured.read_text().replace("\n4,", "\n5,"))
    readme = tmp_path / "README.md"
    readme.write_text(f"{BEGIN}\n{END}\n")
    assert main(["--hw", "h200", "--readme", str(readme), "--run", "T", str(measured), str(predicted)]) == 2
    assert "ids that the file lacks" in capsys.readouterr().err


def test_is_a_readme_without_markers_refused() -> None:
    with pytest.raises(UserError, match="lacks the marker lines"):
        replace_between_markers("text", "table")


def test_do_studies_read_the_errors_that_the_readme_prints(repository: Path) -> None:
    readme = (repository / "README.md").read_text(encoding="utf-8")
    printed = {}
    for line in readme[readme.index(BEGIN) : readme.index(END)].split("\n\n")[1].splitlines():
        cells = [cell.strip().strip("*`") for cell in line.strip("|").split("|")]
        if len(cells) > 2 and cells[1].isdigit() and not cells[0].startswith("measured"):
            printed[cells[0]] = (int(cells[1]), cells[2], cells[4])
    table = pd.read_csv(repository / "projections" / "validation" / "class_errors.csv")
    kept = {}
    for _, row in table.iterrows():
        kept[row["class"]] = (row["n"], f"{row['mean_error_percent']:.1f} %", f"{row['bias_percent']:+.1f} %")
    assert kept == printed
