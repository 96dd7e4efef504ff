"""Tasks to results: in this process, in worker processes, or on a Dask cluster; the answer is the same.

Results are kept as they arrive, so that whatever ends the run costs what was in flight at most.
"""

from __future__ import annotations

import logging
import multiprocessing
import pickle
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, Protocol

from simulator.errors import UserError
from simulator.study.store import ResultStore
from simulator.study.work import Bench, Task, failure, run_task
from simulator.validation.workers import Workers, end_children, run_all

WORKER_DIED = "the worker process died on this point (out of memory, or a crash in native code)"
LOCAL_CLUSTER = "local:"
CONNECT_SECONDS = 10
CLOSE_SECONDS = 1
Done = Callable[[Task, dict[str, Any]], None]
Run = Callable[[Sequence[Task], Done], None]
"""Runs tasks in any order; tells each result."""


class Backend(Protocol):
    """Runs tasks and hands each result over as it arrives; ``opened`` once for all stages of a study."""

    def opened(self, bench: Bench) -> AbstractContextManager[Run]: ...


class Serial:
    """In this process, one after the other."""

    @contextmanager
    def opened(self, bench: Bench) -> Iterator[Run]:
        def run(tasks: Sequence[Task], done: Done) -> None:
            for task in tasks:
                done(*run_task(bench, task))

        yield run


class Processes:
    """``n_workers`` processes of this machine."""

    def __init__(self, n_workers: int) -> None:
        self.n_workers = n_workers

    @contextmanager
    def opened(self, bench: Bench) -> Iterator[Run]:
        with _pickled(bench) as path, Workers() as workers:

            def run(tasks: Sequence[Task], done: Done) -> None:
                run_all(
                    tasks,
                    partial(_run_from_file, str(path)),
                    self.n_workers,
                    lost=lambda task: (task, failure(WORKER_DIED, is_final=False)),
                    on_done=lambda answer: done(*answer),
                    workers=workers,
                )

            yield run


class Dask:
    """The cluster at ``address`` (``tcp://host:port``), or ``local:N`` for N worker processes of this machine."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.n_local = _n_local(address)

    @contextmanager
    def opened(self, bench: Bench) -> Iterator[Run]:
        from distributed import as_completed

        with self._client() as client:
            everywhere = client.scatter(bench, broadcast=True, hash=False)

            def run(tasks: Sequence[Task], done: Done) -> None:
                by_key = {f"kernelcast-{task.key}": task for task in tasks}
                futures = [client.submit(run_task, everywhere, task, key=key) for key, task in by_key.items()]
                for future in as_completed(futures):
                    if future.status == "finished":
                        done(*future.result())
                    else:
                        reason = f"{WORKER_DIED}: {type(future.exception()).__name__}"
                        done(by_key[str(future.key)], failure(reason, is_final=False))
                    future.release()

            yield run

    @contextmanager
    def _client(self) -> Iterator[Any]:
        from distributed import Client

        if self.n_local:
            with _local_cluster(self.n_local) as cluster, Client(cluster) as client:
                yield client
            return
        try:
            client = Client(self.address, timeout=CONNECT_SECONDS)
        except (OSError, ValueError) as error:
            raise UserError(
                f"no Dask scheduler answers at {self.address} ({type(error).__name__} after {CONNECT_SECONDS} s)"
            ) from error
        with client:
            yield client


@contextmanager
def _local_cluster(n_workers: int) -> Iterator[Any]:
    """A cluster of this machine, whose workers are ended at once when it is left by an exception."""
    from distributed import LocalCluster

    others = set(multiprocessing.active_children())
    with _interrupts_ignored():  # the workers inherit it: an interrupt is this process's business
        cluster = LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=logging.CRITICAL
        )
    try:
        yield cluster
    except BaseException:
        end_children(others)
        with suppress(TimeoutError):
            cluster.close(timeout=CLOSE_SECONDS)
        raise
    cluster.close()


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def backend_for(jobs: int, dask: str | None) -> Backend:
    """``dask`` address if there is one, else ``jobs`` processes, else (0) this process; UserError for a bad address."""
    if dask is None:
        return Processes(jobs) if jobs else Serial()
    try:
        import distributed  # noqa: F401
    except ImportError as error:
        raise UserError("--dask needs dask.distributed: pip install 'kernelcast[cluster]'") from error
    return Dask(dask)


def execute(
    run: Run,
    tasks: Sequence[Task],
    store: ResultStore,
    on_done: Callable[[dict[str, Any]], None] = lambda result: None,
) -> dict[str, dict[str, Any]]:
    """Result of every task by key; what the store has is not computed, what is computed goes there."""
    results: dict[str, dict[str, Any]] = {}
    missing: dict[str, Task] = {}
    for task in tasks:
        if task.key in results or task.key in missing:
            continue
        found = store.get(task.key)
        if found is None:
            missing[task.key] = task
        else:
            results[task.key] = found
            on_done(found)

    def done(task: Task, result: dict[str, Any]) -> None:
        is_final = result.pop("is_final", True)
        if is_final:
            store.put(task.key, result)
        results[task.key] = result
        on_done(result)

    if missing:
        run(list(missing.values()), done)
    return results


def _n_local(address: str) -> int:
    if not address.startswith(LOCAL_CLUSTER):
        if "://" not in address:
            raise UserError(f"--dask '{address}' is neither tcp://HOST:PORT nor local:N")
        return 0
    number = address.removeprefix(LOCAL_CLUSTER)
    if not number.isdigit() or int(number) < 1:
        raise UserError(f"--dask '{address}': give a number of workers from 1 up, such as local:2")
    return int(number)


@contextmanager
def _pickled(bench: Bench) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="kernelcast-") as folder:
        path = Path(folder) / "bench"
        path.write_bytes(pickle.dumps(Bench(bench.chips, bench.traces, bench.problems)))
        yield path


@cache
def _bench(path: str) -> Bench:
    found: Bench = pickle.loads(Path(path).read_bytes())
    return found


def _run_from_file(path: str, task: Task) -> tuple[Task, dict[str, Any]]:
    return run_task(_bench(path), task)
