"""The end of a block: O divided by its row sums, converted, and stored; or the partial O of a split sequence."""

from __future__ import annotations

import numpy as np

from simulator.isa.effects import GROUP_WARPS
from simulator.kernels.attention_design import PARTIAL_BYTES, WARP_MMA_ROWS, AttentionDesign
from simulator.kernels.attention_operands import Operands, box_columns, q_head
from simulator.kernels.attention_softmax import Softmax
from simulator.kernels.attention_tiles import Work
from simulator.kernels.code_fragments import scalar_work
from simulator.kernels.control_words import Value
from simulator.kernels.gemm_fragments import FRAGMENT_COLUMNS, FRAGMENT_ROWS, MATRICES, matrix_store_pattern
from simulator.kernels.gemm_layout import CHUNK_BYTES, LANE
from simulator.kernels.list_scheduling import list_schedule
from simulator.kernels.writer import Block, CtaClass, KernelWriter

STORE_BARRIER = 1
"""Named barriers 1, 2, ... of the warpgroups that store by themselves."""
LINE_BYTES = 32 * CHUNK_BYTES
"""A warp's store of 16 bytes a lane."""


class Epilogue:
    """Code and execution. ``stores_alone``: each warpgroup stores its own rows; else all warps meet."""

    def __init__(
        self, design: AttentionDesign, kernel: KernelWriter, operands: Operands, softmax: Softmax, stores_alone: bool
    ) -> None:
        self.design, self.kernel, self.operands, self.softmax = design, kernel, operands, softmax
        self.stores_alone = stores_alone
        self.is_partial = design.split_kv > 1
        block = kernel.block("epilogue")
        softmax.normalise(block)
        if self.is_partial:
            self._store_partial(block)
        else:
            self._stage(block)
            self._store(block)
        self.block = block

    @property
    def _rows_alone(self) -> int:
        """Rows of O that are stored together."""
        return self.design.block_m // self.design.warpgroups if self.stores_alone else self.design.block_m

    @property
    def _row_groups(self) -> list[tuple[int, int]]:
        """(16-row set, first of MATRICES 8x8 matrices along a row pair) of each matrix store of a warp."""
        return [(i, n) for i in range(self.design.sets) for n in range(0, max(1, self.design.head_dim // 8), MATRICES // 2)]

    def _stage(self, block: Block) -> None:
        """Convert and write 16 rows by 16 columns at a time to shared memory, where Q was."""
        code, address = Block("", is_loop=False), Value("place")
        kind = "F2FP.BF16.F32.PACK_AB" if self.design.dtype == "bf16" else "F2FP.F16.F32.PACK_AB"
        block.op("BAR.SYNC.DEFER_BLOCKING", slot="bar_free")
        block.op("LOP3.LUT", [address], [])
        packed = []
        for i, n in self._row_groups:
            parts = [Value(f"packed{i}.{n}.{p}") for p in range(MATRICES)]
            for p, value in enumerate(parts):
                row = self.softmax.output[2 * i + p % 2]
                code.op(kind, [value], row[2 * (n + p // 2) : 2 * (n + p // 2) + 2])
            packed.append(parts)
        block.instructions += list_schedule(code.instructions)
        for number, parts in enumerate(packed):
            block.op("STSM.16.M88.4", [], [address, *parts], slot=f"stage{number}", width=4 * MATRICES)

    def _store(self, block: Block) -> None:
        if self.design.epilogue == "tma":
            block.op("MEMBAR.ALL.CTA")
            block.op("FENCE.VIEW.ASYNC.S", [Value("fence")])
            block.op("BAR.SYNC.DEFER_BLOCKING", slot="bar_staged")
            scalar_work(block, 8)
            for i in range(len(self.operands.boxes(self._rows_alone))):
                block.op("UTMASTG.3D", [], [Value("UR12", kind="UR")], slot=f"store{i}")
            block.op("UTMACMDFLUSH")
            block.op("DEPBAR.LE", argument=(0, 0), text="DEPBAR.LE SB0, 0x0")
            return
        block.op("BAR.SYNC.DEFER_BLOCKING", slot="bar_staged")
        lines = [Value(f"line{i}", 4) for i in range(self._n_lines)]
        for i, line in enumerate(lines):
            block.op("LDS.128", [line], [], slot=f"load{i}", width=CHUNK_BYTES)
        addresses = [Value(f"to{i}", 2) for i in range(MATRICES)]
        for i, line in enumerate(lines):
            address = addresses[i % MATRICES]
            block.op("IMAD.WIDE", [address], [])
            block.op("STG.E.128", [], [address, line], slot=f"store{i}", width=CHUNK_BYTES)

    @property
    def _n_lines(self) -> int:
        """Stores of a warp, 16 bytes a lane, of the block."""
        return max(1, self.design.q_bytes // (LINE_BYTES * self.design.warps))

    def _store_partial(self, block: Block) -> None:
        """32-bit O and the logarithm of the sum of each row."""
        address = Value("address", 2)
        block.op("IMAD.WIDE", [address], [])
        for r, row in enumerate(self.softmax.output):
            block.op("MUFU.LG2", [Value(f"log{r}")], [self.softmax.sums[r]])
            block.op("STG.E", [], [address, Value(f"log{r}")], slot=f"sum{r}", width=PARTIAL_BYTES)
            for c in range(0, len(row), 2):
                block.op("STG.E.64", [], [address, row[c], row[c + 1]], slot=f"store{r}.{c}", width=2 * PARTIAL_BYTES)

    def run(self, cta: CtaClass, work: Work, warp: int) -> None:
        """Warp ``warp`` finishes its block."""
        events: dict[str, np.ndarray] = {}
        active: dict[str, int] = {}
        if self.is_partial:
            self._partial_events(cta, work, warp, events, active)
        else:
            group, alone = warp // GROUP_WARPS, self.stores_alone
            named = {"parity": STORE_BARRIER + group, "count": 32 * GROUP_WARPS} if alone else {"count": 32 * self.design.warps}
            events |= dict.fromkeys(("bar_free", "bar_staged"), cta.events(**named)[0])  # type: ignore[arg-type]
            events |= self._stage_events(cta, warp)
            if self.design.epilogue == "tma":
                self._box_events(cta, work, warp, events, active)
            else:
                self._line_events(cta, work, warp, events, active)
        cta.warps[warp].run(self.block, 1, events, active)

    def _first_row(self, warp: int, i: int) -> int:
        """First of the 16 rows of a set within the block."""
        if self.design.method != "wgmma":
            return warp * self.design.rows_per_warp + i * WARP_MMA_ROWS
        own = self.design.block_m // self.design.warpgroups
        return warp // GROUP_WARPS * own + i * WARP_MMA_ROWS * GROUP_WARPS + warp % GROUP_WARPS * WARP_MMA_ROWS

    def _stage_events(self, cta: CtaClass, warp: int) -> dict[str, np.ndarray]:
        pitch = box_columns(self.design) * self.design.format.n_bytes
        pattern = matrix_store_pattern(self.kernel, pitch)
        places = [
            8 * n * self.design.format.n_bytes // pitch * pitch * self.design.block_m + self._first_row(warp, i) * pitch
            for i, n in self._row_groups
        ]
        rows = cta.events(pattern=pattern, shared_address=np.array(places))
        return {f"stage{i}": rows[i] for i in range(len(places))}

    def _box_events(self, cta: CtaClass, work: Work, warp: int, events: dict[str, np.ndarray], active: dict[str, int]) -> None:
        design, rows = self.design, self._rows_alone
        first = warp // GROUP_WARPS * rows if self.stores_alone else 0
        head = q_head(design, work)
        leads = warp % GROUP_WARPS == 0 if self.stores_alone else warp == 0
        boxes = self.operands.boxes(rows)
        columns, inner = np.array(boxes).T
        n_bytes = design.format.n_bytes
        stored = cta.events(
            tensor=self.operands.result_tensor(rows),
            shared_address=columns * n_bytes * design.block_m + (first + inner) * box_columns(design) * n_bytes,
            coordinate=(columns, work.row[0] + first + inner, np.full(len(boxes), head[0])),
            moves=(0, cta.difference(work.row), cta.difference(head)),
        )
        for i in range(len(boxes)):
            events[f"store{i}"], active[f"store{i}"] = stored[i], int(leads)

    def _line_events(self, cta: CtaClass, work: Work, warp: int, events: dict[str, np.ndarray], active: dict[str, int]) -> None:
        """A warp stores 512 contiguous bytes of O at a time, as far as the rows go."""
        row_bytes = self.design.row_bytes
        start = q_head(self.design, work) * self.design.rows + work.row
        origin, key = self.operands.o + start[0] * row_bytes, cta.difference(start * row_bytes)
        shared = self.kernel.pattern(LANE * CHUNK_BYTES)
        for i in range(self._n_lines):
            at = (i * self.design.warps + warp) * LINE_BYTES
            on = (at + LANE * CHUNK_BYTES) // row_bytes < work.valid_rows
            active[f"store{i}"] = int(on.sum())
            pattern = self.kernel.pattern(np.where(on, LANE * CHUNK_BYTES, -1))
            events[f"load{i}"] = cta.events(pattern=shared, shared_address=at)[0]
            events[f"store{i}"] = cta.events(pattern=pattern, address=origin + at, base=key)[0]

    def _partial_events(
        self, cta: CtaClass, work: Work, warp: int, events: dict[str, np.ndarray], active: dict[str, int]
    ) -> None:
        design = self.design
        row_bytes = design.head_dim * PARTIAL_BYTES
        all_rows = design.batch * design.block_heads * design.rows
        start = work.split * all_rows + q_head(design, work) * design.rows + work.row
        key, sum_key = cta.difference(start * row_bytes), cta.difference(start * PARTIAL_BYTES)
        for r in range(design.thread_rows):
            row = self._first_row(warp, r // 2) + r % 2 * FRAGMENT_ROWS
            on = LANE // 4 + row < work.valid_rows
            number, lanes = self.kernel.pattern(np.where(on, LANE // 4 * row_bytes + LANE % 4 * 8, -1)), int(on.sum())
            base = self.operands.o + (start[0] + row) * row_bytes
            columns = np.arange(0, max(1, design.head_dim // 4), 2)
            rows = cta.events(pattern=number, address=base + columns // 2 * FRAGMENT_COLUMNS * PARTIAL_BYTES, base=key)
            for c, event in zip(columns.tolist(), rows, strict=True):
                events[f"store{r}.{c}"], active[f"store{r}.{c}"] = event, lanes
            first = on & (LANE % 4 == 0)
            sums = self.kernel.pattern(np.where(first, LANE // 4 * PARTIAL_BYTES, -1))
            at = self.operands.row_sums + (start[0] + row) * PARTIAL_BYTES
            events[f"sum{r}"], active[f"sum{r}"] = cta.events(pattern=sums, address=at, base=sum_key)[0], int(first.sum())
