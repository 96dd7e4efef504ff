"""How the interpreter's functions are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import config, njit, types


def uncounted(function: Callable[..., Any]) -> Any:
    """Compile without counting references to arrays: the state outlives every call, nothing is allocated, and the counts took
    half of the interpreter's time."""
    return njit(cache=True, error_model="numpy", _nrt=False)(function)


def internal(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that only compiled code calls: without the wrappers that make it callable from Python, and once
    for whole numbers rather than for each constant that a caller passes."""
    dispatcher = njit(cache=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False)(
        function
    )
    if config.DISABLE_JIT:
        return dispatcher
    resolve = dispatcher.get_call_template

    def resolve_without_constants(args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
        return resolve(tuple(map(_plain, args)), {name: _plain(kind) for name, kind in kws.items()})

    dispatcher.get_call_template = resolve_without_constants
    return dispatcher


def _plain(kind: Any) -> Any:
    """The type without its constant; all integers that are not 64 bits wide become int64."""
    kind = types.unliteral(kind)
    return types.int64 if isinstance(kind, types.Integer) and kind.bitwidth < 64 else kind


class EntryPoint:
    """Calls a compiled function whose argument types never change, without asking for them again: the dispatcher takes
    longer to look at records than a short run takes."""

    def __init__(self, function: Callable[..., Any]):
        self._function = function
        self._entry: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        if self._entry is not None:
            return self._entry(*arguments)
        result = self._function(*arguments)
        if not config.DISABLE_JIT:
            (compiled,) = self._function.overloads.values()  # type: ignore[attr-defined]
            self._entry = compiled.entry_point
        return result
