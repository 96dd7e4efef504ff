"""What a warp does with the scores of a step: scale, mask, running maximum, exponentials, sums, rescaled output, fragments of P.

Instructions are written in program order; ``list_schedule`` interleaves the rows and the parts as compilers do.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle

from simulator.kernels.attention_design import AttentionDesign
from simulator.kernels.control_words import Value
from simulator.kernels.list_scheduling import list_schedule
from simulator.kernels.writer import Block

LANE_EXCHANGES = 2
"""A row of scores lies in four lanes."""
PREDICATES = 5
"""Predicate registers that masks go through in turn: of a thread's seven, two belong to the loop."""
BOUND_COLUMNS = 16
"""Columns that a compare against the number of keys decides at once where that is a multiple of so many."""


class Softmax:
    """Registers of a thread (``rows`` of ``columns`` scores) and the code on them."""

    def __init__(self, design: AttentionDesign, is_tight: bool = False) -> None:
        """``is_tight``: no register is left to interleave rows with; they are finished one by one."""
        self.design = design
        self.is_tight = is_tight
        self.rows = range(design.thread_rows)
        self.columns = range(max(1, design.block_n // 4))
        self.scores = [[Value(f"s{r}.{c}") for c in self.columns] for r in self.rows]
        self.output = [[Value(f"o{r}.{c}") for c in range(max(1, design.head_dim // 4))] for r in self.rows]
        self.packed = [Value(f"p{i}") for i in range(design.thread_scores // 2)]
        self.maxima = [Value(f"max{r}") for r in self.rows]
        self.sums = [Value(f"sum{r}") for r in self.rows]
        self._step_sums = [Value(f"part{r}") for r in self.rows]
        self._scales = [Value(f"rescale{r}") for r in self.rows]
        self._new_maxima = [Value(f"new{r}") for r in self.rows]

    def reset(self, block: Block) -> None:
        """Before the first step."""
        for value in (*self.maxima, *self.sums):
            block.op("IMAD.MOV.U32", [value])
        for row in self.output:
            for pair in zip(row[::2], row[1::2], strict=True):
                block.op("CS2R", pair, text=f"CS2R {pair[0].name}, SRZ")

    def scores_to_fragments(self, block: Block, is_masked: bool) -> None:
        """The whole softmax of a step, O included, where nothing runs beside it."""
        for rows in [[r] for r in self.rows] if self.is_tight else [list(self.rows)]:
            code = Block("", is_loop=False)
            self._exponentials(code, is_masked, rows)
            self._rescale(code, rows)
            if len(rows) == len(self.rows):
                self._pack(code)
            block.instructions += list_schedule(code.instructions)
        if self.is_tight:
            self._pack(block)

    def exponentials(self, block: Block, is_masked: bool) -> None:
        """The part that multiply-adds of the step before run under: scores become exponentials, rows get their factors."""
        code = Block("", is_loop=False)
        self._exponentials(code, is_masked, self.rows)
        block.instructions += list_schedule(code.instructions)

    def fragments(self, block: Block, is_first: bool = False) -> None:
        """The part that waits for them: P in the registers that they read, O (none at first) rescaled."""
        code = Block("", is_loop=False)
        self._pack(code)
        if not is_first:
            self._rescale(code, self.rows)
        block.instructions += list_schedule(code.instructions)

    def finish_step(self, block: Block) -> None:
        """Sums that are added over the lanes of a row in every step, behind the multiply-adds."""
        if self.design.row_sums != "each_step":
            return
        self._add_lanes(block, self._step_sums)
        for r in self.rows:
            block.op("FFMA", [self.sums[r]], [self._scales[r], self.sums[r], self._step_sums[r]])

    def normalise(self, block: Block) -> None:
        """O divided by the sums of its rows."""
        if self.design.row_sums == "end":
            self._add_lanes(block, self.sums)
        code = Block("", is_loop=False)
        for r in self.rows:
            factor, is_none = Value(f"reciprocal{r}"), Value("P0", kind="P")
            code.op("FSETP.NEU.FTZ.AND", [is_none], [self.sums[r]])
            code.op("MUFU.RCP", [factor], [self.sums[r]])
            code.op("FSEL", [factor], [factor, is_none])
            for value in self.output[r]:
                if self.design.division == "full":
                    self._scale_dividend(code, value, is_none)
                code.op("FMUL", [value], [value, factor])
        block.instructions += list_schedule(code.instructions)

    def _scale_dividend(self, code: Block, value: Value, is_large: Value) -> None:
        """A quarter where the divisor is too large for its reciprocal, 2^24 times where it is too small."""
        quarter = Value("quarter")
        code.op("FMUL", [quarter], [value])
        code.op("FSEL", [value], [quarter, value, is_large])
        code.op("FMUL", [value], [value], guard=is_large)

    def _add_lanes(self, block: Block, sums: list[Value]) -> None:
        other = [Value(f"other{r}") for r in self.rows]
        for _ in range(LANE_EXCHANGES):
            for r in self.rows:
                block.op("SHFL.BFLY", [other[r]], [sums[r]])
            for r in self.rows:
                block.op("FADD", [sums[r]], [sums[r], other[r]])

    def _exponentials(self, code: Block, is_masked: bool, rows: Sequence[int]) -> None:
        if self.design.scale == "separate":
            for r in rows:
                for score in self.scores[r]:
                    code.op("FMUL", [score], [score])
        if is_masked:
            self._mask(code, rows)
        for r in rows:
            self._maximum(code, r)
        for r in rows:
            self._powers(code, r)

    def _mask(self, code: Block, rows: Sequence[int]) -> None:
        """Scores outside become minus infinity: beyond a row's own position (causal), or beyond the keys."""
        step = Value("step")
        predicates = cycle([Value(f"P{i}", kind="P") for i in range(PREDICATES)])
        if not self.design.causal:
            shared = BOUND_COLUMNS // 4 if self.design.keys % BOUND_COLUMNS == 0 else 1
            for first in range(0, len(self.columns), shared):
                key, is_in = Value("key"), next(predicates)
                code.op("VIADD", [key], [step])
                code.op("ISETP.GE.AND", [is_in], [key])
                for c in self.columns[first : first + shared]:
                    for r in rows:
                        code.op("FSEL", [self.scores[r][c]], [self.scores[r][c], is_in])
            return
        for c in self.columns:
            key, high = Value(f"key{c}"), Value(f"high{c}")
            code.op("IADD3", [key], [step])
            if self.design.index_bits == 64:
                code.op("IMAD.X", [high], [step])
            for r in rows:
                is_in = next(predicates)
                code.op("ISETP.GT.U32.AND", [is_in], [key])
                if self.design.index_bits == 64:
                    code.op("ISETP.GT.AND.EX", [is_in], [high, is_in])
                code.op("FSEL", [self.scores[r][c]], [self.scores[r][c], is_in])

    def _maximum(self, code: Block, r: int) -> None:
        row, new, other = self.scores[r], self._new_maxima[r], Value(f"lane{r}")
        code.op("FMNMX", [new], row[:2])
        for score in row[2:]:
            code.op("FMNMX", [new], [new, score])
        for _ in range(LANE_EXCHANGES):
            code.op("SHFL.BFLY", [other], [new])
            code.op("FMNMX", [new], [new, other])
        code.op("FMNMX", [new], [new, self.maxima[r]])

    def _powers(self, code: Block, r: int) -> None:
        """Powers of two of the scores less the maximum, their sum, and the factor of what was summed before."""
        new, scale, total = self._new_maxima[r], self._scales[r], self.sums[r]
        is_fused = self.design.scale == "fused"
        subtrahend = Value(f"scaled{r}") if is_fused else new
        if is_fused:
            is_none = Value(f"none{r}", kind="P")
            code.op("FSETP.NEU.FTZ.AND", [is_none], [new])
            code.op("FMUL", [subtrahend], [new])
            code.op("FSEL", [subtrahend], [subtrahend, is_none])
        code.op("FFMA" if is_fused else "FADD", [scale], [self.maxima[r], subtrahend])
        code.op("MUFU.EX2", [scale], [scale])
        code.op("MOV", [self.maxima[r]], [new])
        is_local = self.design.row_sums == "each_step"
        if is_local:
            total = self._step_sums[r]
        else:
            code.op("FMUL", [total], [total, scale])
        for c, score in enumerate(self.scores[r]):
            code.op("FFMA" if is_fused else "FADD", [score], [score, subtrahend])
            code.op("MUFU.EX2", [score], [score])
            if is_local and c == 1:
                code.op("FADD", [total], [self.scores[r][0], score])
            elif not is_local or c > 1:
                code.op("FADD", [total], [total, score])

    def _rescale(self, code: Block, rows: Sequence[int]) -> None:
        for r in rows:
            for value in self.output[r]:
                code.op("FMUL", [value], [value, self._scales[r]])

    def _pack(self, code: Block) -> None:
        kind = "F2FP.BF16.F32.PACK_AB" if self.design.dtype == "bf16" else "F2FP.F16.F32.PACK_AB"
        flat = [score for row in self.scores for score in row]
        for i, value in enumerate(self.packed):
            code.op(kind, [value], flat[2 * i : 2 * i + 2])
