"""Units of the interpreter: parts that are compiled apart and called through pointers.

Whole-program compilation optimises a function again in every caller; the interpreter would take minutes to compile. A
unit is optimised once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from numba import config, from_dtype, typeof, types
from numba.experimental import function_type as _function_pointers

from simulator.frontends.sass.execution_log import new_log
from simulator.frontends.sass.memory_image import new_memory
from simulator.frontends.sass.semantics.access_differences import access_difference
from simulator.frontends.sass.semantics.asynchronous import asynchronous
from simulator.frontends.sass.semantics.compiled import uncounted
from simulator.frontends.sass.semantics.compute import compute
from simulator.frontends.sass.semantics.control import control_row
from simulator.frontends.sass.semantics.memory import access
from simulator.frontends.sass.semantics.propagation import follow
from simulator.frontends.sass.semantics.records import CTA, ROW, WARP, records
from simulator.frontends.sass.warp_state import new_differences

assert _function_pointers  # importing it teaches numba the type of a UnitPointer


class Units(NamedTuple):
    """Entry points of the units; each is a pointer to a compiled function."""

    compute: Any
    follow: Any
    access: Any
    access_difference: Any
    asynchronous: Any
    control_row: Any


class UnitPointer:
    """A function of fixed signature that other compiled functions call by address; compiled when that is asked for.
    Numba asks for the type by ``_numba_type_`` and for the address by ``__wrapper_address__``."""

    def __init__(self, function: Callable[..., Any], signature: Any):
        self._dispatcher = uncounted(function)
        self._signature = signature
        self._address = 0
        self._numba_type_ = types.FunctionType(signature)

    def __wrapper_address__(self) -> int:
        if not self._address:
            if self._signature.args not in self._dispatcher.overloads:
                self._dispatcher.compile(self._signature)
            compiled = self._dispatcher.overloads[self._signature.args]
            self._address = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_cfunc_wrapper_name)
        return self._address

    def signature(self) -> Any:
        """Signature of the function."""
        return self._signature


@lru_cache(maxsize=1)
def units() -> Units:
    """The units, compiled (or loaded from the cache) on first use."""
    if config.DISABLE_JIT:
        return Units(compute, follow, access, access_difference, asynchronous, control_row)
    word, cta, warp, row = types.int64, from_dtype(CTA), from_dtype(WARP), from_dtype(ROW)
    pair = types.UniTuple(word, 2)
    log, memory, differences = typeof(new_log()), typeof(new_memory(1, 1)), typeof(new_differences())
    rows, warps = typeof(records(ROW, 1)), typeof(records(WARP, 1))
    return Units(
        compute=UnitPointer(compute, pair(cta, warp, row, word)),
        follow=UnitPointer(follow, word(cta, warp, row, differences, word, word)),
        access=UnitPointer(access, pair(cta, warp, memory, log, row, word, word, word)),
        access_difference=UnitPointer(access_difference, word(cta, warp, memory, row, differences, word)),
        asynchronous=UnitPointer(asynchronous, pair(cta, warp, log, row, word, word)),
        control_row=UnitPointer(control_row, word(rows, cta, warps, warp, log, row, word, word, word, word)),
    )
