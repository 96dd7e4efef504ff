"""Tuned designs on disk: one SQLite file, one row for each chip, simulator, family, shape and dtype that was tuned.

A row is one transaction: whatever ends a run leaves the rows that were finished. Several runs may write at the same time.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from simulator.errors import UserError
from simulator.tuning.envelope import Envelope, Fallback
from simulator.tuning.families import precision_of, shape_of, tunable
from simulator.tuning.search import Tuned
from simulator.version import version_of

SCHEMA_VERSION = 1
APPLICATION_ID = 0x6B63_7475
"""Marks the files of this database among other SQLite files ("kctu")."""
WAIT_SECONDS = 60.0
TUNER_ROOMS = ("device", "hw", "isa", "kernels", "lower", "memory", "projection", "sm", "trace", "tuning")
"""The sources that decide which design is best."""
MAGIC = b"SQLite format 3\x00"
HEADER_BYTES = 100
USER_VERSION_AT, APPLICATION_ID_AT = 60, 68

TABLE = """
CREATE TABLE IF NOT EXISTS designs (
    key TEXT PRIMARY KEY,           -- SHA-256 of chip digest, simulator version, problem
    chip TEXT NOT NULL,
    chip_digest TEXT NOT NULL,
    version TEXT NOT NULL,          -- of the simulator
    family TEXT NOT NULL,
    dtype TEXT NOT NULL,            -- and options that are not as usual: bf16 bias=true
    shape TEXT NOT NULL,            -- JSON: extents in order
    time_us REAL NOT NULL,          -- of the best design
    document TEXT NOT NULL,         -- JSON: problem, ranked designs with times and intervals, how they were found
    envelope TEXT NOT NULL,         -- JSON: low, high, multiples, loss
    fallback TEXT NOT NULL          -- JSON: design, multiples, expected_loss
)
"""


def tuner_version() -> str:
    """Package version and a digest of the sources that decide which design is best."""
    return version_of(TUNER_ROOMS)


@dataclass(frozen=True)
class Entry:
    """One row. ``dtype``: with what else of the problem is not as usual (see ``precision_of``); ``document``: as
    ``Tuned.to_json``; ``envelope`` and ``fallback``: as their ``to_json``."""

    chip: str
    chip_digest: str
    version: str
    family: str
    dtype: str
    shape: dict[str, int]
    time_us: float
    document: dict[str, Any]
    envelope: dict[str, Any]
    fallback: dict[str, Any]

    @property
    def design(self) -> dict[str, Any]:
        """The best one."""
        found: dict[str, Any] = self.document["ranked"][0]["design"]
        return found


def entry_of(tuned: Tuned, envelope: Envelope, fallback: Fallback) -> Entry:
    """The row of a search. Wall times are left out: the same search gives the same row."""
    document = tuned.to_json()
    document.pop("seconds")
    document["screened"].pop("seconds")
    problem: Any = tuned.problem
    return Entry(
        tuned.hw, tuned.hw_digest, tuner_version(), problem.kind, precision_of(problem), shape_of(problem), tuned.best.time_us,
        document, envelope.to_json(), fallback.to_json(),
    )  # fmt: skip


def key_of(chip_digest: str, version: str, problem: BaseModel) -> str:
    """SHA-256 (hex) of all that a row depends on."""
    parts = [SCHEMA_VERSION, chip_digest, version, problem.model_dump(mode="json")]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


class Database:
    """The file at ``path``. ``must_exist``: refuse a path where there is none (to read)."""

    def __init__(self, path: Path, must_exist: bool = False) -> None:
        self.path = path
        self._refuse_foreign(must_exist)

    def _refuse_foreign(self, must_exist: bool) -> None:
        """Look at the header before SQLite opens (and could touch) the file."""
        try:
            with self.path.open("rb") as file:
                header = file.read(HEADER_BYTES)
        except FileNotFoundError as error:
            if must_exist:
                raise UserError(f"database {self.path} does not exist; kernelcast tune ... --db {self.path} makes it") from error
            if not self.path.absolute().parent.is_dir():
                raise UserError(f"cannot write {self.path}: the folder {self.path.absolute().parent} does not exist") from error
            return
        except OSError as error:
            raise UserError(f"database {self.path} cannot be read: {error.strerror}") from error
        if not header and not must_exist:
            return
        if len(header) < HEADER_BYTES or not header.startswith(MAGIC):
            raise UserError(f"{self.path} is not a database of tuned designs (no SQLite file); give another --db")
        (version,) = struct.unpack_from(">I", header, USER_VERSION_AT)
        (application,) = struct.unpack_from(">I", header, APPLICATION_ID_AT)
        if application != APPLICATION_ID:
            raise UserError(f"{self.path} is an SQLite file, but no database of tuned designs; give another --db")
        if version != SCHEMA_VERSION:
            raise UserError(
                f"{self.path} has schema version {version}, this kernelcast reads and writes version {SCHEMA_VERSION}; "
                "tune into a new --db"
            )

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        connection: sqlite3.Connection | None = None
        try:
            connection = sqlite3.connect(self.path, timeout=WAIT_SECONDS, isolation_level=None)
            yield connection
        except sqlite3.OperationalError as error:
            raise UserError(f"database {self.path} cannot be used: {error}") from error
        except (sqlite3.DatabaseError, json.JSONDecodeError, KeyError) as error:
            raise UserError(f"database {self.path} is damaged ({error}); restore it, or tune into a new --db") from error
        finally:
            if connection is not None:
                connection.close()

    def put(self, entry: Entry) -> None:
        """Write a row, in the place of the one with the same key."""
        problem = tunable(entry.family).problem.model_validate(entry.document["problem"])
        row = (
            key_of(entry.chip_digest, entry.version, problem), entry.chip, entry.chip_digest, entry.version, entry.family,
            entry.dtype, json.dumps(entry.shape), entry.time_us, json.dumps(entry.document), json.dumps(entry.envelope),
            json.dumps(entry.fallback),
        )  # fmt: skip
        with self._opened() as connection:
            connection.execute("BEGIN IMMEDIATE")
            (found,) = connection.execute("PRAGMA application_id").fetchone()
            if not found:
                connection.execute(TABLE)
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            connection.execute(f"INSERT OR REPLACE INTO designs VALUES ({', '.join('?' * len(row))})", row)
            connection.execute("COMMIT")

    def get(self, chip_digest: str, problem: BaseModel) -> Entry | None:
        """The row that this simulator would write for ``problem``."""
        if not self.path.is_file() or not self.path.stat().st_size:
            return None
        found = self._select("key = ?", (key_of(chip_digest, tuner_version(), problem),))
        return found[0] if found else None

    def entries(self, family: str | None = None, dtype: str | None = None) -> list[Entry]:
        """All rows, or those of a family and dtype, in an order that does not depend on who wrote when."""
        wanted = {name: value for name, value in (("family", family), ("dtype", dtype)) if value is not None}
        where = " AND ".join(f"{name} = ?" for name in wanted) or "1"
        return self._select(where, tuple(wanted.values()))

    def _select(self, where: str, values: tuple[str, ...]) -> list[Entry]:
        columns = "chip, chip_digest, version, family, dtype, shape, time_us, document, envelope, fallback"
        with self._opened() as connection:
            rows = connection.execute(f"SELECT {columns} FROM designs WHERE {where} ORDER BY key", values).fetchall()
            return sorted((_entry(row) for row in rows), key=_order)


def _entry(row: tuple[Any, ...]) -> Entry:
    chip, chip_digest, version, family, dtype, shape, time_us, *rest = row
    document, envelope, fallback = (json.loads(text) for text in rest)
    return Entry(chip, chip_digest, version, family, dtype, json.loads(shape), time_us, document, envelope, fallback)


def _order(entry: Entry) -> tuple[Any, ...]:
    return entry.chip, entry.chip_digest, entry.version, entry.family, entry.dtype, tuple(entry.shape.values())
