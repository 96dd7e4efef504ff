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
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.process import BaseProcess
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


class Workers:
    """Processes that outlive one run, for ``run_all``; a context that ends them, at once when it is left by an exception.

    Workers ignore an interrupt, which is their parent's business, and end by themselves when the parent was killed.
    """

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None
        self._others = set(multiprocessing.active_children())

    def pool(self, n_workers: int) -> ProcessPoolExecutor:
        """The pool, made if there is none (or none any more)."""
        if self._pool is None:
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(n_workers, mp_context=context, initializer=_serve, initargs=(os.getpid(),))
        return self._pool

    def drop(self) -> None:
        """End the pool; a next one starts fresh."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, kind: type[BaseException] | None, *unused: object) -> None:
        if kind is not None:
            end_children(self._others)
        self.drop()


def end_children(others: Iterable[BaseProcess]) -> None:
    """Kill every child of this process that is none of ``others``."""
    for child in set(multiprocessing.active_children()).difference(others):
        child.kill()


def _serve(parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_without, args=(parent,), daemon=True).start()


def _end_without(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(PARENT_CHECK_SECONDS)
    os._exit(1)


PARENT_CHECK_SECONDS = 1.0


def run_all(
    tasks: Sequence[Task],
    work: Callable[[Task], Result],
    n_workers: int,
    lost: Callable[[Task], Result],
    on_done: Callable[[Result], None] = lambda result: None,
    is_warm: Callable[[Result], bool] = lambda result: True,
    workers: Workers | None = None,
) -> list[Result]:
    """``work(task)`` for every task in worker processes; ``lost(task)`` stands in where the worker died twice.

    ``work`` and the tasks must be picklable. Until a first result ``is_warm``, one worker runs alone, so that what it
    compiles is found on disk by the others. ``on_done`` sees each result as it arrives. ``workers`` are used and left
    running; without them, the run has its own.
    """
    if workers is None:
        with Workers() as own:
            return run_all(tasks, work, n_workers, lost, on_done, is_warm, own)
    results: dict[int, Result] = {}
    pending = deque(enumerate(tasks))
    warm = False

    def finish(index: int, result: Result) -> None:
        nonlocal warm
        results[index] = result
        warm = warm or is_warm(result)
        on_done(result)

    while pending:
        suspects = _drain(pending, work, lambda: n_workers if warm else 1, finish, workers)
        for index, task in suspects:
            finish(index, _alone(task, work, lost))
    return [results[index] for index in range(len(tasks))]


def _drain(
    pending: deque[tuple[int, Task]],
    work: Callable[[Task], Result],
    width: Callable[[], int],
    finish: Callable[[int, Result], None],
    workers: Workers,
) -> list[tuple[int, Task]]:
    """Run ``pending`` until it is empty or the pool breaks; the tasks that were running then, in order."""
    running: dict[Future[Result], tuple[int, Task]] = {}
    pool = workers.pool(max(width(), multiprocessing.cpu_count()))
    while pending or running:
        while pending and len(running) < width():
            try:
                running[pool.submit(work, pending[0][1])] = pending[0]
            except BrokenProcessPool:  # a worker died since the last result: what was running is suspect
                return _suspects(running, workers)
            pending.popleft()
        done, _ = wait(running, return_when=FIRST_COMPLETED)
        broken = [future for future in done if isinstance(future.exception(), BrokenProcessPool)]
        for future in done.difference(broken):
            finish(running.pop(future)[0], future.result())
        if broken:
            return _suspects(running, workers)
    return []


def _suspects(running: dict[Future[Result], tuple[int, Task]], workers: Workers) -> list[tuple[int, Task]]:
    """What was running in the pool that broke, which is given up."""
    workers.drop()
    return sorted(running.values(), key=lambda item: item[0])


def _alone(task: Task, work: Callable[[Task], Result], lost: Callable[[Task], Result]) -> Result:
    with Workers() as workers:
        try:
            return workers.pool(1).submit(work, task).result()
        except BrokenProcessPool:
            return lost(task)
