"""kernelcast: predict how a compiled GPU kernel runs on a chip that is described by a file."""

from simulator.numba_cache import use_own_cache

use_own_cache()
