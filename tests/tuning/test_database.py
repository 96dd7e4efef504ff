"""Does a database keep what was written, whatever happens to its writers, and refuse what it cannot read?"""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from simulator.errors import UserError
from simulator.hw.loader import load_hw
from simulator.tuning.database import SCHEMA_VERSION, Database
from simulator.tuning.families import problem_of
from tests.kernels.designs import design
from tests.tuning.entries import ENTRIES, entry

ROOT = Path(__file__).resolve().parents[2]


def filled(path: Path) -> Database:
    database = Database(path)
    for one in ENTRIES:
        database.put(one)
    return database


def test_is_every_row_read_as_it_was_written(tmp_path: Path) -> None:
    database = filled(tmp_path / "d.db")
    assert sorted(database.entries(), key=str) == sorted(ENTRIES, key=str)
    assert database.entries("gemm", "fp16") == [ENTRIES[3]]


def test_is_a_row_found_by_problem_and_chip(tmp_path: Path) -> None:
    database = filled(tmp_path / "d.db")
    digest = load_hw("h200").digest()
    assert database.get(digest, problem_of(design(stages=9))) == ENTRIES[0]
    assert database.get(digest, problem_of(design(bias=True))) is None
    assert database.get("another chip", problem_of(design())) is None


def test_does_the_same_problem_keep_one_row(tmp_path: Path) -> None:
    database = filled(tmp_path / "d.db")
    database.put(entry(stages=1))
    assert len(database.entries()) == len(ENTRIES)
    assert entry(stages=1) in database.entries()


def test_does_the_file_not_depend_on_the_order_of_writing(tmp_path: Path) -> None:
    other = Database(tmp_path / "other.db")
    for one in reversed(ENTRIES):
        other.put(one)
    assert other.entries() == filled(tmp_path / "d.db").entries()


def other_version(path: Path) -> None:
    filled(path)
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()


def foreign(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()


def damaged(path: Path) -> None:
    filled(path)
    content = bytearray(path.read_bytes())
    content[100:] = b"\xff" * (len(content) - 100)
    path.write_bytes(content)


BAD_FILES = {
    "schema version 2": other_version,
    "no database of tuned designs": foreign,
    "no SQLite file": lambda path: path.write_text("kind: gemm\n"),
    "is damaged": damaged,
}


@pytest.mark.parametrize("said", BAD_FILES)
def test_is_a_bad_file_one_sentence_and_untouched(said: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.db"
    BAD_FILES[said](path)
    before = path.read_bytes()
    with pytest.raises(UserError, match=said) as caught:
        Database(path).entries()
    assert "\n" not in str(caught.value)
    with pytest.raises(UserError):
        Database(path).put(ENTRIES[0])
    assert path.read_bytes() == before


def test_is_a_missing_file_refused_for_reading_alone(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"d\.db does not exist"):
        Database(tmp_path / "d.db", must_exist=True)
    with pytest.raises(UserError, match=r"the folder .* does not exist"):
        Database(tmp_path / "none" / "d.db")
    assert Database(tmp_path / "d.db").get("", problem_of(design())) is None
    assert list(tmp_path.iterdir()) == []


def test_do_writers_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    rows = [entry(m=128 * i) for i in range(1, 25)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda one: Database(tmp_path / "d.db").put(one), rows))
    assert sorted(Database(tmp_path / "d.db").entries(), key=str) == sorted(rows, key=str)


KILLED = """
import sys
from pathlib import Path
from simulator.tuning.database import Database
from tests.tuning.entries import entry

for i in range(1, 10_000):
    Database(Path(sys.argv[1])).put(entry(m=8 * i))
    print(i, flush=True)
"""


def test_does_a_killed_run_leave_what_was_finished(tmp_path: Path) -> None:
    path = tmp_path / "d.db"
    writer = subprocess.Popen([sys.executable, "-c", KILLED, str(path)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    for line in writer.stdout:
        if int(line) == 5:
            break
    os.kill(writer.pid, signal.SIGKILL)
    writer.wait()
    writer.stdout.close()
    rows = Database(path, must_exist=True).entries()
    assert len(rows) >= 5 and rows[0] == entry(m=8)
    Database(path).put(ENTRIES[0])
