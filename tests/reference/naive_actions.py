"""What each kind of instruction does to the naive SM: returns (result usable, operands read) in ticks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simulator.isa import effects as fx
from tests.engine.programs import Event, Tensor, ticks
from tests.reference.naive_memory import LINE_BYTES, SECTOR_BYTES, Lines
from tests.reference.naive_units import CYCLE, Question

if TYPE_CHECKING:
    from tests.reference.naive_sm import NaiveSm

Stamps = tuple[int | None, int]


def act(sm: NaiveSm, warp: Any, op: Any, at: int) -> Stamps:
    """Apply the effect of ``op`` as issued ``at``; a result of None is not known yet."""
    if op.effect in ACTIONS:
        return ACTIONS[op.effect](sm, warp, op, at)
    return at + op.latency, at + sm.costs["scoreboard_release"]


def use_pipe(sm: NaiveSm, warp: Any, op: Any, at: int) -> Stamps:
    warp.sub.pipe_free_at[op.pipe] = at + op.interval
    warp.sub.free_at += sm.tensor.contention(op, at)
    return at + op.latency, at + sm.costs["scoreboard_release"]


def access_shared(sm: NaiveSm, warp: Any, op: Any, at: int) -> Stamps:
    """Through the sub-partition's interface and the SM's port; data of the last wavefront counts."""
    costs, queue = sm.costs, warp.sub.shared_queue
    n = max(1, op.event.wavefronts)
    start = max(at, queue.last_leaves_at)
    passed = sm.port.wavefronts.reserve(start, n * costs["wavefront"])
    interface = max(op.interval, costs["subpartition_interval"], n * costs["subpartition_wavefront"])
    queue.enter(max(start + interface, passed))
    warp.sub.pipe_free_at[fx.PIPE_SHARED] = max(at + CYCLE, queue.has_room_at())
    last = passed - costs["wavefront"]
    return last + op.latency, last + costs["operand_release"]


def access_global(sm: NaiveSm, warp: Any, op: Any, at: int) -> Stamps:
    """Tag and data passes of the L1, then what the access is."""
    costs = sm.costs
    lines = lines_of(op.event)
    occupancy = max(len(lines) * costs["l1_tag"], op.event.wavefronts * costs["wavefront"])
    passed = sm.port.wavefronts.reserve(max(at + CYCLE, sm.blocked_until), occupancy)
    warp.sub.global_queue.enter(passed - occupancy)
    warp.sub.pipe_free_at[fx.PIPE_GLOBAL] = max(at + CYCLE, warp.sub.global_queue.has_room_at())
    release = passed + costs["operand_release"]
    if op.effect in (fx.GLOBAL_LOAD, fx.GLOBAL_COPY):
        release = at + costs["scoreboard_release"]
    if op.effect == fx.GLOBAL_LOAD:
        return sm.memory.load(lines, passed, uses_l1=op.kind > 0), release
    if op.effect == fx.GLOBAL_COPY:
        loaded = sm.memory.load(lines, passed, uses_l1=op.kind > 0)
        done = sm.port.operands.reserve_share(loaded, op.event.wavefronts * costs["fill_wavefront"])
        warp.copies_done_at = max(warp.copies_done_at, done)
        return done, release
    if op.effect == fx.GLOBAL_ATOMIC:
        done = sm.memory.update(lines, passed, op.event.count)
    else:
        done = sm.memory.store(lines, passed)
    press_back(sm, passed)
    return done, release


def press_back(sm: NaiveSm, at: int) -> None:
    """A store backlog beyond its limit holds the L1 path until it has drained to that."""
    ends = max(sm.memory.store_free_at, sm.memory.accepted_at)
    if ends - at > sm.costs["store_backlog"]:
        sm.blocked_until = max(sm.blocked_until, ends - sm.costs["store_backlog"])


def start_mma(sm: NaiveSm, warp: Any, op: Any, at: int) -> Stamps:
    warp.sub.pipe_free_at[fx.PIPE_TENSOR_ASYNC] = at + sm.costs["tensor_issue"]
    sm.tensor.arrive(warp.group, warp.n_mmas, op, at)
    warp.n_mmas += 1
    warp.n_groups += int(op.argument > 0)
    return at + op.latency, at + sm.costs["scoreboard_release"]


def use_mbarrier(sm: NaiveSm, warp: Any, op: Any, at: int) -> Stamps:
    """The operation goes through the port; a wait is a question that is answered then or later."""
    cost = sm.costs["mbarrier_port"]
    done = sm.port.wavefronts.reserve(at, cost) - cost + op.latency
    release = at + sm.costs["scoreboard_release"]
    barrier = warp.cta.mbarrier(op.event.mbarrier)
    if op.kind == fx.MBARRIER_INIT:
        barrier.restart(op.event.count)
    elif op.kind == fx.MBARRIER_ARRIVE:
        barrier.arrive(op.event.count, 0, done)
    elif op.kind == fx.MBARRIER_EXPECT:
        barrier.arrive(1, op.event.count, done)
    elif op.kind == fx.MBARRIER_WAIT:
        warp.questions.append((op.write, Question(barrier, op.event.parity, done)))
        return None, release
    return done, release


def load_box(sm: NaiveSm, warp: Any, op: Any, at: int) -> Stamps:
    """Box rows are requested one after another; the mbarrier hears of all bytes when the last row is written."""
    costs, tensor = sm.costs, op.event.tensor
    start = max(sm.loads_free_at, at + costs["bulk_issue"])
    rows = rows_of(tensor, op.event.coordinate)
    sm.loads_free_at = start + len(rows) * ticks(tensor.row_cycles)
    done = sm.loads_free_at
    for n, row in enumerate(rows):
        asked = start + n * ticks(tensor.row_cycles)
        back = max([asked, *(sm.memory.read_l2(line, mask, asked, tensor.promotion) for line, mask in row)])
        done = max(done, sm.port.operands.reserve_share(back, ticks(tensor.port_cycles)))
    done += costs["bulk_extra"]
    warp.cta.mbarrier(op.event.mbarrier).arrive(0, -op.event.count, done)
    return done, at + costs["bulk_release"]


def store_box(sm: NaiveSm, warp: Any, op: Any, at: int) -> Stamps:
    costs, tensor = sm.costs, op.event.tensor
    start = max(sm.stores_free_at, at + costs["bulk_issue"])
    sent = start + op.event.count * costs["bulk_store_byte"]
    sm.stores_free_at = sent
    sm.memory.store_free_at = max(sm.memory.store_free_at, start)
    written = [sm.memory.write_l2(line, mask, start) for row in rows_of(tensor, op.event.coordinate) for line, mask in row]
    done = max([sent, *written])
    sm.memory.accepted_at = max(sm.memory.accepted_at, done)
    warp.stores_done_at = max(warp.stores_done_at, done + costs["bulk_store_latency"])
    return done, at + costs["bulk_release"]


def close_group(sm: NaiveSm, warp: Any, op: Any, at: int) -> Stamps:
    warp.copy_groups.append(warp.stores_done_at if op.effect == fx.BULK_COMMIT else warp.copies_done_at)
    return at + op.latency, at + sm.costs["scoreboard_release"]


def arrive_after_copies(sm: NaiveSm, warp: Any, op: Any, at: int) -> Stamps:
    warp.cta.mbarrier(op.event.mbarrier).arrive(op.event.count, 0, max(warp.copies_done_at, at))
    return at + op.latency, at + sm.costs["scoreboard_release"]


def hold_warp(sm: NaiveSm, warp: Any, op: Any, at: int) -> Stamps:
    warp.hold(at + op.latency)
    return at + op.latency, at + sm.costs["scoreboard_release"]


ACTIONS = {
    fx.FIXED: use_pipe,
    fx.SHARED_ACCESS: access_shared,
    fx.GLOBAL_LOAD: access_global,
    fx.GLOBAL_STORE: access_global,
    fx.GLOBAL_COPY: access_global,
    fx.GLOBAL_ATOMIC: access_global,
    fx.TENSOR_ASYNC: start_mma,
    fx.MBARRIER: use_mbarrier,
    fx.BULK_LOAD: load_box,
    fx.BULK_STORE: store_box,
    fx.COPY_COMMIT: close_group,
    fx.BULK_COMMIT: close_group,
    fx.COPY_ARRIVE: arrive_after_copies,
    fx.FENCE: hold_warp,
}


def lines_of(event: Event) -> Lines:
    """(line number, sectors) of a global access."""
    assert event.lines is not None
    return [(event.address // LINE_BYTES + offset, mask) for offset, mask in event.lines]


def rows_of(tensor: Tensor, coordinate: tuple[int, ...]) -> list[Lines]:
    """Lines of each box row, none for a row outside the tensor."""
    rows = [()]
    for d in range(len(tensor.box) - 1, 0, -1):
        rows = [(*row, place) for row in rows for place in range(tensor.box[d])]
    found = []
    for row in rows:
        place = [coordinate[0], *(coordinate[d + 1] + step for d, step in enumerate(reversed(row)))]
        found.append(_row_lines(tensor, place))
    return found


def _row_lines(tensor: Tensor, place: list[int]) -> Lines:
    if any(not 0 <= place[d] < tensor.shape[d] for d in range(1, len(place))):
        return []
    first = max(place[0], 0)
    stop = max(first, min(place[0] + tensor.box[0], tensor.shape[0]))
    origin = tensor.address + sum(place[d] * tensor.strides[d - 1] for d in range(1, len(place)))
    sectors: dict[int, int] = {}
    begin, end = origin + first * tensor.element, origin + stop * tensor.element
    for sector in range(begin // SECTOR_BYTES, -(-end // SECTOR_BYTES)) if end > begin else ():
        line, bit = divmod(sector, LINE_BYTES // SECTOR_BYTES)
        sectors[line] = sectors.get(line, 0) | 1 << bit
    return sorted(sectors.items())
