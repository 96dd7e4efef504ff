"""The event log: what units other than the issue slots did, and when. It has room for as many events as asked for."""

from __future__ import annotations

from simulator.compiled import compiled
from simulator.sm.layout import (
    EVENT_END,
    EVENT_FIELDS,
    EVENT_KIND,
    EVENT_NUMBER,
    EVENT_OF,
    EVENT_ROOM,
    EVENT_START,
    EVENTS,
    N_EVENTS,
)


@compiled
def note(x, kind, record, start, end, number):
    """Log an event of the unit or warp at ``record``; ``number`` is the kind's own."""
    if x[N_EVENTS] < x[EVENT_ROOM]:
        event = x[EVENTS] + x[N_EVENTS] * EVENT_FIELDS
        x[event + EVENT_KIND] = kind
        x[event + EVENT_OF] = record
        x[event + EVENT_START] = start
        x[event + EVENT_END] = end
        x[event + EVENT_NUMBER] = number
        x[N_EVENTS] += 1
