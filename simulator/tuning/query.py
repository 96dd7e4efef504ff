"""What a database says of a shape: exactly that one, one whose design still holds there, or a design for everything else.

The dispatch tables that ``simulator.tuning.export`` writes follow the same rules, in the same order, with the same arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from simulator.errors import UserError
from simulator.tuning.database import Database, Entry, tuner_version
from simulator.tuning.envelope import fits

EXACT, ENVELOPE, FALLBACK = "exact", "envelope", "fallback"

Shape = dict[str, int]


@dataclass(frozen=True)
class Answer:
    """``design`` for the asked shape; ``kind``: EXACT (tuned there), ENVELOPE (``entry`` was tuned nearby, and its design holds
    here within its loss), FALLBACK (nothing is known here; expected loss in ``entry.fallback``)."""

    kind: str
    shape: Shape
    design: dict[str, Any]
    entry: Entry

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "from": self.kind,
            "shape": self.shape,
            "design": self.design,
            "tuned_shape": self.entry.shape,
            "chip": self.entry.chip,
            "simulator": self.entry.version,
            "is_current": self.entry.version == tuner_version(),
        }
        if self.kind == EXACT:
            found["ranked"] = self.entry.document["ranked"]
        elif self.kind == ENVELOPE:
            found["envelope"] = self.entry.envelope
        else:
            found["expected_loss"] = self.entry.fallback["expected_loss"]
        return found


def distance(a: Shape, b: Shape) -> float:
    """Product of the ratios of extents, larger over smaller: 1 for the same shape."""
    found = 1.0
    for name, value in a.items():
        found *= max(value, b[name]) / min(value, b[name])
    return found


@dataclass(frozen=True)
class Chip:
    """A chip as asked for: by ``digest`` of its configuration where the database has that form of it, else by ``name``."""

    name: str
    digest: str


def one_chip(entries: Sequence[Entry], chip: Chip | None, path: object) -> list[Entry]:
    """The rows of ``chip`` (the only one, if it is not named), one a shape: of this simulator where there is one, else of the
    last version by name. UserError where that leaves nothing, or a choice."""
    own = [entry for entry in entries if chip is None or entry.chip == chip.name]
    if chip is not None and any(entry.chip_digest == chip.digest for entry in own):
        own = [entry for entry in own if entry.chip_digest == chip.digest]
    forms = list(dict.fromkeys(f"{entry.chip} ({entry.chip_digest[:8]})" for entry in own))
    if len(forms) > 1:
        raise UserError(f"{path} holds designs for {', '.join(forms)}: name one with --hw, and --set where values were changed")
    if not own:
        known = ", ".join(dict.fromkeys(entry.chip for entry in entries)) or "none"
        what = f" for {chip.name}" if chip else ""
        raise UserError(f"{path} holds no design{what} (chips: {known}); tune it with --db {path}")
    current = tuner_version()
    kept: dict[tuple[Any, ...], Entry] = {}
    for entry in sorted(own, key=lambda one: (one.version == current, one.version)):
        kept[entry.family, entry.dtype, *entry.shape.values()] = entry
    return [kept[key] for key in sorted(kept)]


def query(database: Database, family: str, dtype: str, shape: Shape, chip: Chip | None = None) -> Answer:
    """The design for ``shape``. UserError where the database has none for that family, dtype or chip."""
    rows = database.entries(family, dtype)
    if not rows:
        known = sorted({f"{entry.family} {entry.dtype}" for entry in database.entries()})
        raise UserError(f"{database.path} holds no {family} designs of {dtype}; it holds {', '.join(known) or 'nothing'}")
    return answer(one_chip(rows, chip, database.path), shape)


def answer(entries: Sequence[Entry], shape: Shape) -> Answer:
    """Exact row, else the nearest whose envelope holds, else the fallback of the nearest; the first of equally near ones."""
    nearest = sorted(entries, key=lambda entry: distance(shape, entry.shape))
    for entry in nearest:
        if entry.shape == shape:
            return Answer(EXACT, shape, entry.design | shape, entry)
    for entry in nearest:
        if _holds(entry.envelope, shape):
            return Answer(ENVELOPE, shape, entry.design | shape, entry)
    for entry in nearest:
        if fits(shape, entry.fallback["multiples"]):
            return Answer(FALLBACK, shape, entry.fallback["design"] | shape, entry)
    needs = ", ".join(f"{name} a multiple of {n}" for name, n in nearest[0].fallback["multiples"].items() if n > 1)
    raise UserError(f"no design of the database can do {'x'.join(map(str, shape.values()))}: they need {needs}")


def _holds(envelope: dict[str, Any], shape: Shape) -> bool:
    inside = all(envelope["low"][name] <= value <= envelope["high"][name] for name, value in shape.items())
    return inside and fits(shape, envelope["multiples"])
