"""Many cases over worker processes, so that no case can take the run down with it.

The order of the results is the order of the tasks, whatever the number of workers. A worker that dies (out of memory,
a crash in native code) costs its own case at most: the cases that were running are tried again alone.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


def run_all(
    tasks: Sequence[Task],
    work: Callable[[Task], Result],
    n_workers: int,
    lost: Callable[[Task], Result],
    on_done: Callable[[Result], None] = lambda result: None,
    is_warm: Callable[[Result], bool] = lambda result: True,
) -> list[Result]:
    """``work(task)`` for every task in worker processes; ``lost(task)`` stands in where the worker died twice.

    ``work`` and the tasks must be picklable. Until a first result ``is_warm``, one worker runs alone, so that what it
    compiles is found on disk by the others. ``on_done`` sees each result as it arrives.
    """
    results: dict[int, Result] = {}
    pending = deque(enumerate(tasks))
    warm = False

    def finish(index: int, result: Result) -> None:
        nonlocal warm
        results[index] = result
        warm = warm or is_warm(result)
        on_done(result)

    while pending:
        suspects = _drain(pending, work, lambda: n_workers if warm else 1, finish)
        for index, task in suspects:
            finish(index, _alone(task, work, lost))
    return [results[index] for index in range(len(tasks))]


def _drain(
    pending: deque[tuple[int, Task]],
    work: Callable[[Task], Result],
    width: Callable[[], int],
    finish: Callable[[int, Result], None],
) -> list[tuple[int, Task]]:
    """Run ``pending`` until it is empty or the pool breaks; the tasks that were running then, in order."""
    running: dict[Future[Result], tuple[int, Task]] = {}
    with _pool(max(width(), multiprocessing.cpu_count())) as pool:
        while pending or running:
            while pending and len(running) < width():
                try:
                    running[pool.submit(work, pending[0][1])] = pending[0]
                except BrokenProcessPool:  # a worker died since the last result: what was running is suspect
                    return sorted(running.values(), key=lambda item: item[0])
                pending.popleft()
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            broken = [future for future in done if isinstance(future.exception(), BrokenProcessPool)]
            for future in done.difference(broken):
                finish(running.pop(future)[0], future.result())
            if broken:
                return sorted(running.values(), key=lambda item: item[0])
    return []


def _alone(task: Task, work: Callable[[Task], Result], lost: Callable[[Task], Result]) -> Result:
    with _pool(1) as pool:
        try:
            return pool.submit(work, task).result()
        except BrokenProcessPool:
            return lost(task)


@contextmanager
def _pool(n_workers: int) -> Iterator[ProcessPoolExecutor]:
    """A pool whose workers end with the run: at once when it is interrupted, by themselves when it is killed."""
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(
        n_workers, mp_context=multiprocessing.get_context("spawn"), initializer=_serve, initargs=(os.getpid(),)
    )
    try:
        yield pool
    except BaseException:
        for worker in set(multiprocessing.active_children()) - others:
            worker.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _serve(parent: int) -> None:
    """In a worker: an interrupt is the parent's business, and without a parent there is nothing to do."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_without, args=(parent,), daemon=True).start()


def _end_without(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(PARENT_CHECK_SECONDS)
    os._exit(1)


PARENT_CHECK_SECONDS = 1.0
