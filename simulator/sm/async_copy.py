"""Bulk copies through tensor maps: box rows, one after another, requested for every member SM."""

from __future__ import annotations

from simulator.compiled import compiled
from simulator.isa.effects import BULK_FILL_BYTES, CAUSE_TMA, FILL_BYTES, LINE_BYTES, LINE_SHIFT, SECTOR_SHIFT, WHY_CAUSE_SHIFT
from simulator.memory.calendar import reserve_share
from simulator.memory.l2 import write_line
from simulator.memory.layout import COUNTER, SAMPLE_SHIFT
from simulator.sm.blame import blame_read
from simulator.sm.global_memory import grow_lag, member_base, request, rotate
from simulator.sm.inputs import (
    E_COORDINATE,
    E_COUNT,
    E_TENSOR,
    K_TENSORS,
    T_ADDRESS,
    T_BOX,
    T_DIMENSIONS,
    T_ELEMENT,
    T_PROMOTION,
    T_ROW,
    T_SHAPE,
    T_STRIDE,
    T_WAVEFRONTS,
    TENSOR_SIZE,
)
from simulator.sm.layout import (
    BULK_EXTRA,
    BULK_ISSUE,
    BULK_STORE_BYTE,
    C_MEMBERS,
    C_SM,
    MEMBER_PARTITION,
    MEMBER_SIZE,
    MISS_QUEUED,
    P_BULK,
    P_BULK_STORE,
    P_LAST_DELAY,
    P_MEMBERS,
    P_N_MEMBERS,
    P_OPERANDS,
    P_STORE,
    P_WRITE_ACCEPTED,
    WHY,
)


@compiled
def tensor_of(k, event):
    """Record of the tensor map that an event names."""
    return k[K_TENSORS] + k[event + E_TENSOR] * TENSOR_SIZE


@compiled
def coordinate(x, k, c, m, event, d):
    """Tensor coordinate ``d`` of an event for member ``m`` of CTA slot ``c``."""
    return k[event + E_COORDINATE + d] + member_base(x, k, c, m, event, d)


@compiled
def rows_in_box(k, tensor):
    """Rows of a box: all dimensions but the innermost."""
    rows = 1
    for d in range(1, k[tensor + T_DIMENSIONS]):
        rows *= k[tensor + T_BOX + d]
    return rows


@compiled
def row_extent(x, k, c, m, event, tensor, row):
    """Global byte range of a box row for member ``m``: (first, one past last); empty when outside the tensor."""
    start = coordinate(x, k, c, m, event, 0)
    stop = min(start + k[tensor + T_BOX], k[tensor + T_SHAPE])
    start = max(start, 0)
    address = k[tensor + T_ADDRESS]
    rest = row
    for d in range(1, k[tensor + T_DIMENSIONS]):
        place = coordinate(x, k, c, m, event, d) + rest % k[tensor + T_BOX + d]
        rest //= k[tensor + T_BOX + d]
        if place < 0 or place >= k[tensor + T_SHAPE + d]:
            return 0, 0
        address += place * k[tensor + T_STRIDE + d]
    return address + start * k[tensor + T_ELEMENT], address + max(start, stop) * k[tensor + T_ELEMENT]


@compiled
def first_followed_row(x, k, c, m, event):
    """Box rows whose coordinate is a multiple of the sampling step are followed: the first of them."""
    return -coordinate(x, k, c, m, event, 1) & ((1 << x[SAMPLE_SHIFT]) - 1)


@compiled
def sector_mask(first, last, line):
    """Sectors of ``line`` in the byte range [first, last)."""
    low = max(first - (line << LINE_SHIFT), 0) >> SECTOR_SHIFT
    high = (min(last - (line << LINE_SHIFT), LINE_BYTES) + (1 << SECTOR_SHIFT) - 1) >> SECTOR_SHIFT
    return (1 << high) - (1 << low)


@compiled
def load_box(x, k, c, event, at):
    """Load a box into shared memory; returns when its last byte is there.

    Rows are requested at the engine's row rate; the box completes with its slowest line.
    """
    sm = x[c + C_SM]
    tensor = tensor_of(k, event)
    rows = rows_in_box(k, tensor)
    start = max(x[sm + P_BULK], at + x[BULK_ISSUE])
    end = start + rows * k[tensor + T_ROW]
    x[sm + P_BULK] = end
    step = 1 << x[SAMPLE_SHIFT]
    done = 0
    for row in range(first_followed_row(x, k, c, 0, event), rows, step):
        back = request_row(x, k, c, sm, event, tensor, row, start + row * k[tensor + T_ROW])
        done = max(done, reserve_share(x, x[sm + P_OPERANDS], back, step * k[tensor + T_WAVEFRONTS]))
    if done == 0:
        done = end + x[sm + P_LAST_DELAY]
    for m in range(x[sm + P_N_MEMBERS]):
        if x[c + C_MEMBERS + m] >= 0:
            x[COUNTER + FILL_BYTES] += k[event + E_COUNT]
            x[COUNTER + BULK_FILL_BYTES] += k[event + E_COUNT]
    x[WHY] = blame_read(x, done - end, CAUSE_TMA) if done > end else CAUSE_TMA << WHY_CAUSE_SHIFT
    return max(done, end) + x[BULK_EXTRA]


@compiled
def request_row(x, k, c, sm, event, tensor, row, at):
    """Read one box row for every member; returns when member 0 has it."""
    grow_lag(x, c, at)
    x[MISS_QUEUED] = 0
    n_members = x[sm + P_N_MEMBERS]
    m = rotate(x, sm, n_members)
    done = at
    for _ in range(n_members):
        m = m + 1 if m + 1 < n_members else 0
        if x[c + C_MEMBERS + m] < 0:
            continue
        first, last = row_extent(x, k, c, m, event, tensor, row)
        if first == last:
            continue
        for line in range(first >> LINE_SHIFT, ((last - 1) >> LINE_SHIFT) + 1):
            back = request(x, c, m, line, sector_mask(first, last, line), k[tensor + T_PROMOTION], at)
            if m == 0:
                done = max(done, back)
    return done


@compiled
def store_box(x, k, c, event, at):
    """Store a box from shared memory; returns when the SM has sent it and the L2 has taken it."""
    sm = x[c + C_SM]
    tensor = tensor_of(k, event)
    start = max(x[sm + P_BULK_STORE], at + x[BULK_ISSUE])
    sent = start + k[event + E_COUNT] * x[BULK_STORE_BYTE]
    x[sm + P_BULK_STORE] = sent
    x[sm + P_STORE] = max(x[sm + P_STORE], start)
    accepted = sent
    for m in range(x[sm + P_N_MEMBERS]):
        if x[c + C_MEMBERS + m] < 0:
            continue
        near = x[sm + P_MEMBERS + MEMBER_SIZE * m + MEMBER_PARTITION]
        for row in range(first_followed_row(x, k, c, m, event), rows_in_box(k, tensor), 1 << x[SAMPLE_SHIFT]):
            first, last = row_extent(x, k, c, m, event, tensor, row)
            if first == last:
                continue
            for line in range(first >> LINE_SHIFT, ((last - 1) >> LINE_SHIFT) + 1):
                accepted = max(accepted, write_line(x, line, sector_mask(first, last, line), near, start))
    x[sm + P_WRITE_ACCEPTED] = max(x[sm + P_WRITE_ACCEPTED], accepted)
    return accepted
