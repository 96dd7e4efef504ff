"""Control words of straight-line code: stall counts, scoreboards and wait masks, set as the vendor's assembler sets them.

A result of fixed latency is waited for by stall counts; one of variable latency sets a scoreboard that its consumers
wait for; an instruction that reads its sources late sets a scoreboard that whoever overwrites them waits for. The
distances are those of compiled code for sm_80 to sm_100: the smallest from producer to consumer in 40,000 pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from simulator.isa.table import pipe_of
from simulator.trace.kernel_trace import NO_SCOREBOARD

N_SCOREBOARDS = 6
LONGEST_STALL = 15

DISTANCE = 4
"""Issue of an arithmetic instruction to issue of its consumer, in cycles."""
GUARD_DISTANCE = 13
"""To an instruction that the result guards, and from a register to a uniform register's consumer."""
DISTANCES = {"F2FP": 5, "FSEL": 5, "R2UR": 13, "UMOV": 2, "ULDC": 2, "HFMA2": 5, "HADD2": 5, "HMUL2": 5, "VOTEU": 6}
MMA_DISTANCES = ((4096, 33), (2048, 25), (0, 18))
"""Of a warp's matrix multiply-add with at least m*n*k multiply-adds of 16 bits (24.4 measured for m16n8k16)."""

VARIABLE_PIPES = frozenset(
    ("transcendental", "fp64", "shared", "global", "shuffle", "redux", "special", "constant", "mbarrier", "fence")
)
"""Pipes whose results arrive after a time that the compiler does not know."""
LATE_READERS = frozenset(("STS", "STSM", "STG", "RED", "REDG", "LDGSTS", "STL", "UTMALDG", "UTMASTG", "UBLKCP", "ATOMG", "ATOMS"))
"""Read their sources after they issue."""
LEAST_STALLS = {"BRA": 5, "EXIT": 5, "BAR": 6, "WARPGROUP": 2, "WARPSYNC": 1, "USETMAXREG": 6, "BSSY": 1, "NOP": 1}


@lru_cache(maxsize=1024)
def base_of(opcode: str) -> str:
    """A mnemonic without its modifiers."""
    return opcode.split(".")[0]


@dataclass(eq=False)
class Value:
    """A virtual register group: ``kind`` "R" (general), "UR" (uniform), "P" or "UP" (predicate), ``size`` registers."""

    name: str
    size: int = 1
    kind: str = "R"


@dataclass
class Instruction:
    """One machine instruction; see StaticTable for ``width_bytes`` and ``argument``. ``guard``: its predicate."""

    opcode: str
    writes: tuple[Value, ...] = ()
    reads: tuple[Value, ...] = ()
    guard: Value | None = None
    width_bytes: int = 0
    argument: tuple[int, ...] = ()
    text: str = ""
    stall: int = 1
    write_scoreboard: int = NO_SCOREBOARD
    read_scoreboard: int = NO_SCOREBOARD
    wait_mask: int = 0

    @property
    def base(self) -> str:
        return base_of(self.opcode)

    @property
    def operands(self) -> Iterable[Value]:
        return (*self.reads, self.guard) if self.guard is not None else self.reads


@dataclass
class Pending:
    """What is under way at a point of the code: results by value (cycle from which a consumer may issue; scoreboard
    of a variable result; scoreboard of a late read) and the cycle of the next issue."""

    cycle: int = 0
    ready: dict[Value, tuple[int, bool]] = field(default_factory=dict)
    written: dict[Value, int] = field(default_factory=dict)
    read: dict[Value, int] = field(default_factory=dict)
    last_board: int = -1
    last_base: str = ""

    def clear(self, board: int) -> None:
        """Scoreboard ``board`` is zero: all that it stands for is done."""
        for table in (self.written, self.read):
            for value in [v for v, b in table.items() if b == board]:
                del table[value]

    def in_use(self) -> set[int]:
        return set(self.written.values()) | set(self.read.values())


def schedule(instructions: Sequence[Instruction], pending: Pending) -> None:
    """Set the control words of ``instructions`` in place; ``pending`` is the state before and, after, behind them.

    A second pass keeps the scoreboards of the first and adds what a loop's own end leaves pending at its start.
    """
    runs = _runs(instructions)
    for i, one in enumerate(instructions):
        start = pending.cycle
        for value in one.operands:
            at, to_guard = pending.ready.get(value, (0, False))
            late = GUARD_DISTANCE - DISTANCE if to_guard and value is one.guard else 0
            start = max(start, at + late)
        if start > pending.cycle:
            _lengthen(instructions[:i], start - pending.cycle)
        one.wait_mask |= _waits(one, pending)
        for board in range(N_SCOREBOARDS):
            if one.wait_mask >> board & 1:
                pending.clear(board)
        one.stall = max(one.stall, LEAST_STALLS.get(one.base, 1))
        _note_results(one, pending, start, runs[i])
        pending.cycle = start + one.stall


Placed = tuple[tuple[int, int, int, int], ...]
"""(stall, write scoreboard, read scoreboard, wait mask) of each instruction."""
PLACED_CODES = 8
_placed: dict[tuple[object, ...], Placed] = {}
"""Of the last codes, by ``_shape``: parts of one kernel's work differ in what they execute, not in their code."""


def place(blocks: Sequence[tuple[Sequence[Instruction], bool]]) -> None:
    """Set the control words of ``blocks`` (instructions, is a loop), which run one after another."""
    key = _shape(blocks)
    code = [one for instructions, _ in blocks for one in instructions]
    if key in _placed:
        for one, words in zip(code, _placed[key], strict=True):
            one.stall, one.write_scoreboard, one.read_scoreboard, one.wait_mask = words
        return
    pending = Pending()
    for instructions, is_loop in blocks:
        schedule(instructions, pending)
        if is_loop:
            schedule(instructions, pending)
    while len(_placed) >= PLACED_CODES:
        del _placed[next(iter(_placed))]
    _placed[key] = tuple((one.stall, one.write_scoreboard, one.read_scoreboard, one.wait_mask) for one in code)


def _shape(blocks: Sequence[tuple[Sequence[Instruction], bool]]) -> tuple[object, ...]:
    """All of a code that its control words depend on: values are told apart by where they first occur."""
    numbers: dict[Value, tuple[int, str]] = {}

    def number(values: Iterable[Value]) -> tuple[tuple[int, str], ...]:
        return tuple([numbers.setdefault(value, (len(numbers), value.kind)) for value in values])

    def shape(one: Instruction) -> tuple[object, ...]:
        return one.opcode, number(one.writes), number(one.operands), one.guard is None, one.argument, one.stall

    return tuple((is_loop, *map(shape, instructions)) for instructions, is_loop in blocks)


def _runs(instructions: Sequence[Instruction]) -> list[str]:
    """What equal instructions share a scoreboard by: their name; a transcendental result also by its first consumer, since
    compiled code waits for the oldest of many exponentials while the younger ones are under way."""
    found = [one.base for one in instructions]
    consumer: dict[Value, int] = {}
    for i in range(len(instructions) - 1, -1, -1):
        one = instructions[i]
        if pipe_of(one.opcode) == "transcendental" and one.writes:
            found[i] = f"{one.base} for {consumer.get(one.writes[0])}"
        for value in one.operands:
            consumer[value] = i
    return found


def _lengthen(before: Sequence[Instruction], cycles: int) -> None:
    """Add missing cycles to the stall counts before an instruction, the nearest first."""
    for one in reversed(before):
        if cycles <= 0:
            return
        added = min(cycles, LONGEST_STALL - one.stall)
        one.stall += max(0, added)
        cycles -= max(0, added)


def _waits(one: Instruction, pending: Pending) -> int:
    mask = 0
    for value in one.operands:
        if value in pending.written:
            mask |= 1 << pending.written[value]
    for value in one.writes:
        if value in pending.read:
            mask |= 1 << pending.read[value]
        if value in pending.written and not _continues_run(one, pending, pending.written[value]):
            mask |= 1 << pending.written[value]
    return mask


def _continues_run(one: Instruction, pending: Pending, board: int) -> bool:
    """Equal instructions finish in order: the next part of a wide value does not wait for the one before."""
    return pending.last_base == one.base and pending.last_board == board


def _note_results(one: Instruction, pending: Pending, start: int, run: str) -> None:
    pipe = pipe_of(one.opcode)
    if pipe in VARIABLE_PIPES and one.writes:
        one.write_scoreboard = _board(run, one.write_scoreboard, pending)
        for value in one.writes:
            pending.written[value] = one.write_scoreboard
    elif pipe not in ("tensor_async", "none"):
        distance = result_distance(one, pipe)
        for value in one.writes:
            pending.ready[value] = (start + distance, value.kind in ("P", "UP"))
    late = tuple(v for v in one.reads if v.kind in ("R", "UR"))
    if one.base in LATE_READERS and late:
        one.read_scoreboard = _board(one.base + ".read", one.read_scoreboard, pending)
        for value in late:
            pending.read[value] = one.read_scoreboard


def result_distance(one: Instruction, pipe: str) -> int:
    """Cycles from the issue of an instruction of fixed latency to that of its consumer."""
    if pipe == "tensor":
        m, n, k, bits = one.argument
        return next(cycles for least, cycles in MMA_DISTANCES if m * n * k * bits // 16 >= least)
    return DISTANCES.get(one.base, DISTANCE)


def _board(kind: str, known: int, pending: Pending) -> int:
    """Scoreboard of a result: the one of an earlier pass, that of the run of equal instructions which it continues, else
    a free one, else the next."""
    used = pending.in_use()
    board = known
    if board == NO_SCOREBOARD:
        free = [number for number in range(N_SCOREBOARDS) if number not in used]
        board = free[0] if free else (pending.last_board + 1) % N_SCOREBOARDS
        if kind == pending.last_base and pending.last_board in used:
            board = pending.last_board
    pending.last_base, pending.last_board = kind, board
    return board
