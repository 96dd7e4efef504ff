"""Records that Python and compiled code share: lowered rows, warp and CTA state, events.

Register operands of a row are indices of *value rows* (``warp.values[row, lane]``): general registers, uniform registers,
special registers and constants lie in one array, so a verb reads 32 lanes and never asks what kind of operand it was
given. Uniform registers hold the same word in all lanes. *Unknown* masks mark lanes whose value is not known (loaded
data, results of instructions that are not interpreted). *Difference* handles name how a value differs between CTAs that
are executed together (``differences.py``); 0 = the same in all of them.
"""

from __future__ import annotations

import numpy as np

from simulator.frontends.sass.semantics.codes import LANES, N_PREDICATES

MAX_VALUE_ROWS = 1024
MAX_FRAGMENTS = 40
N_CONVERGENCE = 17
WARP_SYNC_BARRIER = 16
"""Place of WARPSYNC among the convergence barriers B0..B15."""
N_BARRIERS = 16
MAX_RANK = 5
SHARED_BYTES = 256 << 10
"""Size of the functional shared window; what a CTA may touch is ``cta.shared_limit``."""
CONSTANT_BYTES = 256 << 10
N_BANKS = 32
WORD_BYTES = 4

ROW = np.dtype([(name, np.int64 if name in ("x0", "guard_invert", "p_invert", "q_invert", "s_invert") else np.int32)
                for name in (
    "family", "verb", "action", "guard", "guard_invert", "dest", "n_dest", "is_uniform", "dest_p", "dest_q",
    "a", "a_mod", "a_hi", "b", "b_mod", "b_hi", "c", "c_mod", "c_hi", "p", "p_invert", "q", "q_invert", "s", "s_invert",
    "x0", "x1", "x2", "x3", "target", "run", "number",
)], align=True)
"""One lowered instruction. ``a b c``: value rows of the sources, ``*_mod`` their modifiers, ``*_hi`` the high words of
64-bit operands. ``p q s``: predicate sources with the mask that inverts them. ``x0..x3``: immediates by verb. ``run``:
rows that may be logged at once from here (straight line, nothing to execute); ``number``: of the row itself."""

_WARP_FIELDS: list[tuple[str, object, tuple[int, ...]]] = [
    ("unknown", np.int64, (MAX_VALUE_ROWS,)),
    ("difference", np.int64, (MAX_VALUE_ROWS,)),
    ("predicate", np.int64, (N_PREDICATES,)),
    ("predicate_unknown", np.int64, (N_PREDICATES,)),
    ("predicate_difference", np.int64, (N_PREDICATES,)),
    ("convergence", np.int64, (N_CONVERGENCE,)),
    ("fragment_pc", np.int64, (MAX_FRAGMENTS,)),
    ("fragment_mask", np.int64, (MAX_FRAGMENTS,)),
    ("fragment_wait", np.int64, (MAX_FRAGMENTS,)),
    *((name, np.int64, ()) for name in ("number", "status", "pc", "mask", "n_fragments", "exited", "at_barrier")),
]


def _warp_record() -> np.dtype:
    """``values`` uint32 [rows, L] and ``floats`` share their bytes."""
    value_bytes = MAX_VALUE_ROWS * LANES * WORD_BYTES
    rest = np.dtype([(name, kind, shape) for name, kind, shape in _WARP_FIELDS])
    matrix = (MAX_VALUE_ROWS, LANES)
    return np.dtype({
        "names": ["values", "floats", *rest.names],
        "formats": [(np.uint32, matrix), (np.float32, matrix), *(rest.fields[name][0] for name in rest.names)],
        "offsets": [0, 0, *(value_bytes + rest.fields[name][1] for name in rest.names)],
        "itemsize": value_bytes + rest.itemsize,
    })


WARP = _warp_record()
"""State of one warp. ``predicate`` masks (P0..P6, PT, UP0..UP6, UPT) with their unknown lanes and differences.
``fragment_*``: divergent parts that are not running (``wait``: 0 = may run, else convergence barrier + 1).
``convergence``: lanes that a convergence barrier collects. ``pc``, ``mask``: the running part; ``exited``: lanes that are
gone or never were; ``at_barrier``: CTA barrier that the warp waits at."""

CTA = np.dtype([
    ("shared", np.uint8, (SHARED_BYTES,)),
    ("shared_unknown", np.uint8, (SHARED_BYTES,)),
    ("shared_difference", np.int64, (SHARED_BYTES // WORD_BYTES,)),
    ("banks", np.uint8, (CONSTANT_BYTES,)),
    ("bank_start", np.int64, (N_BANKS,)),
    ("bank_size", np.int64, (N_BANKS,)),
    ("arrived", np.int64, (N_BARRIERS,)),
    ("expected", np.int64, (N_BARRIERS,)),
    ("address", np.int64, (LANES,)),
    ("evaluation", np.int64, (2,)),
    *((name, np.int64) for name in (
        "scratch", "first_constant", "shared_limit", "frame_base", "frame_bytes", "code_base", "rank", "tracks", "limit",
        "reason", "attention_warp", "attention_row", "attention_mask", "override_row", "override_handle", "next_warp",
        "wanted_operation", "wanted_x", "wanted_y", "group_version",
        "n_logged", "n_segments", "n_events", "n_patterns",
    )),
])
"""State of one CTA. ``arrived``, ``expected``: warps at the CTA barriers. ``address``: scratch of memory verbs.
``scratch``: first value row that verbs may overwrite. ``frame_base``, ``frame_bytes``: local-memory window.
``rank``: of the CTA in its cluster. ``tracks``: differences between CTAs are followed. ``limit``: logged rows at most.
``reason`` and ``attention_*``: why and where the interpreter stopped; ``override_*``: a row whose difference the caller
has settled, with the handle of its address; ``next_warp``: which warp goes on; ``wanted_*``:
a combination of differences that compiled code asks for; ``evaluation``: name of a row's evaluation for all CTAs, whose
membership ``group_version`` counts. ``n_*``: fill of the log."""

EVENT = np.dtype([
    ("pattern", np.int64), ("address", np.int64), ("shared_address", np.int64), ("shared_pattern", np.int64),
    ("descriptor", np.int64), ("coordinate", np.int64, (MAX_RANK,)), ("count", np.int64), ("mbarrier", np.int64),
    ("parity", np.int64), ("cta_mask", np.int64), ("difference", np.int64),
    ("coordinate_difference", np.int64, (MAX_RANK,)),
])
"""Operands of one executed memory, barrier or tensor instruction, as ``simulator.trace.kernel_trace.EventTable``; with the
address of a tensor map's descriptor, and difference handles of the address and of the coordinates."""

DIFFERENCE = np.dtype([("flags", np.int64), ("lowest", np.int64), ("highest", np.int64)])
"""A difference between CTAs as compiled code sees it: ``lowest`` and ``highest`` over CTAs and lanes."""


def records(dtype: np.dtype, n: int) -> np.recarray:
    """n zeroed records with attribute access."""
    return np.zeros(n, dtype).view(np.recarray)
