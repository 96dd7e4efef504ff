"""For which other shapes a design still holds, and what to use where it does not.

A design holds at a shape if it takes at most a stated share longer there than the best design. The screen walks away from
the tuned shape, extent by extent, in factors of two; then the ends are simulated, the design against the screen's best, and
pulled in where it does not hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product as combinations
from typing import Any

import numpy as np
from pydantic import BaseModel

from simulator.hw.config import HardwareConfig
from simulator.tuning.designs import Designs, concatenate, one_row
from simulator.tuning.families import Tunable, family_of_problem, shape_of, with_shape
from simulator.tuning.search import Runner, screen, serially
from simulator.tuning.simulate import Job, as_json

MOST_STEPS = 3
"""A design is not asked to hold beyond 8 times or an eighth of an extent."""
WIDE_STEPS = 4
"""A fallback is chosen for shapes up to 16 times and a sixteenth of each extent."""
LARGEST_EXTENT = 1 << 22
DEFAULT_LOSS = 0.1

Shape = dict[str, int]


@dataclass(frozen=True)
class Envelope:
    """Shapes from ``low`` to ``high`` (inclusive, by extent) whose extents are ``multiples`` and at which a design takes at most
    ``loss`` (share) longer than the best one."""

    low: Shape
    high: Shape
    multiples: Shape
    loss: float

    def holds(self, shape: Shape) -> bool:
        return fits(shape, self.multiples) and all(self.low[n] <= v <= self.high[n] for n, v in shape.items())

    def to_json(self) -> dict[str, Any]:
        return {"low": self.low, "high": self.high, "multiples": self.multiples, "loss": self.loss}


@dataclass(frozen=True)
class Fallback:
    """The design that loses least over a wide range of shapes: ``expected_loss`` (geometric mean by the screen)."""

    design: BaseModel
    multiples: Shape
    expected_loss: float

    def to_json(self) -> dict[str, Any]:
        return {
            "design": as_json(self.design),
            "multiples": self.multiples,
            "expected_loss": self.expected_loss,
        }


def fits(shape: Shape, multiples: Shape) -> bool:
    """Whether every extent is a multiple of what the design's copies and stores need."""
    return all(value % multiples[name] == 0 for name, value in shape.items())


class Neighbourhood:
    """Other shapes of one problem: the screen over its design and rivals that stand for the space."""

    def __init__(self, design: BaseModel, problem: BaseModel, hw: HardwareConfig, run: Runner = serially) -> None:
        self.family: Tunable = family_of_problem(problem)
        self.design, self.problem, self.hw, self.run = design, problem, hw, run
        self.shape = shape_of(problem)
        self.multiples = self.family.requirements(design)
        self.rivals = _rivals(self.family, problem, hw)
        self.row = one_row(self.family.row_of(design))

    def at(self, shape: Shape) -> BaseModel:
        return with_shape(self.problem, shape)

    def _times(self, designs: Designs, shape: Shape) -> np.ndarray:
        return self.family.estimate(self.at(shape), designs, self.hw).time_us

    def exists(self, shape: Shape) -> bool:
        """Whether the problem makes sense at these extents."""
        try:
            self.at(shape)
        except ValueError:
            return False
        return True

    def holds(self, shape: Shape, loss: float) -> bool:
        """By the screen."""
        if not self.exists(shape):
            return False
        best = self._times(self.rivals, shape).min()
        return bool(self._times(self.row, shape)[0] <= (1 + loss) * best)

    def holds_simulated(self, shapes: list[Shape], loss: float) -> list[bool]:
        """By simulation, against the screen's best rival at each shape."""
        jobs: list[Job] = []
        for shape in shapes:
            rival = int(np.argmin(self._times(self.rivals, shape)))
            other = self.family.design_of(self.at(shape), self.rivals.row(rival))
            jobs += [Job(with_shape(self.design, shape), self.hw, False), Job(other, self.hw, False)]
        found = self.run(jobs)
        pairs = zip(found[::2], found[1::2], strict=True)
        return [not own.failure and own.time_us <= (1 + loss) * other.time_us for own, other in pairs]

    def envelope(self, loss: float = DEFAULT_LOSS) -> Envelope:
        """Where the design holds: by the screen in the whole box (its corners), by simulation at the middle of its sides."""
        steps = {side: self._walk(side, loss) for side in self._sides()}
        while failing := next((c for c in self._corners(steps) if not self.holds(self._moved(c), loss)), None):
            name, n = max(failing.items(), key=lambda item: abs(item[1]))
            steps[name, 1 if n > 0 else -1] -= 1
        open_sides = [side for side, n in steps.items() if n]
        while open_sides:
            shapes = [self._moved({name: sign * steps[name, sign]}) for name, sign in open_sides]
            answers = self.holds_simulated(shapes, loss)
            open_sides = [side for side, ok in zip(open_sides, answers, strict=True) if not ok]
            for side in open_sides:
                steps[side] -= 1
            open_sides = [side for side in open_sides if steps[side]]
        low = self._moved({name: -steps[name, -1] for name in self.shape})
        high = self._moved({name: steps[name, 1] for name in self.shape})
        return Envelope(low, high, self.multiples, loss)

    def _sides(self) -> Iterator[tuple[str, int]]:
        for name in self.shape:
            yield name, -1
            yield name, 1

    def _walk(self, side: tuple[str, int], loss: float) -> int:
        name, sign = side
        for n in range(1, MOST_STEPS + 1):
            shape = self._moved({name: sign * n})
            if shape == self._moved({name: sign * (n - 1)}) or not self.holds(shape, loss):
                return n - 1
        return MOST_STEPS

    def _corners(self, steps: dict[tuple[str, int], int]) -> list[dict[str, int]]:
        ends = [(-steps[name, -1], steps[name, 1]) for name in self.shape]
        corners = [dict(zip(self.shape, corner, strict=True)) for corner in combinations(*ends)]
        return [corner for corner in corners if any(corner.values())]

    def _moved(self, steps: dict[str, int]) -> Shape:
        """The tuned shape with extents times two to the power of ``steps``, at multiples that the design can do."""
        moved = dict(self.shape)
        for name, n in steps.items():
            unit = self.multiples[name]
            value = moved[name] << n if n >= 0 else -(-moved[name] >> -n)
            moved[name] = min(LARGEST_EXTENT // unit * unit, max(unit, -(-value // unit) * unit))
        return moved

    def fallback(self) -> Fallback:
        """Of the rivals that need the smallest multiples the one that loses least, on average, over a wide range of shapes."""
        designs = [self.family.design_of(self.problem, self.rivals.row(i)) for i in range(len(self.rivals))]
        needs = [int(np.prod(list(self.family.requirements(design).values()))) for design in designs]
        rows = np.flatnonzero(np.array(needs) == min(needs))
        total = np.zeros(len(rows))
        corners = combinations((-WIDE_STEPS, 0, WIDE_STEPS), repeat=len(self.shape))
        shapes = [self._moved(dict(zip(self.shape, corner, strict=True))) for corner in corners]
        shapes = [shape for shape in shapes if self.exists(shape)]
        for shape in shapes:
            times = self._times(self.rivals, shape)
            total += np.log(times[rows] / times.min())
        best = int(np.argmin(total))
        design = designs[int(rows[best])]
        return Fallback(design, self.family.requirements(design), float(np.expm1(total[best] / len(shapes))))


def _rivals(family: Tunable, problem: BaseModel, hw: HardwareConfig) -> Designs:
    """The screen's first of every kind of near-copies, from the space of the problem and of one with larger extents."""
    parts = []
    for asked in (problem, _larger(problem)):
        designs = family.space(asked, hw)
        order = screen(family, asked, designs, hw)
        parts.append(designs.take(designs.first_of(family.near, order)))
    return concatenate(parts)


def _larger(problem: BaseModel) -> BaseModel:
    """The problem with each extent MOST_STEPS factors of two larger, or fewer where there is no such problem."""
    for n in range(MOST_STEPS, 0, -1):
        try:
            return with_shape(problem, {name: min(LARGEST_EXTENT, value << n) for name, value in shape_of(problem).items()})
        except ValueError:
            continue
    return problem
