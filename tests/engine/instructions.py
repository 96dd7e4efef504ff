"""The instructions of test programs, by what they do. Further fields of ``Op`` go in as keywords (wait, stall, ...)."""

from __future__ import annotations

from typing import Any

from simulator.isa import effects as fx
from tests.engine.programs import Event, Op, Tensor


def alu(interval: float = 1, latency: float = 4, pipe: int = fx.PIPE_ALU, **fields: Any) -> Op:
    """A fixed-latency instruction of a pipe."""
    return Op(fx.FIXED, pipe, interval, latency, **fields)


def nop(**fields: Any) -> Op:
    """Issues and does nothing."""
    return Op(fx.NO_EFFECT, **fields)


def branch(**fields: Any) -> Op:
    """Taken when the next executed instruction is not the next of the program."""
    return Op(fx.BRANCH, **fields)


def fence(latency: float, **fields: Any) -> Op:
    """The warp goes on ``latency`` after it."""
    return Op(fx.FENCE, latency=latency, **fields)


def shared(wavefronts: int = 1, latency: float = 20, **fields: Any) -> Op:
    """A shared-memory access."""
    return Op(fx.SHARED_ACCESS, fx.PIPE_SHARED, latency=latency, event=Event(wavefronts=wavefronts), **fields)


def bar(number: int = 0, threads: int = 0, waits: bool = True, **fields: Any) -> Op:
    """A named barrier; ``threads`` 0: all live warps; ``waits`` False: arrive only."""
    return Op(fx.BARRIER, kind=int(waits), event=Event(parity=number, count=threads), **fields)


def cluster_arrive(**fields: Any) -> Op:
    return Op(fx.CLUSTER_BARRIER, kind=1, **fields)


def cluster_wait(**fields: Any) -> Op:
    return Op(fx.CLUSTER_BARRIER, kind=0, **fields)


def _mbarrier(kind: int, event: Event, latency: float, **fields: Any) -> Op:
    return Op(fx.MBARRIER, fx.PIPE_SHARED, latency=latency, kind=kind, event=event, **fields)


def init(mbarrier: int = 0, count: int = 1, latency: float = 0, **fields: Any) -> Op:
    return _mbarrier(fx.MBARRIER_INIT, Event(mbarrier=mbarrier, count=count), latency, **fields)


def arrive(mbarrier: int = 0, count: int = 1, latency: float = 0, **fields: Any) -> Op:
    return _mbarrier(fx.MBARRIER_ARRIVE, Event(mbarrier=mbarrier, count=count), latency, **fields)


def expect(n_bytes: int, mbarrier: int = 0, latency: float = 0, **fields: Any) -> Op:
    """One arrival, and ``n_bytes`` more to come."""
    return _mbarrier(fx.MBARRIER_EXPECT, Event(mbarrier=mbarrier, count=n_bytes), latency, **fields)


def try_wait(parity: int, mbarrier: int = 0, latency: float = 0, write: int = 0, **fields: Any) -> Op:
    """Asks whether the phase of that parity is over; the answer clears scoreboard ``write``."""
    event = Event(mbarrier=mbarrier, parity=parity)
    return _mbarrier(fx.MBARRIER_WAIT, event, latency, write=write, **fields)


def mma(interval: float, latency: float = 0, port: float = 0, commits: bool = True, **fields: Any) -> Op:
    """An asynchronous MMA of a warpgroup; ``port``: cycles of the shared-memory port for its operands."""
    pipe = fx.PIPE_TENSOR_ASYNC
    return Op(fx.TENSOR_ASYNC, pipe, interval, latency, port=port, argument=int(commits), **fields)


def wait_mma(pending: int = 0, **fields: Any) -> Op:
    """Waits until at most ``pending`` MMA groups are unfinished."""
    return Op(fx.TENSOR_WAIT, argument=pending, **fields)


Lines = tuple[tuple[int, int], ...]
WHOLE_LINE: Lines = ((0, 15),)


def _global(effect: int, address: int, lines: Lines, fields: dict[str, Any], **operands: Any) -> Op:
    fields.setdefault("reason", fx.LONG_SCOREBOARD)
    event = Event(lines=lines, address=address, **operands)
    return Op(effect, fx.PIPE_GLOBAL, event=event, **fields)


def load(address: int, lines: Lines = WHOLE_LINE, cached: bool = False, base: int = -1, **fields: Any) -> Op:
    """A global load; ``cached``: looks into the L1; ``base``: column of the CTA's address difference."""
    return _global(fx.GLOBAL_LOAD, address, lines, {"kind": int(cached), **fields}, base=(base,))


def store(address: int, lines: Lines = WHOLE_LINE, base: int = -1, **fields: Any) -> Op:
    return _global(fx.GLOBAL_STORE, address, lines, fields, base=(base,))


def atomic(address: int, lines: Lines = WHOLE_LINE, same: int = 1, base: int = -1, **fields: Any) -> Op:
    """An atomic at the L2; ``same``: the most lanes on one address."""
    return _global(fx.GLOBAL_ATOMIC, address, lines, fields, count=same, base=(base,))


def copy(address: int, lines: Lines = WHOLE_LINE, wavefronts: int = 1, cached: bool = False, **fields: Any) -> Op:
    """An asynchronous copy of a warp's lines into shared memory."""
    return _global(fx.GLOBAL_COPY, address, lines, {"kind": int(cached), **fields}, wavefronts=wavefronts)


def commit(**fields: Any) -> Op:
    """Closes a group of asynchronous copies."""
    return Op(fx.COPY_COMMIT, **fields)


def wait_copies(pending: int = 0, **fields: Any) -> Op:
    """Waits until at most ``pending`` copy groups are unfinished."""
    return Op(fx.COPY_WAIT, argument=pending, **fields)


def copy_arrive(mbarrier: int = 0, count: int = 1, **fields: Any) -> Op:
    """Arrives at an mbarrier when the warp's copies so far are done."""
    return Op(fx.COPY_ARRIVE, event=Event(mbarrier=mbarrier, count=count), **fields)


def load_box(tensor: Tensor, coordinate: tuple[int, ...], mbarrier: int = 0, **fields: Any) -> Op:
    """A bulk copy into shared memory that completes on an mbarrier; ``base`` as in ``Event``."""
    base = fields.pop("base", ())
    event = Event(tensor=tensor, coordinate=coordinate, mbarrier=mbarrier, count=tensor.box_bytes, base=base)
    return Op(fx.BULK_LOAD, fx.PIPE_SHARED, event=event, reason=fx.LONG_SCOREBOARD, **fields)


def store_box(tensor: Tensor, coordinate: tuple[int, ...], **fields: Any) -> Op:
    """A bulk copy out of shared memory."""
    base = fields.pop("base", ())
    event = Event(tensor=tensor, coordinate=coordinate, count=tensor.box_bytes, base=base)
    return Op(fx.BULK_STORE, fx.PIPE_SHARED, event=event, reason=fx.LONG_SCOREBOARD, **fields)


def commit_stores(**fields: Any) -> Op:
    """Closes a group of bulk stores."""
    return Op(fx.BULK_COMMIT, **fields)
