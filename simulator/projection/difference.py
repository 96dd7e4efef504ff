"""Two projections: by how much they differ, and to what the difference in cycles is due."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from simulator.projection.document import Document, leaves

SMALLEST_CHANGE = 1e-9
REPEATED = ("cycle_stack", "attribution", "diagnosis", "stalls", "bounds", "bytes")
UNREMARKABLE = (*REPEATED, "simulated", "interval", "weakest_inputs", "counters")
"""Groups that have a place of their own in the answer, or that say nothing of the kernel."""
SAME = 0.005
"""Cycles within 0.5 % count as the same in the sentence."""


@dataclass(frozen=True)
class Change:
    """One figure of both results; ``difference`` = b - a."""

    name: str
    a: float
    b: float

    @property
    def difference(self) -> float:
        return self.b - self.a


@dataclass(frozen=True)
class Difference:
    """``causes``: the change in cycles by cause of the cycle stack, the largest first; they sum to the change in cycles.
    ``stalls`` are shares of issue slots; ``figures``: other numbers that changed, by dotted key; ``texts``: other texts
    that changed, (a, b); ``code``: stall cycles by instruction, where both results have them."""

    cycles: Change
    time_us: Change | None
    causes: list[Change]
    stalls: list[Change]
    bounds: list[Change]
    bytes: list[Change]
    code: list[Change]
    figures: list[Change]
    texts: dict[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        return self.cycles.b / self.cycles.a

    def sentence(self) -> str:
        """The difference in words, with its largest causes."""
        if abs(self.ratio - 1) <= SAME:
            return f"B takes as long as A ({100 * (self.ratio - 1):+.1f} % cycles)"
        faster = self.ratio < 1
        text = f"B is {abs(100 * (self.ratio - 1)):.1f} % {'faster' if faster else 'slower'} than A"
        leading = [c for c in self.causes if (c.difference < 0) == faster and c.difference != 0][:2]
        if leading:
            text += ": " + ", ".join(f"{_spoken(c.name)} {c.difference:+,.0f} cycles" for c in leading)
        return text

    def to_json(self) -> dict[str, Any]:
        """The document of ``compare --json``."""
        groups = ("causes", "stalls", "bounds", "bytes", "code", "figures")
        return {
            "verdict": self.sentence(),
            "cycles": _as_json(self.cycles) | {"ratio": self.ratio},
            **({"time_us": _as_json(self.time_us)} if self.time_us else {}),
            **{name: [_as_json(change) for change in getattr(self, name)] for name in groups},
            "texts": {key: {"a": a, "b": b} for key, (a, b) in self.texts.items()},
        }


def differ(a: Document, b: Document) -> Difference:
    """Attribute the difference between two documents of ``project --json``."""
    figures_a, figures_b = dict(leaves(a)), dict(leaves(b))
    figures, texts = [], {}
    for key in dict.fromkeys([*figures_a, *figures_b]):
        if key.split(".")[0] in (*UNREMARKABLE, "cycles", "time_us") or key.startswith(("cycle_stack", "code", "hw_digest")):
            continue
        old, new = figures_a.get(key), figures_b.get(key)
        if _is_number(old) and _is_number(new):
            figures += [Change(key, float(str(old)), float(str(new)))] if old != new else []
        elif old != new:
            texts[key] = (_text(old), _text(new))
    return Difference(
        cycles=Change("cycles", float(a["cycles"]), float(b["cycles"])),
        time_us=_change(a, b, "time_us"),
        causes=_group(_stack_cycles(a), _stack_cycles(b)),
        stalls=_group(a.get("stalls"), b.get("stalls")),
        bounds=_group(a.get("bounds"), b.get("bounds")),
        bytes=_group(a.get("bytes"), b.get("bytes")),
        code=_group(_code(a), _code(b)),
        figures=figures,
        texts=texts,
    )


def _stack_cycles(document: Document) -> dict[str, float] | None:
    stack = document.get("cycle_stack")
    if not isinstance(stack, Mapping):
        return None
    return {str(cause): float(share) * float(document["cycles"]) for cause, share in stack.items() if _is_number(share)}


def _code(document: Document) -> dict[str, float] | None:
    lines = document.get("code")
    if not isinstance(lines, list):
        return None
    return {f"0x{line['address']:x} {line['text']}": float(line["stall_cycles"]) for line in lines}


def _group(a: Mapping[str, Any] | None, b: Mapping[str, Any] | None) -> list[Change]:
    """Changes of a group that both have, the largest first; a name that one lacks is 0 there."""
    if not a or not b:
        return []
    changes = [Change(str(name), float(a.get(name, 0)), float(b.get(name, 0))) for name in dict.fromkeys([*a, *b])]
    changed = [change for change in changes if abs(change.difference) > SMALLEST_CHANGE]
    return sorted(changed, key=lambda change: -abs(change.difference))


def _change(a: Document, b: Document, key: str) -> Change | None:
    return Change(key, float(a[key]), float(b[key])) if _is_number(a.get(key)) and _is_number(b.get(key)) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _text(value: Any) -> str:
    return "absent" if value is None else str(value)


def _spoken(name: str) -> str:
    return name.replace("_", " ")


def _as_json(change: Change) -> dict[str, Any]:
    return {"name": change.name, "a": change.a, "b": change.b, "difference": change.difference}
