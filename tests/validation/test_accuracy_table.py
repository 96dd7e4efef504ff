"""Is the accuracy table of the README what the committed error table says?"""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.errors import UserError
from simulator.validation.accuracy_table import BEGIN, END, main, replace_between_markers, table
from simulator.validation.error_table import error_table
from simulator.validation.evaluation import evaluate
from tests.validation.runs import four_cases


@pytest.fixture
def errors(tmp_path: Path) -> Path:
    """The error table of four cases, 10 % and 30 % off in the reported split."""
    path = tmp_path / "errors.csv"
    error_table(evaluate(*four_cases())).to_csv(path, index=False)
    return path


def test_is_the_table_written_between_its_markers(errors: Path, tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    arguments = ["--readme", str(readme), "--run", "Triton", str(errors)]
    assert main(arguments) == 0
    text = readme.read_text()
    assert text.startswith(f"before\n{BEGIN}\n**Triton**: 2 of 2 compiled kernels predicted.\n")
    assert text.endswith(f"{END}\nafter\n") and "old" not in text
    assert "| `gemm` | 2 | 20.0 % | 20.0 % | -10.0 % | 50 % |  |  |" in text
    assert "| measured < 15 us | 1 | 10.0 % |" in text
    assert main(arguments) == 0 and readme.read_text() == text


@pytest.mark.parametrize(
    ("content", "said"),
    [("split,quantity\ncheck,cycles\n", "lacks the column group"), ("", "cannot be read"), (None, "cannot be read")],
)
def test_is_another_file_refused(content: str | None, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    readme, errors = tmp_path / "README.md", tmp_path / "errors.csv"
    readme.write_text(f"{BEGIN}\n{END}\n")
    if content is not None:
        errors.write_text(content)
    assert main(["--readme", str(readme), "--run", "T", str(errors)]) == 2
    assert said in capsys.readouterr().err
    assert readme.read_text() == f"{BEGIN}\n{END}\n"


def test_is_a_readme_without_markers_refused() -> None:
    with pytest.raises(UserError, match="lacks the marker lines"):
        replace_between_markers("text", "table")


@pytest.mark.parametrize(
    ("page", "errors"), [("README.md", "errors.csv"), ("projections/validation/README.md", "ladder/errors.csv")]
)
def test_do_the_readmes_print_the_committed_errors(page: str, errors: str, repository: Path) -> None:
    readme = (repository / page).read_text(encoding="utf-8")
    printed = readme[readme.index(BEGIN) + len(BEGIN) : readme.index(END)].strip()
    title = printed.partition("**:")[0].removeprefix("**")
    assert printed == table(title, repository / "projections" / "validation" / "h200" / errors), "run: make accuracy"
