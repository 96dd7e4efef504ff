"""The decorator of compiled verbs: numba with an on-disk cache, one compilation per function.

Numba specialises a function for each constant that a caller passes; a machine of a hundred small verbs then
compiles several times over.  Here constants count as plain integers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit, types


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function`` on its first call, for int64 arguments rather than for each constant."""
    dispatcher = njit(cache=True)(function)
    if not hasattr(dispatcher, "get_call_template"):  # NUMBA_DISABLE_JIT: the plain function
        return dispatcher
    resolve = dispatcher.get_call_template

    def resolve_without_constants(args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
        return resolve(tuple(map(types.unliteral, args)), {k: types.unliteral(v) for k, v in kws.items()})

    dispatcher.get_call_template = resolve_without_constants
    return dispatcher
