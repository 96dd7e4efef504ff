"""Random kernels for hypothesis: segments that all warps go through, each with random instructions of a warp."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from simulator.isa import effects as fx
from tests.engine import instructions as do
from tests.engine.machine import Machine
from tests.engine.programs import NO_BOARD, Op, Tensor

BOARDS = range(5)
QUESTION_BOARD = 5
N_LINES = 6
TENSOR = Tensor(shape=(96, 40), strides=(192,), box=(48, 5), address=1 << 20, row_cycles=1.25, port_cycles=3, promotion=128)
N_MBARRIERS = 2

Draw = Callable[[st.SearchStrategy], object]
cycles = st.sampled_from([1, 1, 2, 2.5, 4, 8])
latencies = st.sampled_from([1, 4, 9.25, 24, 60])
boards = st.sampled_from([NO_BOARD] * 3 + list(BOARDS))
waits = st.lists(st.sampled_from(list(BOARDS)), max_size=2, unique=True).map(tuple)
PIPES = (fx.PIPE_ALU, fx.PIPE_FMA, fx.PIPE_TRANSCENDENTAL, fx.UNPIPED)


@st.composite
def lines(draw: Draw) -> tuple[tuple[int, int], ...]:
    """Lines of an access, from its origin on, with sector masks."""
    masks = draw(st.lists(st.integers(1, 15), min_size=1, max_size=3))
    return tuple(enumerate(masks))


@st.composite
def plain_op(draw: Draw) -> Op:
    """An instruction that concerns its warp alone."""
    address = 128 * draw(st.integers(0, N_LINES))
    op = draw(
        st.one_of(
            st.builds(do.alu, cycles, latencies, pipe=st.sampled_from(PIPES), contention=st.sampled_from([0, 1, 1.5])),
            st.builds(do.shared, st.integers(1, 9), latencies, interval=st.sampled_from([0, 0, 8])),
            st.builds(do.load, st.just(address), lines(), cached=st.booleans()),
            st.builds(do.store, st.just(address), lines()),
            st.builds(do.atomic, st.just(address), lines(), same=st.integers(1, 4)),
            st.builds(do.copy, st.just(address), lines(), wavefronts=st.integers(1, 4), cached=st.booleans()),
            st.builds(do.commit),
            st.builds(do.wait_copies, st.integers(0, 2)),
            st.builds(do.fence, latencies),
            st.builds(do.nop),
        )
    )
    return replace(
        op,
        stall=draw(st.sampled_from([1, 1, 1, 2, 5, 13])),
        write=draw(boards),
        read=draw(boards),
        wait=draw(waits),
        active=draw(st.sampled_from([32, 32, 32, 0])),
    )


@dataclass
class Kernel:
    """Streams under construction; ``phases``: phases of each mbarrier that are over when all got here."""

    streams: list[list[Op]]
    phases: list[int] = field(default_factory=lambda: [0] * N_MBARRIERS)

    @property
    def n_warps(self) -> int:
        return len(self.streams)

    def all_do(self, *ops: Op) -> None:
        for stream in self.streams:
            stream.extend(ops)


def compute(draw: Draw, kernel: Kernel) -> None:
    """Every warp does something of its own, some of them in a loop."""
    for stream in kernel.streams:
        body = draw(st.lists(plain_op(), max_size=5))
        if body and draw(st.booleans()):
            body = [*body, do.branch(stall=draw(cycles))] * draw(st.integers(1, 3))
        stream.extend(body)


def meet(draw: Draw, kernel: Kernel) -> None:
    """A barrier of all warps, of some, or with warps that only arrive."""
    number = draw(st.integers(0, 2))
    chosen = draw(st.integers(1, kernel.n_warps))
    threads = 0 if chosen == kernel.n_warps and draw(st.booleans()) else 32 * chosen
    for stream in kernel.streams[:chosen]:
        waits_there = threads == 0 or draw(st.booleans())
        stream.append(do.bar(number, threads, waits=waits_there, stall=draw(cycles)))


def multiply(draw: Draw, kernel: Kernel) -> None:
    """Warpgroups issue MMAs, commit them in groups and wait for some."""
    for first in range(0, kernel.n_warps, 4):
        streams = kernel.streams[first : first + 4]
        for _ in range(draw(st.integers(1, 4))):
            op = draw(
                st.builds(do.mma, st.sampled_from([8, 16, 33]), latencies, port=st.sampled_from([4, 24]), commits=st.booleans())
            )
            for stream in streams:
                stream.extend(draw(st.lists(plain_op(), max_size=1)))
                stream.append(op)
        for stream in streams:
            stream.append(do.wait_mma(draw(st.integers(0, 2))))


def signal(draw: Draw, kernel: Kernel) -> None:
    """One warp arrives at an mbarrier, with or without bytes that a bulk load brings; others wait."""
    m = draw(st.integers(0, N_MBARRIERS - 1))
    producer = draw(st.integers(0, kernel.n_warps - 1))
    parity = kernel.phases[m] % 2
    kernel.phases[m] += 1
    latency = draw(latencies)
    stream = kernel.streams[producer]
    stream.extend(draw(st.lists(plain_op(), max_size=2)))
    kind = draw(st.sampled_from(["arrive", "copies", "bytes first", "bytes last"]))
    place = (draw(st.integers(-8, 60)), draw(st.integers(-3, 38)))
    brings = do.load_box(TENSOR, place, m, stall=draw(cycles))
    announces = do.expect(TENSOR.box_bytes, m, latency)
    stream += {
        "arrive": [do.arrive(m, latency=latency)],
        "copies": [do.copy_arrive(m)],
        "bytes first": [brings, announces],
        "bytes last": [announces, brings],
    }[kind]
    for other in kernel.streams:
        if draw(st.booleans()):
            asks = do.try_wait(parity, m, latency, write=QUESTION_BOARD)
            other += [asks, *draw(st.lists(plain_op(), max_size=1)), do.nop(wait=(QUESTION_BOARD,))]
    kernel.all_do(do.bar())


def meet_cluster(draw: Draw, kernel: Kernel) -> None:
    """Every warp arrives, does something, and waits."""
    for stream in kernel.streams:
        stream += [do.cluster_arrive(), *draw(st.lists(plain_op(), max_size=1)), do.cluster_wait()]


def write_out(draw: Draw, kernel: Kernel) -> None:
    """A warp stores boxes in groups and waits for some."""
    stream = kernel.streams[draw(st.integers(0, kernel.n_warps - 1))]
    for n in range(draw(st.integers(1, 3))):
        stream += [do.store_box(TENSOR, (0, 5 * n), read=draw(boards)), do.commit_stores()]
    stream.append(do.wait_copies(draw(st.integers(0, 2))))


SEGMENTS = (compute, compute, meet, multiply, signal, write_out, meet_cluster)


@st.composite
def kernels(draw: Draw) -> list[list[Op]]:
    """Streams of 1 to 9 warps. Some kernels deadlock: then both simulators must get stuck at the same place."""
    kernel = Kernel([[] for _ in range(draw(st.integers(1, 9)))])
    kernel.streams[0] += [do.init(m, count=1) for m in range(N_MBARRIERS)]
    kernel.all_do(do.bar())
    for segment in draw(st.lists(st.sampled_from(SEGMENTS), min_size=1, max_size=5)):
        segment(draw, kernel)
    kernel.all_do(do.nop())
    return kernel.streams


few = st.sampled_from([1, 2, 5])
costs = st.sampled_from([0, 1, 3.5, 20])


@st.composite
def machines(draw: Draw) -> Machine:
    """One SM with random costs."""
    names = (
        "taken_branch", "scoreboard_release", "operand_release", "barrier_base", "barrier_warp", "mbarrier_release",
        "cluster_barrier", "bulk_issue", "bulk_extra", "bulk_release", "bulk_store_latency",
                 "l1_miss", "launch_latency", "cta_interval",
    )  # fmt: skip
    sm = {name: draw(costs) for name in names}
    sm |= {name: draw(few) for name in ("tensor_queue", "shared_queue", "global_queue", "tensor_issue", "l1_tag")}
    sm |= {"store_byte": draw(st.sampled_from([1 / 64, 1 / 4])), "store_backlog": draw(st.sampled_from([20, 1 << 20]))}
    sm |= {name: draw(st.sampled_from([0.5, 4])) for name in ("mbarrier_port", "fill_wavefront")}
    sm |= {"same_group": draw(st.sampled_from([0.5, 1])), "cta_turnaround": draw(st.sampled_from([2, 30]))}
    memory = {"near": draw(st.sampled_from([40, 200])), "dram": draw(costs), "atomic_same_address": draw(costs)}
    memory |= {"merge_transit": draw(st.sampled_from([0, 30, 1 << 20]))}
    return Machine(n_slots=draw(st.integers(1, 3)), l1_ways=draw(st.integers(1, 4)), sm=sm, memory=memory)
