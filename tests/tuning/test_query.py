"""Does a database answer exactly, nearby and elsewhere, and do exported dispatch tables answer the same?"""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from simulator.errors import UserError
from simulator.tuning.database import Database
from simulator.tuning.export import export
from simulator.tuning.query import Answer, Chip, one_chip, query
from tests.tuning.entries import ENTRIES, QUESTIONS, entry


@pytest.fixture
def database(tmp_path: Path) -> Database:
    found = Database(tmp_path / "d.db")
    for one in ENTRIES:
        found.put(one)
    return found


def ask(database: Database, m: int, n: int, k: int, dtype: str) -> Answer:
    return query(database, "gemm", dtype, {"m": m, "n": n, "k": k})


@pytest.mark.parametrize(("m", "n", "k", "dtype", "kind", "stages"), QUESTIONS)
def test_is_the_answer_exact_or_nearby_or_a_fallback(
    database: Database, m: int, n: int, k: int, dtype: str, kind: str, stages: int
) -> None:
    found = ask(database, m, n, k, dtype)
    assert (found.kind, found.design["stages"]) == (kind, stages)
    assert [found.design[name] for name in "mnk"] == [m, n, k]
    assert found.to_json()["from"] == kind


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ((256, 256, 255, "bf16"), "k a multiple of 8"),
        ((256, 256, 256, "tf32"), "no gemm designs of tf32; it holds gemm bf16, gemm bf16 bias=true activation=gelu, gemm fp16"),
    ],
)
def test_is_what_it_cannot_answer_one_sentence(database: Database, question: tuple[Any, ...], said: str) -> None:
    with pytest.raises(UserError, match=said):
        ask(database, *question)


def test_must_one_of_several_chips_be_named(database: Database) -> None:
    database.put(entry(chip="next"))
    rows = database.entries()
    digest = rows[0].chip_digest
    with pytest.raises(UserError, match=r"h200 \(\w+\), next \(\w+\): name one with --hw"):
        one_chip(rows, None, "d.db")
    assert {one.chip for one in one_chip(rows, Chip("next", digest), "d.db")} == {"next"}
    with pytest.raises(UserError, match="no design for b200"):
        one_chip(rows, Chip("b200", digest), "d.db")


def test_are_forms_of_a_chip_kept_apart(database: Database) -> None:
    database.put(replace(ENTRIES[0], chip_digest="changed"))
    rows = database.entries()
    assert len(one_chip(rows, Chip("h200", "changed"), "d.db")) == 1
    assert len(one_chip(rows, Chip("h200", ENTRIES[0].chip_digest), "d.db")) == len(ENTRIES)
    with pytest.raises(UserError, match="--set where values were changed"):
        one_chip(rows, Chip("h200", "neither"), "d.db")


def test_does_the_python_table_answer_as_the_database(database: Database, tmp_path: Path) -> None:
    path = tmp_path / "dispatch.py"
    path.write_text(export(database.entries(), path))
    spec = importlib.util.spec_from_file_location("dispatch", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for m, n, k, dtype, _, _ in QUESTIONS:
        kind, design = module.gemm(m, n, k, dtype)
        expected = ask(database, m, n, k, dtype)
        assert (kind, design["stages"], design["tile_m"]) == (
            expected.kind, expected.design["stages"], expected.design["tile"]["m"],
        )  # fmt: skip
        assert design["epilogue"] == expected.design["epilogue"]
    assert module.gemm(256, 256, 255, "bf16") is None
    assert module.gemm(256, 256, 256, "int8") is None


MAIN = """
#include <cstdio>
#include "dispatch.h"

int main() {
  const char* kinds[] = {"nothing", "exact", "envelope", "fallback"};
  const struct { long long m, n, k; const char* dtype; } asked[] = {%s};
  for (const auto& one : asked) {
    kernelcast::GemmAnswer found = kernelcast::gemm_design(one.m, one.n, one.k, one.dtype);
    std::printf("%%s %%lld %%lld\\n", kinds[int(found.from)], found.design ? found.design->stages : 0,
                found.design ? found.design->tile_m : 0);
  }
}
"""


@pytest.mark.parametrize("compiler", [name for name in ("g++", "clang++") if shutil.which(name)])
def test_does_the_cpp_table_compile_and_answer_as_the_database(compiler: str, database: Database, tmp_path: Path) -> None:
    header = tmp_path / "dispatch.h"
    header.write_text(export(database.entries(), header))
    asked = [question[:4] for question in QUESTIONS] + [(256, 256, 255, "bf16")]
    (tmp_path / "main.cpp").write_text(MAIN % ", ".join(f'{{{m}, {n}, {k}, "{dtype}"}}' for m, n, k, dtype in asked))
    flags = ["-std=c++11", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([compiler, *flags, "main.cpp", "-o", "main"], cwd=tmp_path, check=True)
    lines = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True).stdout.splitlines()
    answers = [ask(database, *question) for question in asked[:-1]]
    assert lines == [f"{a.kind} {a.design['stages']} {a.design['tile']['m']}" for a in answers] + ["nothing 0 0"]


def test_are_tables_complete(database: Database, tmp_path: Path) -> None:
    rows = database.entries()
    table = tmp_path / "d.csv"
    table.write_text(export(rows, table))
    found = pd.read_csv(table)
    assert found["design_stages"].tolist() == [one.design["stages"] for one in rows]
    assert {"chip", "simulator", "m", "time_us", "low_m", "high_k", "multiple_n", "fallback_tile_m"} <= set(found.columns)
    document = json.loads(export(rows, tmp_path / "d.json"))
    assert [one["shape"] for one in document["designs"]] == [one.shape for one in rows]
    with pytest.raises(UserError, match=r"one of \.csv, \.json, \.py, \.h"):
        export(rows, tmp_path / "d.xlsx")
