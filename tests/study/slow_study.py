"""The study command over closed-form kernels that take a moment each, so that it can be stopped in the middle."""

from __future__ import annotations

import signal
import time
from typing import Any

from simulator.cli.app import main
from simulator.study import work
from simulator.validation import warm_up
from tests.study.closed_form import project


def slowly(*arguments: Any, **options: Any) -> Any:
    time.sleep(0.01)
    return project(*arguments, **options)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a shell starts with interrupts ignored
    work.project_trace = slowly
    warm_up.ensure_compiled = lambda *unused: None
    main()
