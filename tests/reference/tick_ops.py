"""Instructions of a test program with times in ticks, as the naive SM reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.engine.programs import NO_BOARD, Event, Op, ticks


@dataclass(frozen=True)
class TickOp:
    """As ``Op``; ``address``: place in the program; scoreboards are None where there is none."""

    address: int
    effect: int
    pipe: int
    interval: int
    latency: int
    stall: int
    write: int | None
    read: int | None
    wait: tuple[int, ...]
    kind: int
    argument: int
    contention: int
    port: int
    active: bool
    event: Event | None


def in_ticks(op: Op, address: int) -> TickOp:
    """An instruction at ``address`` of its program."""
    return TickOp(
        address=address,
        effect=op.effect,
        pipe=op.pipe,
        interval=ticks(op.interval),
        latency=ticks(op.latency),
        stall=ticks(op.stall),
        write=None if op.write == NO_BOARD else op.write,
        read=None if op.read == NO_BOARD else op.read,
        wait=op.wait,
        kind=op.kind,
        argument=op.argument,
        contention=ticks(op.contention),
        port=ticks(op.port),
        active=op.active > 0,
        event=op.event,
    )


def program_in_ticks(warps: Sequence[Sequence[Op]]) -> list[list[TickOp]]:
    """Streams of all warps; instructions have addresses in order of their first appearance."""
    addresses: dict[int, int] = {}
    for stream in warps:
        for op in stream:
            addresses.setdefault(id(op), len(addresses))
    return [[in_ticks(op, addresses[id(op)]) for op in stream] for stream in warps]
