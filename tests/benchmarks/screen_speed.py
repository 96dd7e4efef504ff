"""How fast is the screen of the tuner? Designs a second on one core, enumerated, checked for legality and estimated.

Run by ``make bench``; not a test.
"""

from __future__ import annotations

import time

from simulator.hw.loader import load_hw
from simulator.tuning.families import parse_problem, title, tunable
from simulator.tuning.search import screen

CHIP = "h200"
SHAPES = ((8192, 8192, 8192, "bf16"), (512, 512, 4096, "bf16"), (16, 8192, 8192, "bf16"), (4096, 4096, 4096, "fp8_e4m3"))
N_REPEATS = 3


def main() -> None:
    """Print the table."""
    chip, family = load_hw(CHIP), tunable("gemm")
    print(f"\nScreen of GEMM designs on {CHIP}; processor time, best of {N_REPEATS}\n")
    print(f"{'problem':34} {'designs':>10} {'seconds':>9} {'designs/s':>12}")
    for m, n, k, dtype in SHAPES:
        problem = parse_problem({"kind": "gemm", "m": m, "n": n, "k": k, "dtype": dtype}, "benchmark")
        best = float("inf")
        for _ in range(N_REPEATS):
            started = time.process_time()
            designs = family.space(problem, chip)
            screen(family, problem, designs, chip)
            best = min(best, time.process_time() - started)
        print(f"{title(problem):34} {len(designs):10,} {best:9.3f} {len(designs) / best:12,.0f}")


if __name__ == "__main__":
    main()
