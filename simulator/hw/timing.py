"""Execution timing of a chip: the part of a configuration that the SM engine needs.

A chip without this section loads, shows, and answers occupancy and access questions; projecting a
kernel on it says that the section is missing.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class Section(BaseModel):
    """A frozen group of values; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class PipeTiming(Section):
    """One execution pipe of a sub-partition: cycles between issues and from issue to usable result."""

    interval_cycles: float = Field(gt=0)
    latency_cycles: float = Field(ge=0)


class Timing(Section):
    """Everything between a program and cycles; see each group."""

    pipes: dict[str, PipeTiming]
