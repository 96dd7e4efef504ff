"""A bandwidth server in plain Python: windows of service in a dictionary, no ring, no shortcuts."""

from __future__ import annotations

from collections import defaultdict


class NaiveCalendar:
    """Gives at most ``window`` ticks of service per window; a request takes what is left from its arrival on."""

    def __init__(self, window: int) -> None:
        self.window = window
        self.given: dict[int, int] = defaultdict(int)

    def _take(self, at: int, amount: int) -> int:
        """Book ``amount`` ticks; returns the number of the last window that gave some."""
        number = at // self.window
        while True:
            take = min(self.window - self.given[number], amount)
            self.given[number] += take
            amount -= take
            if amount == 0:
                return number
            number += 1

    def reserve(self, at: int, amount: int) -> int:
        """Requests of a window are served one after another from its start."""
        last = self._take(at, amount)
        return max(at + amount, last * self.window + self.given[last])

    def reserve_share(self, at: int, amount: int) -> int:
        """Requests of a window are interleaved."""
        last = self._take(at, amount)
        return max(at, last * self.window) + amount
