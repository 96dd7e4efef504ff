"""How a chip groups the lanes of a shared-memory access: the part of ``shared_memory`` that is a rule, not a size."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from simulator.hw.timing import Section


class SharedAccessRules(Section):
    """Lanes are served in phases of as many lanes as all banks together can answer.

    ``merges_paired_loads``: two neighbouring phases of a 64- or 128-bit load are served as one when every lane
    reads what its neighbour (lane number XOR 1), or what the lane two away (XOR 2), reads.
    ``wide_load_lane_order``: lane numbers in the order in which phases of 16-byte loads take them, where that is not
    ascending; empty means ascending.
    """

    merges_paired_loads: bool
    wide_load_lane_order: tuple[int, ...] = Field(default=())

    @model_validator(mode="after")
    def _order_names_every_lane_once(self) -> Self:
        if sorted(self.wide_load_lane_order) != list(range(len(self.wide_load_lane_order))):
            raise ValueError(
                f"wide_load_lane_order {list(self.wide_load_lane_order)} must name every lane of a warp exactly once"
            )
        return self
