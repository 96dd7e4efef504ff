"""Bandwidth servers: is every tick of service given once, and never early?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.memory.calendar import B_RING, calendar_size, make_idle, reserve, reserve_share
from tests.reference.naive_calendar import NaiveCalendar

SHIFT = 4
WINDOW = 1 << SHIFT
N_WINDOWS = 1 << 10
HORIZON = 2000

requests = st.lists(st.tuples(st.integers(0, HORIZON), st.integers(1, 3 * WINDOW), st.booleans()), max_size=60)


def idle(n_windows: int = N_WINDOWS) -> np.ndarray:
    """A heap with one idle server at offset 0."""
    heap = np.zeros(calendar_size(n_windows), np.int64)
    make_idle(heap, 0, SHIFT, n_windows)
    return heap


def given_ticks(heap: np.ndarray) -> np.ndarray:
    """Service given by each window of the ring."""
    return heap[B_RING + 1 :: 2]


@given(requests)
@settings(max_examples=60, deadline=None)
def test_is_all_service_given_once_and_never_before_arrival(asked: list[tuple[int, int, bool]]) -> None:
    heap = idle()
    for at, amount, is_share in asked:
        served = (reserve_share if is_share else reserve)(heap, 0, at, amount)
        assert served >= at + amount
    assert given_ticks(heap).sum() == sum(amount for _, amount, _ in asked)
    assert given_ticks(heap).max(initial=0) <= WINDOW


@given(requests)
@settings(max_examples=60, deadline=None)
def test_does_it_agree_with_a_plain_dictionary_of_windows(asked: list[tuple[int, int, bool]]) -> None:
    heap, naive = idle(), NaiveCalendar(WINDOW)
    for at, amount, is_share in asked:
        if is_share:
            assert reserve_share(heap, 0, at, amount) == naive.reserve_share(at, amount)
        else:
            assert reserve(heap, 0, at, amount) == naive.reserve(at, amount)


@given(st.lists(st.tuples(st.integers(0, HORIZON), st.integers(1, WINDOW)), min_size=1, max_size=60), st.randoms())
@settings(max_examples=60, deadline=None)
def test_does_the_order_of_requests_hardly_matter(asked: list[tuple[int, int]], random: object) -> None:
    """The same windows are used up; the last request is served within a window of the same time."""
    shuffled = list(asked)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    heaps, last = [], []
    for order in (asked, shuffled):
        heap = idle()
        last.append(max(reserve(heap, 0, at, amount) for at, amount in order))
        heaps.append(given_ticks(heap))
    assert (heaps[0] == heaps[1]).all()
    assert abs(last[0] - last[1]) <= WINDOW


@pytest.mark.parametrize("amount", [1, 3, WINDOW, 5 * WINDOW + 1])
def test_does_a_backlog_drain_at_the_servers_rate(amount: int) -> None:
    heap = idle()
    served = [reserve(heap, 0, 0, amount) for _ in range(100)]
    assert served == [amount * (n + 1) for n in range(100)]


def test_does_a_backlog_longer_than_the_ring_still_end() -> None:
    heap = idle(n_windows=8)
    assert reserve(heap, 0, 0, 100 * WINDOW) == 100 * WINDOW


def test_does_a_late_request_use_what_an_early_booking_has_left() -> None:
    """A copy books the port for when its data arrives; an access before that is not held up."""
    heap = idle()
    assert reserve(heap, 0, 50 * WINDOW, 10 * WINDOW) == 60 * WINDOW
    assert reserve(heap, 0, 0, WINDOW) == WINDOW
    assert reserve(heap, 0, 49 * WINDOW, 2 * WINDOW) == 60 * WINDOW + WINDOW


def test_do_interleaved_requests_not_wait_while_their_window_has_room() -> None:
    heap = idle()
    assert [reserve_share(heap, 0, 0, 4) for _ in range(5)] == [4, 4, 4, 4, WINDOW + 4]


def test_do_dense_requests_follow_one_another() -> None:
    heap = idle()
    assert [reserve(heap, 0, 0, 4) for _ in range(5)] == [4, 8, 12, 16, 20]


def test_is_an_idle_server_never_a_delay() -> None:
    heap = idle()
    for at in range(0, 40 * WINDOW, 2 * WINDOW):
        assert reserve(heap, 0, at, 7) == at + 7
