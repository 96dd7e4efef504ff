"""How the interpreter's functions are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


def internal(function: Function) -> Function:
    """Compile a function that only compiled code calls: without the wrappers that make it callable from Python, which
    take most of the compile time of a small function."""
    compiled: Function = njit(cache=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)
    return compiled
