"""Where each value of a chip comes from: its source and how far to trust it, beside the values, by dotted path."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

Confidence = Literal["vendor", "measured", "derived", "extrapolated", "assumed"]
CONFIDENCES: tuple[Confidence, ...] = get_args(Confidence)
"""Strongest first: a vendor's document, a measurement, arithmetic on those, a trend, a guess."""

OVERRIDE_SOURCE = "override"
"""Source of a value that the user set on the command line; it needs no entry in ``_sources.yaml``."""


@dataclass(frozen=True)
class Source:
    """One entry of ``_sources.yaml``: what the document is, where it is, and what kind of evidence it gives."""

    key: str
    title: str
    kind: str
    address: str = ""


@dataclass(frozen=True)
class Origin:
    """Origin of one value. ``source``: key of ``_sources.yaml``; ``file``: the YAML file that holds the value."""

    value: object
    source: str
    confidence: Confidence
    note: str = ""
    file: str = ""


@dataclass(frozen=True)
class Provenance:
    """Origins by dotted path, and the sources that they name."""

    origins: Mapping[str, Origin] = field(default_factory=dict)
    sources: Mapping[str, Source] = field(default_factory=dict)

    def __getitem__(self, path: str) -> Origin:
        return self.origins[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self.origins)

    def __len__(self) -> int:
        return len(self.origins)

    def __contains__(self, path: object) -> bool:
        return path in self.origins

    def get(self, path: str) -> Origin | None:
        """Origin of the value at ``path``, or None."""
        return self.origins.get(path)

    def updated(self, origins: Mapping[str, Origin]) -> Provenance:
        """A copy in which ``origins`` replace the ones of the same path."""
        return replace(self, origins={**self.origins, **origins})

    def weaker_than(self, confidence: Confidence, paths: Iterable[str] | None = None) -> list[str]:
        """Paths (all, or those of ``paths``) whose confidence ranks below ``confidence``, weakest first."""
        floor = CONFIDENCES.index(confidence)
        ranked = [
            (-CONFIDENCES.index(origin.confidence), path)
            for path, origin in self.origins.items()
            if CONFIDENCES.index(origin.confidence) > floor and (paths is None or path in set(paths))
        ]
        return [path for _, path in sorted(ranked)]

    def count_by_confidence(self) -> dict[str, int]:
        """How many values each confidence has, strongest first; zero counts included."""
        counts = Counter(origin.confidence for origin in self.origins.values())
        return {confidence: counts.get(confidence, 0) for confidence in CONFIDENCES}
