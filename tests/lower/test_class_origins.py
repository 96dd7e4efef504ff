"""May a CTA of one class ask for what a CTA of another does, moved by their bases?"""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from simulator.lower.class_origins import with_common_origins
from simulator.trace.kernel_trace import EventTable, KernelTrace
from tests.lower.traces import Instruction, kernel_trace

DENSE = tuple(range(0, 128, 4))
CTA_CLASS = np.array([0, 1, 0, 1], np.int32)
BASES = [[0], [0], [1 << 14], [1 << 14]]
FIRST = (1 << 20, 1 << 22)


def two_classes(second: tuple[int, int], extra: int = 0) -> KernelTrace:
    """Two loads by each CTA; those of the first class start at ``FIRST``, of the other at ``second``, which executes
    ``extra`` instructions more between them."""

    def trace(addresses: tuple[int, int], more: int) -> KernelTrace:
        loads = [Instruction("LDG.E", width=4, lanes=DENSE, address=address, base=(0,)) for address in addresses]
        return kernel_trace([loads[0], *[Instruction("IADD3")] * more, loads[1]], cta_base=BASES)

    ours, theirs = trace(FIRST, 1), trace(second, 1 + extra)
    both = {f.name: np.concatenate([getattr(t.events, f.name) for t in (ours, theirs)]) for f in fields(EventTable)}
    stream = theirs.streams[0][0]
    row = {0: 0, 1 + extra + 1: 2}
    moved = replace(
        stream,
        instruction=np.array([row.get(i, 1) for i in stream.instruction], np.int32),
        event=np.where(stream.event >= 0, stream.event + len(ours.events), stream.event).astype(np.int32),
    )
    return replace(ours, events=EventTable(**both), streams=(ours.streams[0], (moved,)), cta_class=CTA_CLASS)


def addresses(trace: KernelTrace, cta: int, as_class: int) -> list[int]:
    """What ``cta`` loads when it executes the stream of a class."""
    events = trace.streams[as_class][0].event
    rows = events[events >= 0]
    return [int(trace.events.address[row] + trace.cta_base[cta, trace.events.base[row, 0]]) for row in rows]


@pytest.mark.parametrize("extra", [0, 3])
def test_do_members_of_another_class_ask_for_their_own_lines(extra: int) -> None:
    trace = two_classes((FIRST[0] + 512, FIRST[1] + 512), extra)
    common = with_common_origins(trace)
    for cta, own in enumerate(CTA_CLASS):
        assert addresses(common, cta, own) == addresses(trace, cta, own)
        assert addresses(common, cta, 1 - own) == addresses(trace, cta, own)
    assert addresses(trace, 1, 0) != addresses(trace, 1, 1)


def test_does_a_trace_stay_as_it_is_where_accesses_disagree() -> None:
    trace = two_classes((FIRST[0] + 512, FIRST[1] + 1024))
    assert with_common_origins(trace) is trace


def test_does_a_trace_of_one_class_stay_as_it_is() -> None:
    trace = kernel_trace([Instruction("LDG.E", width=4, lanes=DENSE, address=1 << 20, base=(0,))], cta_base=[[0], [128]])
    assert with_common_origins(trace) is trace
